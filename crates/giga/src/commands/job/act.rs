//! An operator's word: ship, requeue, reject, cancel.

use giga_api::client::{Client, Signal};
use giga_api::wire::{Job, MergeState, OperatorAction, PullRequest, Stage};

use super::events::{last_seq, tell};
use super::wait::meant;
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
    // What happened before the word to ship is not news.
    let seen = last_seq(&client, &id).await?;
    let mut job = client.act(&id, OperatorAction::Ship, args.act.reason, None).await?;
    if !args.detach && job.stage == Stage::Shipping {
        let mut left = Left(Some(meant(&job).to_owned()));
        let mut follow = client.follow_job(&id, seen);
        while job.stage == Stage::Shipping && request_of(&job).is_none() {
            match follow.next().await? {
                Signal::Event(event) => {
                    progress(&event.cause);
                    job = client.job(&id).await?;
                }
                // Nothing is asked while nobody is there to answer: what happened meanwhile follows when it is back.
                other => tell(&other),
            }
        }
        left.0 = None;
    }
    let merge = job.merge.as_ref();
    let landed = merge.filter(|_| job.stage == Stage::Shipped);
    let landed = landed.and_then(|merge| match merge.merged.as_slice() {
        [] => Some(format!("  {} in {}", merge.commit.as_ref()?, merge.into.as_ref()?)),
        several => {
            let each = several.iter().map(|one| format!("  {} in {} of {}", one.commit, one.into, one.repo));
            Some(each.collect())
        }
    });
    let line = || {
        let (stage, name) = (job.stage.label(), printable(&job.name));
        format!("{}  {stage}  {name}{}", job.id, printable(&landed.unwrap_or_default()))
    };
    context.output.one(&job.json, "/id", line)?;
    let of_several = merge.iter().flat_map(|merge| &merge.merged).filter_map(|one| one.note.as_deref());
    let mut notes: Vec<&str> = of_several.collect();
    if notes.is_empty() {
        notes.extend(merge.and_then(|merge| merge.note.as_deref()));
    }
    for note in notes {
        say(&printable(note));
    }
    match job.stage {
        Stage::Shipped => Ok(()),
        Stage::Shipping => {
            let waits =
                request_of(&job).map(|request| format!("it ships when somebody merges {}", request.url));
            say(&printable(&waits.unwrap_or_else(|| follow_it(meant(&job)))));
            Ok(())
        }
        _ => {
            say(&printable(&why_not(&job)));
            Err(CliError::Ended(exit::FAILED))
        }
    }
}

/// Says what goes on without whoever stops following, however that happens.
struct Left(Option<String>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(name) = &self.0 {
            say(&follow_it(name));
        }
    }
}

fn follow_it(name: &str) -> String {
    printable(&format!("it is still shipping; follow it with: giga job wait {name}"))
}

/// Why a job that was to be shipped is somewhere else, and how it goes on.
fn why_not(job: &Job) -> String {
    let name = meant(job);
    if let Some(failure) = &job.failure {
        return format!("not merged: {}\nwhat can be done: giga job explain {name}", failure.words());
    }
    let detail = job.merge.as_ref().and_then(|merge| merge.detail.as_deref());
    match (job.stage, detail) {
        (Stage::Cancelled, _) => "not merged: it was cancelled".to_owned(),
        (_, Some(detail)) => {
            format!(
                "not merged, and sent back to be done again: {detail}\nfollow it with: giga job wait {name}"
            )
        }
        (stage, None) => format!("not merged: it is {}", stage.label()),
    }
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
