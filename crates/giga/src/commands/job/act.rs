//! An operator's word: ship, requeue, reject, cancel.

use crate::args::ActArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::printable;

pub(super) async fn act(action: &str, args: ActArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.job.job).await?;
    let job = client.act(&id, action, args.reason, None).await?;
    context
        .output
        .one(&job.json, "/id", || format!("{}  {}  {}", job.id, printable(&job.stage), printable(&job.name)))
}
