//! An operator's word: ship, requeue, reject, cancel.

use giga_api::client::Client;
use giga_api::wire::OperatorAction;

use crate::args::ActArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{printable, say};

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

/// How many jobs below it have not ended. Only to be shown: whoever may not look cancels all the same.
async fn open_below(client: &Client, id: &str) -> usize {
    let dag = client.dag(id).await;
    dag.map_or(0, |dag| dag.jobs.iter().skip(1).filter(|job| !job.stage.is_terminal()).count())
}
