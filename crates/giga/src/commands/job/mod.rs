//! `giga job …`

mod act;
mod events;
mod explain;
mod init;
mod list;
mod logs;
mod manifest_file;
mod show;
mod submit;
mod submit_many;
mod talk;
mod wait;

pub(crate) use events::{append, follow_until, print};
pub(crate) use show::job_text;

use giga_api::wire::OperatorAction;

use super::Done;
use super::context::Context;
use crate::args::JobCommand;

pub(crate) async fn run(command: JobCommand, context: &Context) -> Done {
    match command {
        JobCommand::Submit(args) if args.files.len() == 1 && args.parent.is_none() => {
            submit::submit(args, context).await
        }
        JobCommand::Submit(args) => submit_many::submit_many(args, context).await,
        JobCommand::Plan { file } => submit::plan(&file, context).await,
        JobCommand::List(args) => list::list(args, context).await,
        JobCommand::Show(args) => show::show(&args.job, context).await,
        JobCommand::Explain(args) => explain::explain(&args.job, context).await,
        JobCommand::Events(args) => events::events(args, context).await,
        JobCommand::Logs(args) => logs::logs(args, context).await,
        JobCommand::Wait(args) => wait::wait(args, context).await,
        JobCommand::Say(args) => talk::tell(args, context).await,
        JobCommand::Questions { job } => talk::questions(job.as_deref(), context).await,
        JobCommand::Answer(args) => talk::answer(args, context).await,
        JobCommand::Ship(args) => act::ship(args, context).await,
        JobCommand::Requeue(args) => act::act(OperatorAction::Requeue, args, context).await,
        JobCommand::Reject(args) => act::act(OperatorAction::Reject, args, context).await,
        JobCommand::Cancel(args) => act::act(OperatorAction::Cancel, args, context).await,
        JobCommand::Init(args) => init::init(&args, context),
    }
}
