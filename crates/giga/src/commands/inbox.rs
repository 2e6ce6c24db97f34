//! `giga inbox`: files that are dropped into a folder become jobs, for as long as it runs.

use giga_factory::folder::{self, FolderConfig, FolderEvent};
use tokio_util::sync::CancellationToken;

use super::Done;
use super::context::Context;
use crate::args::InboxArgs;
use crate::exit::CliError;
use crate::output::{announce, printable};
use crate::signals;

pub(crate) async fn inbox(args: InboxArgs, context: &Context) -> Done {
    let stop = CancellationToken::new();
    signals::cancel_on_signal(stop.clone(), std::future::ready(()))?;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let mut config = FolderConfig::new(args.folder.clone(), context.client()?);
    config.events = Some(sender);
    config.product = context.settings.product().map(|product| product.value);
    announce(&format!("ready inbox {}", args.folder.join("inbox").display()))?;
    let printing = async {
        while let Some(event) = events.recv().await {
            announce(&printable(&line(&event)))?;
        }
        Ok::<_, CliError>(())
    };
    let (ran, printed) = tokio::join!(folder::run(config, stop), printing);
    ran.map_err(|error| CliError::failed(error.to_string()))?;
    printed
}

fn line(event: &FolderEvent) -> String {
    match event {
        FolderEvent::Submitted { file, job } => format!("{job}  submitted  {file}"),
        FolderEvent::Moved { job, file, place } => format!("{job}  {}  {file}", place.name()),
        FolderEvent::Refused { file } => format!("-  refused  failed/{file}: the reasons are beside it"),
    }
}
