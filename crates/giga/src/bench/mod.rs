//! `giga bench`: what this build reaches on this machine, as users would see it: real processes, gRPC between them, a
//! real database, and a peer beside it in the same run. It measures and prints; it asserts nothing.
//!
//! The drivers that it knows (PostgreSQL, for transactions and held snapshots) are for watching the database from
//! outside, never for the work itself.

mod crew;
mod database;
mod factory;
mod fleet;
mod peer;
mod server;
mod table;
mod topics;
mod worker;

use crate::args::BenchCommand;
use crate::config::Settings;
use crate::exit::CliError;
use crate::output::{Output, say};
use database::Server as DatabaseServer;
use table::Table;

pub(crate) use factory::run as factory;
pub(crate) use worker::run as worker;

type Measured<T> = Result<T, CliError>;

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

pub(crate) async fn run(command: BenchCommand, settings: &Settings, output: &Output) -> Result<(), CliError> {
    let BenchCommand::Dispatch(args) = command else {
        return Err(CliError::Usage("that is started by benchmarks and tests, not by people".to_owned()));
    };
    crate::serve::allow_many_connections();
    let size = if args.quick { Size::QUICK } else { Size::FULL };
    let wants = |part: &str| args.only.is_empty() || args.only.iter().any(|only| only == part);
    let database = if let Some(url) = settings.bench_database(args.store.as_deref()) {
        Some(DatabaseServer::at(&url).await?)
    } else {
        say("no PostgreSQL: name one with --store postgres://… or DATABASE_URL; measuring SQLite alone");
        None
    };
    let mut table = Table::new(*output);
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
    table.print()
}
