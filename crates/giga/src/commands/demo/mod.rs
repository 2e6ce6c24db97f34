//! `giga demo`: a real job on a real repository, on a stage of its own that is gone afterwards.
//!
//! It shares nothing with a coordinator that may run on this machine: a fresh folder, a free port, tokens of its own.
//! Whatever happens, Ctrl-C included, the stage is cleared: factories end, then the coordinator, then the folder goes.

mod factory;
mod fleet;
mod origin;
mod stage;
mod tour;

use tokio::signal::unix::{SignalKind, signal};

use crate::args::DemoArgs;
use crate::commands::ask::somebody_is_there;
use crate::exit::CliError;
use crate::output::say;
use stage::DemoStage;

pub(crate) async fn run(args: &DemoArgs) -> Result<(), CliError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut stage = DemoStage::open(args.keep).await?;
    let asks = !args.yes && somebody_is_there();
    let ended =
        async { if args.fleet { fleet::run(&mut stage).await } else { tour::run(&mut stage, asks).await } };
    let ended = tokio::select! {
        ended = ended => ended,
        _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
        _ = terminate.recv() => Err(CliError::Interrupted),
    };
    stage.clear().await;
    ended
}

/// A step of the story.
fn step(title: &str) {
    say(&format!("\n\x1b[1m{title}\x1b[0m"));
}

/// The output of a program, set apart from what the demo prints.
fn quote(text: &str) {
    for line in text.lines() {
        say(&format!("  \x1b[2m│\x1b[0m {}", crate::output::printable(line)));
    }
}
