//! An operator's word: ship, requeue, reject, cancel.

use giga_api::client::{Client, Signal};
use giga_api::wire::{Job, MergeState, OperatorAction, PullRequest, Stage};

use crate::args::{ActArgs, ShipArgs};
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::{self, CliError};
use crate::output::{printable, progress, say};

pub(super) async fn act(action: OperatorAction, args: ActArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.job.job).await?;
    // Asked before: afterwards nobody could tell what ended with it.
    let below = if action == OperatorAction::Cancel { open_below(&client, &id).await } else { 0 };
    let job = client.act(&id, action, args.reason, None).await?;
    context
        .output
        .one(&job.json, "/id", || format!("{}  {}  {}", job.id, job.stage.label(), printable(&job.name)))?;
    if below > 0 {
        let jobs = if below == 1 { "job".to_owned() } else { format!("{below} jobs") };
        say(&format!("the {jobs} below it that had not finished are cancelled as well; see `giga dag {id}`"));
    }
    Ok(())
}

/// Until it is merged, is not going to be, or waits for somebody who merges its pull request: who ships wants to know.
pub(super) async fn ship(args: ShipArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.act.job.job).await?;
    let mut job = client.act(&id, OperatorAction::Ship, args.act.reason, None).await?;
    if !args.detach {
        let mut follow = client.follow_job(&id, 0);
        while job.stage == Stage::Shipping && request_of(&job).is_none() {
            if let Signal::Event(event) = follow.next().await? {
                progress(&event.cause);
            }
            job = client.job(&id).await?;
        }
    }
    let merge = job.merge.as_ref();
    let landed = merge.filter(|_| job.stage == Stage::Shipped);
    let landed =
        landed.and_then(|merge| Some(format!("  {} in {}", merge.commit.as_ref()?, merge.into.as_ref()?)));
    let line = || {
        let (stage, name) = (job.stage.label(), printable(&job.name));
        format!("{}  {stage}  {name}{}", job.id, landed.unwrap_or_default())
    };
    context.output.one(&job.json, "/id", line)?;
    if let Some(request) = request_of(&job) {
        say(&format!("it ships when somebody merges {}", printable(&request.url)));
    }
    if matches!(job.stage, Stage::Shipped | Stage::Shipping) {
        return Ok(());
    }
    if let Some(why) = merge.and_then(|merge| merge.detail.as_deref()) {
        say(&printable(why));
    }
    Err(CliError::Ended(exit::FAILED))
}

/// The pull request that it waits for.
fn request_of(job: &Job) -> Option<&PullRequest> {
    let merge = job.merge.as_ref().filter(|merge| merge.state == MergeState::Proposed)?;
    merge.request.as_ref()
}

/// How many jobs below it have not ended. Only to be shown: whoever may not look cancels all the same.
async fn open_below(client: &Client, id: &str) -> usize {
    let dag = client.dag(id).await;
    dag.map_or(0, |dag| dag.jobs.iter().skip(1).filter(|job| !job.stage.is_terminal()).count())
}
