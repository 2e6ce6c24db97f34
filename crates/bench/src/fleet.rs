//! Scored jobs over factory streams: how many are placed, offered and claimed a second, how long one takes on a quiet
//! fleet, and what a connected stream costs.
//!
//! The factories here are streams and heartbeats and nothing more: no git, no engine.

use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Result, bail};
use futures::StreamExt;
use giga_api::client::Idempotency;
use giga_api::wire::EnrollRequest;
use giga_domain::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Size;
use crate::database::Server as DatabaseServer;
use crate::factory::Stub;
use crate::server::{Coordinator, PRODUCT};
use crate::table::{Row, Series, Table};

/// Streams for the rate; the latency is measured with [`Size::streams`].
const FACTORIES: usize = 100;
const PATIENCE: Duration = Duration::from_mins(2);
const TOGETHER: usize = 64;

struct Fleet {
    grants: mpsc::Receiver<Instant>,
    _leave: DropGuard,
}

impl Fleet {
    async fn connect(coordinator: &Coordinator, factories: usize, seats: u32) -> Result<Self> {
        let (sender, grants) = mpsc::channel(100_000);
        let leave = CancellationToken::new();
        let mut joining = futures::stream::iter(0..factories)
            .map(|n| join(coordinator, n, seats, sender.clone(), leave.clone()))
            .buffer_unordered(TOGETHER);
        while let Some(joined) = joining.next().await {
            joined?;
        }
        drop(joining);
        Ok(Self { grants, _leave: leave.drop_guard() })
    }

    /// When each of so many grants came.
    async fn take(&mut self, count: usize) -> Result<Vec<Instant>> {
        let mut came = Vec::with_capacity(count);
        let end = Instant::now() + PATIENCE;
        while came.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.grants.recv()).await {
                Ok(Some(at)) => came.push(at),
                Ok(None) => bail!("every factory of the benchmark has left"),
                Err(_) => bail!("only {} of {count} jobs were granted", came.len()),
            }
        }
        Ok(came)
    }
}

/// One factory: enrolled, known to the coordinator, streaming. Each has a connection of its own, as on a machine of its own.
async fn join(
    coordinator: &Coordinator,
    n: usize,
    seats: u32,
    granted: mpsc::Sender<Instant>,
    leave: CancellationToken,
) -> Result<()> {
    let id = format!("bench-{n}");
    let request = EnrollRequest { factory_id: id.clone(), products: Vec::new(), capabilities: Vec::new() };
    let token = coordinator.client.enroll(&request).await?.value.token;
    let mut stub = Stub::connect(&coordinator.url, &token, &id, seats).await?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = leave.cancelled() => return,
                grant = stub.next() => match grant {
                    Ok(_) => drop(granted.send(Instant::now()).await),
                    Err(_) => return,
                },
            }
        }
    });
    Ok(())
}

fn manifest(n: usize, run_at: Option<&str>) -> Vec<u8> {
    let run_at = run_at.map(|at| format!("runAt: {at}\n")).unwrap_or_default();
    format!("---\nname: bench-{n}\nproduct: {PRODUCT}\nengine: shell\nscript: 'true'\n{run_at}---\nNothing to do.\n")
    .into_bytes()
}

async fn submit(coordinator: &Coordinator, jobs: usize, run_at: Option<&str>) -> Result<()> {
    let mut calls = futures::stream::iter(0..jobs)
        .map(|n| async move { coordinator.client.submit(manifest(n, run_at), &Idempotency::Nothing).await })
        .buffer_unordered(TOGETHER);
    while let Some(submitted) = calls.next().await {
        submitted?;
    }
    Ok(())
}

pub(crate) async fn measure(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    rate(server, size, table).await?;
    quiet(server, size, table).await
}

/// Everything becomes ready at once; then the clock runs until the last grant is with its factory.
async fn rate(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    let (mut rates, mut transactions, mut rollbacks) = (Series::default(), Series::default(), 0);
    for _ in 0..size.runs {
        let database = server.fresh().await?;
        let coordinator = Coordinator::start(Some(&database.url)).await?;
        let seats = size.scored.div_ceil(FACTORIES) as u32;
        let mut fleet = Fleet::connect(&coordinator, FACTORIES, seats).await?;
        let ahead = Duration::from_secs(5) + Duration::from_millis(size.scored as u64 / 2);
        let ready = Instant::now() + ahead;
        let at = Timestamp::ZERO.plus(UNIX_EPOCH.elapsed()? + ahead).to_string();
        submit(&coordinator, size.scored, Some(&at)).await?;
        let before = database.transactions().await?;
        let came = fleet.take(size.scored).await?;
        let last = came.last().copied().unwrap_or(ready);
        rates.add(size.scored as f64 / last.saturating_duration_since(ready).as_secs_f64().max(1e-6));
        let after = database.transactions().await?;
        transactions.add((after.commits - before.commits) as f64 / size.scored as f64);
        rollbacks += after.rollbacks - before.rollbacks;
        drop(fleet);
        coordinator.stop().await?;
        database.drop().await?;
    }
    table.add(Row {
        who: "giga",
        what: format!("PostgreSQL: {} scored jobs to {FACTORIES} factory streams", size.scored),
        unit: "grants/s",
        figures: rates,
        transactions: Some(transactions.median()),
        rollbacks: Some(rollbacks),
        target: "1000",
    });
    Ok(())
}

/// Many streams and one job at a time.
async fn quiet(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    let database = server.fresh().await?;
    let coordinator = Coordinator::start(Some(&database.url)).await?;
    let alone = coordinator.memory_kib();
    let mut fleet = Fleet::connect(&coordinator, size.streams, 4).await?;
    let connected = coordinator.memory_kib();
    let mut latencies = Series::default();
    for n in 0..size.pickups {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let start = Instant::now();
        coordinator.client.submit(manifest(n, None), &Idempotency::Nothing).await?;
        for came in fleet.take(1).await? {
            latencies.add(came.saturating_duration_since(start).as_secs_f64() * 1e3);
        }
    }
    for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
        table.add(Row {
            who: "giga",
            what: format!("PostgreSQL: submit to grant, {} factory streams, {name}", size.streams),
            unit: "ms",
            figures: Series::of([latencies.at(share)]),
            target: "-",
            ..Row::default()
        });
    }
    if let (Some(alone), Some(connected)) = (alone, connected) {
        table.add(Row {
            who: "giga",
            what: "coordinator memory, nobody connected".to_owned(),
            unit: "MiB",
            figures: Series::of([alone / 1024.0]),
            target: "60",
            ..Row::default()
        });
        table.add(Row {
            who: "giga",
            what: format!("coordinator memory per factory stream ({})", size.streams),
            unit: "KiB",
            figures: Series::of([(connected - alone) / size.streams as f64]),
            target: "20",
            ..Row::default()
        });
    }
    drop(fleet);
    coordinator.stop().await?;
    database.drop().await
}
