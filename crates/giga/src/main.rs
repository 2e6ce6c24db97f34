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
mod steady_clock;
mod system;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rustix::fs::Mode;

use args::{Cli, Command, FactoryCommand};
use config::{Settings, Surroundings};
use exit::CliError;

/// How long tasks may take to end when nobody waits for what they do any more.
const LAST_TASKS: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == factory::SANDBOX_INIT).is_some() {
        return giga_factory::sandbox::init::run(words);
    }
    let cli = Cli::parse();
    keep_files_private(&cli.command);
    if matches!(cli.command, Command::Factory(FactoryCommand::Run(_)))
        && let Err(error) = giga_factory::sandbox::harden_this_process()
    {
        output::say(&format!("cannot protect the memory of this process: {error}"));
    }
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

/// Whatever the umask of whoever starts it: what a coordinator writes is its owner's alone. A factory's files are below a
/// folder that nobody else enters, and there builds find the modes that they are used to; what they make is for nobody else
/// to change.
fn keep_files_private(command: &Command) {
    let masked = match command {
        Command::Serve(_) | Command::Up(_) => Mode::RWXG | Mode::RWXO,
        Command::Factory(FactoryCommand::Run(_)) => Mode::WGRP | Mode::WOTH,
        _ => return,
    };
    rustix::process::umask(masked);
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
        Command::Serve(args) => serve::serve(&settings, args.adopt_artifacts).await,
        Command::Factory(FactoryCommand::Run(args)) => Box::pin(factory::run(&args, &settings)).await,
        Command::Demo(args) => commands::demo::run(&args).await,
        command => tokio::select! {
            done = commands::run(command, settings) => done,
            _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
        },
    }
}
