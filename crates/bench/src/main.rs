//! What this build reaches on this machine, as users would see it: real processes, gRPC between them, a real database,
//! and a peer beside it in the same run. It measures and prints; it asserts nothing about time.
//!
//! The drivers that it knows (PostgreSQL, for transactions and held snapshots) are for watching the database from
//! outside, never for the work itself. `cargo xtask bench dispatch`, `cargo xtask bench merges` and
//! `cargo xtask bench sandbox` build and run it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its progress and its table"
)]

mod database;
mod factory;
mod fleet;
mod merges;
mod peer;
mod processes;
mod repository;
mod sandbox;
mod server;
mod table;
mod topics;
mod worker;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser};
use database::Server as DatabaseServer;
use table::Table;

#[derive(Debug, Parser)]
#[command(name = "giga-bench", version, about = "Measures giga on this machine")]
enum Command {
    /// Topics and scored jobs, end to end: real processes, gRPC, PostgreSQL and SQLite, a peer beside them
    #[command(after_help = "\
Examples:
  giga-bench dispatch --quick
  giga-bench dispatch --store postgres://postgres@127.0.0.1/postgres --peer benches/peers/graphile-worker
  giga-bench dispatch --only topics --only peer

It creates databases of its own on that server and drops them. Nothing else should run meanwhile;
`cargo xtask bench dispatch` does it all beside a private PostgreSQL.")]
    Dispatch(DispatchArgs),
    /// Ready jobs of one repository through the merge queue, and the same ones merged by hand
    #[command(after_help = "\
Examples:
  giga-bench merges --quick
  giga-bench merges --check 0.1 --check 2 --json

It needs git, and fails unless every job is in the branch exactly once.")]
    Merges(MergesArgs),
    /// The start of a job's process, with and without the sandbox
    #[command(after_help = "\
Examples:
  giga-bench sandbox --quick
  giga-bench sandbox --times 200 --json

It needs bubblewrap, and `giga` beside it.")]
    Sandbox(SandboxArgs),
    /// One worker process of a benchmark
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// One factory of a benchmark that does nothing with its jobs but report them
    #[command(hide = true)]
    Factory(FactoryArgs),
}

#[derive(Debug, Args)]
struct DispatchArgs {
    /// A PostgreSQL on which databases may be created; without one only SQLite is measured
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    store: Option<String>,
    /// The folder of the peer, its packages installed with `npm ci`
    #[arg(long, value_name = "DIR")]
    peer: Option<PathBuf>,
    /// Only this part; several may be named
    #[arg(long, value_name = "PART", value_parser = ["topics", "idle", "backlog", "fleet", "peer", "sqlite"])]
    only: Vec<String>,
    /// Small sizes, one run each: whether it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct MergesArgs {
    /// How many seconds a check of the merged files takes; several may be named
    #[arg(long, value_name = "SECONDS", default_values_t = [0.1, 2.0])]
    check: Vec<f64>,
    /// How many jobs are ready
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=20))]
    jobs: u16,
    /// Four jobs, one run each: whether it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SandboxArgs {
    /// How many processes of each
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    times: u16,
    /// Five of each: whether it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Where the coordinator is and who is calling.
#[derive(Debug, Args)]
struct CallerArgs {
    #[arg(long, env = "GIGA_URL")]
    url: String,
    #[arg(long, env = "GIGA_TOKEN", hide_env_values = true)]
    token: String,
}

#[derive(Debug, Args)]
struct WorkerArgs {
    #[command(flatten)]
    caller: CallerArgs,
    #[arg(long, env = "GIGA_PRODUCT")]
    product: String,
    #[arg(long, default_value = "bench")]
    name: String,
    #[arg(long, default_value_t = 1)]
    streams: usize,
    #[arg(long)]
    print_each: bool,
    /// How long a handler takes
    #[arg(long, default_value_t = 0)]
    work_ms: u64,
}

#[derive(Debug, Args)]
struct FactoryArgs {
    #[command(flatten)]
    caller: CallerArgs,
    #[arg(long)]
    id: String,
    #[arg(long, default_value_t = 4)]
    seats: u32,
}

/// How much of everything.
#[derive(Debug, Clone, Copy)]
struct Size {
    runs: usize,
    jobs: usize,
    backlog: usize,
    pickups: usize,
    idle_seconds: u64,
    scored: usize,
    streams: usize,
}

impl Size {
    const FULL: Self = Self {
        runs: 3,
        jobs: 20_000,
        backlog: 1_000_000,
        pickups: 300,
        idle_seconds: 60,
        scored: 5_000,
        streams: 2_000,
    };
    const QUICK: Self = Self {
        runs: 1,
        jobs: 5_000,
        backlog: 50_000,
        pickups: 50,
        idle_seconds: 10,
        scored: 500,
        streams: 200,
    };
}

#[tokio::main]
async fn main() -> Result<()> {
    match Command::parse() {
        Command::Dispatch(args) => dispatch(args).await,
        Command::Merges(args) => {
            let mut table = Table::default();
            merges::measure(&args, &mut table).await?;
            print_table(&table, args.json);
            Ok(())
        }
        Command::Sandbox(args) => {
            let mut table = Table::default();
            sandbox::measure(&args, &mut table).await?;
            print_table(&table, args.json);
            Ok(())
        }
        Command::Worker(args) => worker::run(args).await,
        Command::Factory(args) => factory::run(args).await,
    }
}

async fn dispatch(args: DispatchArgs) -> Result<()> {
    allow_many_connections();
    let size = if args.quick { Size::QUICK } else { Size::FULL };
    let wants = |part: &str| args.only.is_empty() || args.only.iter().any(|only| only == part);
    let database = if let Some(url) = &args.store {
        Some(DatabaseServer::at(url).await?)
    } else {
        progress("no PostgreSQL: name one with --store postgres://… or DATABASE_URL; measuring SQLite alone");
        None
    };
    let mut table = Table::default();
    if let Some(database) = &database {
        if wants("topics") {
            topics::on_postgres(database, size, &mut table).await?;
        }
        if wants("idle") {
            topics::idle(database, size, &mut table).await?;
        }
        if wants("backlog") {
            topics::backlog(database, size, &mut table).await?;
        }
        if wants("fleet") {
            fleet::measure(database, size, &mut table).await?;
        }
        if wants("peer")
            && let Some(folder) = &args.peer
        {
            peer::graphile_worker(folder, database, size, &mut table).await?;
        }
    }
    if wants("sqlite") {
        topics::on_sqlite(size, &mut table).await?;
    }
    print_table(&table, args.json);
    Ok(())
}

fn print_table(table: &Table, json: bool) {
    if json {
        println!("{}", table.json());
    } else {
        print!("{}", table.text());
    }
}

/// To stderr, so that the table can be redirected.
fn progress(text: &str) {
    eprintln!("{text}");
}

/// As many as the system lets this process have.
fn allow_many_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
