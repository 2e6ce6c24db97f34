//! `giga-engine-matrix`: what the real coding engines do, behaviour by behaviour, as this code drives them.
//!
//! Each cell starts a scripted model on loopback, runs the real program through the very code that a factory uses, in the
//! sandbox, and checks what came of it on both sides. No account is involved: engines get a dummy key, which only the scripted
//! model may see. `cargo xtask engines matrix` builds and starts it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it talks to whoever starts it")]

mod behaviour;
mod bench;
mod conversation;
mod fleet;
mod hostile;
mod quota;
mod record;
mod subject;
mod table;
mod troubles;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use giga_factory::engines::Program;

use behaviour::Behaviour;
use bench::Bench;
use table::{Cell, Table};

/// Longer than the slowest cell takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);

#[derive(Debug, Parser)]
#[command(about = "Runs the real coding engines against a scripted model")]
struct Args {
    /// The folder with the engines' programs
    #[arg(long)]
    programs: PathBuf,
    /// Only these engines
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<Program>,
    /// Only these behaviours
    #[arg(long, value_name = "BEHAVIOUR")]
    behaviour: Vec<Behaviour>,
    /// Instead of the matrix: so many jobs on two factories, of whose two accounts one runs out in the middle
    #[arg(long, value_name = "JOBS", conflicts_with_all = ["engine", "behaviour", "page", "record"])]
    quota: Option<usize>,
    /// Write the table into this page
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Keep what the engines printed in this folder, for tests that replay it
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Where the runs happen. Not in /tmp: an engine refuses to work from there
    #[arg(long)]
    scratch: PathBuf,
    /// Keep the folders of the runs, and print what the engines printed
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every cell that ran is green.
async fn run(args: Args) -> Result<bool> {
    let engines = if args.engine.is_empty() { Program::ALL.to_vec() } else { args.engine.clone() };
    let behaviours = if args.behaviour.is_empty() { Behaviour::ALL.to_vec() } else { args.behaviour.clone() };
    if args.page.is_some() && !(args.engine.is_empty() && args.behaviour.is_empty()) {
        bail!("the page has the whole matrix: leave out --engine and --behaviour, or --page");
    }
    std::fs::create_dir_all(&args.scratch)
        .with_context(|| format!("{} cannot be made", args.scratch.display()))?;
    if let Some(jobs) = args.quota {
        quota::show(&args.programs, &args.scratch, args.keep, jobs).await?;
        return Ok(true);
    }
    let mut table = Table::default();
    for engine in engines {
        let bench = Bench::new(engine, &args.programs, &args.scratch, args.keep)?;
        table.version(engine, bench.version.clone());
        for behaviour in &behaviours {
            let began = Instant::now();
            let shown = behaviour::show(*behaviour, &bench, args.record.as_deref());
            let cell = match tokio::time::timeout(PATIENCE, shown).await {
                Ok(Ok(())) => Cell::Proven,
                Ok(Err(why)) => Cell::Not(format!("{why:#}")),
                Err(_) => Cell::Not(format!("it took longer than {PATIENCE:?}")),
            };
            println!("{engine:9} {behaviour:24} {:5.1} s  {cell}", began.elapsed().as_secs_f64());
            table.add(engine, *behaviour, cell);
        }
    }
    if let Some(page) = &args.page {
        table.write(page)?;
    }
    Ok(table.is_green())
}
