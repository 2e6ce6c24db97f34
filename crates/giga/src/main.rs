//! The `giga` command.
//!
//! The composition root: the only place that knows the real clock, the real randomness, the drivers and the
//! process. What a command does lives in `commands` (which only talk to the API), in `serve` and in `factory`.

mod args;
mod commands;
mod config;
mod exit;
mod factory;
mod logging;
mod output;
mod serve;
mod signals;
mod system;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use args::{Cli, Command, FactoryCommand};
use config::{Settings, Surroundings};
use exit::CliError;

/// How long tasks may take to end when nobody waits for what they do any more.
const LAST_TASKS: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let runs_engines = matches!(cli.command, Command::Factory(FactoryCommand::Run(_)));
            let outcome = runtime.block_on(run(cli));
            if runs_engines {
                // Tasks are dropped with all that they started: no engine outlives its factory.
                runtime.shutdown_timeout(LAST_TASKS);
            } else {
                // A thread that still reads stdin must not hold up the end.
                runtime.shutdown_background();
            }
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
    let log = match &cli.command {
        Command::Serve(_) | Command::Factory(FactoryCommand::Run(_)) => "info",
        // It tells its story itself.
        Command::Demo(_) => "error",
        // It has the screen to itself; what goes wrong it shows there.
        Command::Top => "off",
        _ => "warn",
    };
    let settings = Settings::load(config::flags(&cli), Surroundings::real())?;
    logging::start(&settings, log)?;
    match cli.command {
        // These end in good order on a signal; everything else just ends.
        Command::Up(_) => serve::up(&settings).await,
        Command::Serve(_) => serve::serve(&settings).await,
        Command::Factory(FactoryCommand::Run(args)) => Box::pin(factory::run(&args, &settings)).await,
        Command::Demo(args) => commands::demo::run(&args).await,
        command => tokio::select! {
            done = commands::run(command, settings) => done,
            _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
        },
    }
}
