//! The `giga` command.
//!
//! The composition root: the only place that knows the real clock, the real randomness, the drivers and the
//! process. What a command does lives in `commands` (which only talk to the API) and in `serve`.

mod args;
mod commands;
mod config;
mod exit;
mod logging;
mod output;
mod serve;
mod system;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use config::{Settings, Surroundings};
use exit::CliError;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(cli));
            // A thread that still reads stdin must not hold up the end.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(CliError::failed(format!("cannot start: {error}"))),
    };
    match outcome {
        Ok(()) => ExitCode::from(exit::OK),
        Err(error) => {
            for line in error.lines() {
                output::say(&line.styled());
            }
            ExitCode::from(error.exit_code())
        }
    }
}

async fn run(cli: Cli) -> Result<(), CliError> {
    let (listen, store, log) = match &cli.command {
        Command::Up(args) => (args.listen.as_ref(), None, "warn"),
        Command::Serve(args) => (args.listen.as_ref(), args.store.as_ref(), "info"),
        _ => (None, None, "warn"),
    };
    let settings = Settings::load(config::flags(&cli.globals, listen, store), Surroundings::real())?;
    logging::start(&settings, log)?;
    match cli.command {
        // These end in good order on a signal; everything else just ends.
        Command::Up(_) => serve::up(&settings).await,
        Command::Serve(_) => serve::serve(&settings).await,
        command => tokio::select! {
            done = commands::run(command, settings) => done,
            _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
        },
    }
}
