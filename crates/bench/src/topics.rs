//! Topics: drained, enqueued, picked up, idle, and with a long backlog.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use giga_api::wire::{Topic, TopicJobState};
use giga_worker::Job;

use crate::Size;
use crate::database::{Database, Server as DatabaseServer};
use crate::processes::WorkerProcesses;
use crate::server::Coordinator;
use crate::table::{Row, Series, Table};
use crate::worker::{TOPIC, stamp};

const BATCH: usize = 1_000;
const PATIENCE: Duration = Duration::from_mins(2);
/// Sessions that went idle report their last transactions up to ten seconds later; those belong to the start.
const SETTLE: Duration = Duration::from_secs(20);

/// A coordinator on a database of its own.
struct Bench {
    coordinator: Coordinator,
    database: Option<Database>,
}

/// What a stretch of work cost.
struct Cost {
    rate: f64,
    transactions: Option<f64>,
    rollbacks: Option<i64>,
}

impl Bench {
    async fn on(server: Option<&DatabaseServer>) -> Result<Self> {
        let database = match server {
            Some(server) => Some(server.fresh().await?),
            None => None,
        };
        let coordinator = Coordinator::start(database.as_ref().map(|database| database.url.as_str())).await?;
        Ok(Self { coordinator, database })
    }

    async fn end(self) -> Result<()> {
        self.coordinator.stop().await?;
        match self.database {
            Some(database) => database.drop().await,
            None => Ok(()),
        }
    }

    async fn pause(&self, paused: bool) -> Result<()> {
        let client = &self.coordinator.client;
        if paused {
            client.pause_topic(TOPIC).await?
        } else {
            client.resume_topic(TOPIC).await?
        };
        Ok(())
    }

    /// The topic as the coordinator shows it.
    async fn topic(&self) -> Result<Option<Topic>> {
        let topics = self.coordinator.client.topics().await?.value.topics;
        Ok(topics.into_iter().find(|topic| topic.name == TOPIC))
    }

    async fn count(&self, state: TopicJobState) -> Result<u64> {
        Ok(self.topic().await?.and_then(|topic| topic.by_state.get(&state).copied()).unwrap_or_default())
    }

    async fn workers(&self) -> Result<u64> {
        Ok(self.topic().await?.map_or(0, |topic| topic.workers))
    }

    async fn until(&self, what: &str, is: impl AsyncFn(&Self) -> Result<bool>) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !is(self).await? {
            if Instant::now() > end {
                bail!("waited too long: {what}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// `callers` at a time, each call with `batch` jobs.
    async fn enqueue(&self, jobs: usize, callers: usize, batch: usize) -> Result<()> {
        let queue = self.coordinator.queue().await?;
        let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(jobs.div_ceil(batch)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let (queue, calls) = (queue.clone(), calls.clone());
            tasks.spawn(async move {
                use std::sync::atomic::Ordering;
                while calls
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    let jobs: Vec<Job> = (0..batch).map(|_| Job::new(TOPIC, vec![b'x'; 200])).collect();
                    queue.enqueue_many(jobs).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    async fn measured(&self, jobs: usize, work: impl Future<Output = Result<()>>) -> Result<Cost> {
        let before = match &self.database {
            Some(database) => Some(database.transactions().await?),
            None => None,
        };
        let start = Instant::now();
        work.await?;
        let rate = jobs as f64 / start.elapsed().as_secs_f64();
        let (mut transactions, mut rollbacks) = (None, None);
        if let (Some(database), Some(before)) = (&self.database, before) {
            let after = database.transactions().await?;
            transactions = Some((after.commits - before.commits) as f64 / jobs as f64);
            rollbacks = Some(after.rollbacks - before.rollbacks);
        }
        Ok(Cost { rate, transactions, rollbacks })
    }

    /// All that waits, by workers that are connected before the topic is resumed.
    async fn drain(&self, jobs: usize, processes: usize) -> Result<Cost> {
        let mut workers = WorkerProcesses::start(&self.coordinator, processes, 1)?;
        self.until("the workers connect", async |bench| Ok(bench.workers().await? >= processes as u64))
            .await?;
        let done = self.count(TopicJobState::Done).await?;
        let cost = self
            .measured(jobs, async {
                self.pause(false).await?;
                workers.until(jobs as u64).await?;
                let all = done + jobs as u64;
                self.until("every result is written", async |bench| {
                    Ok(bench.count(TopicJobState::Done).await? >= all)
                })
                .await
            })
            .await?;
        workers.stop().await?;
        Ok(cost)
    }
}

/// Runs of one thing, folded into a row.
#[derive(Default)]
struct Runs {
    rates: Series,
    transactions: Series,
    rollbacks: i64,
    counted: bool,
}

impl Runs {
    fn add(&mut self, cost: &Cost) {
        self.rates.add(cost.rate);
        if let (Some(transactions), Some(rollbacks)) = (cost.transactions, cost.rollbacks) {
            self.transactions.add(transactions);
            self.rollbacks += rollbacks;
            self.counted = true;
        }
    }

    fn row(self, what: String, target: &'static str) -> Row {
        Row {
            who: "giga",
            what,
            unit: "jobs/s",
            figures: self.rates,
            transactions: self.counted.then(|| self.transactions.median()),
            rollbacks: self.counted.then_some(self.rollbacks),
            target,
        }
    }
}

pub(crate) async fn on_postgres(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    for (processes, target) in [(1, "15000, at most 0.05 tx/job"), (8, "15000, at most 0.05 tx/job")] {
        drains(Some(server), processes, size, target, table).await?;
    }
    enqueues(Some(server), 8, 1, size, "4000", table).await?;
    enqueues(Some(server), 8, 100, size, "40000", table).await?;
    pickups(server, size, table).await
}

/// One process does everything here, so a worker beside it is all there is.
pub(crate) async fn on_sqlite(size: Size, table: &mut Table) -> Result<()> {
    drains(None, 1, size, "10000", table).await?;
    enqueues(None, 8, 100, size, "-", table).await
}

fn store_name(server: Option<&DatabaseServer>) -> &'static str {
    if server.is_some() { "PostgreSQL" } else { "SQLite" }
}

async fn drains(
    server: Option<&DatabaseServer>,
    processes: usize,
    size: Size,
    target: &'static str,
    table: &mut Table,
) -> Result<()> {
    let mut runs = Runs::default();
    for _ in 0..size.runs {
        let bench = Bench::on(server).await?;
        bench.pause(true).await?;
        bench.enqueue(size.jobs, 4, BATCH).await?;
        runs.add(&bench.drain(size.jobs, processes).await?);
        bench.end().await?;
    }
    let plural = if processes == 1 { "" } else { "es" };
    let what =
        format!("{}: drain {} jobs, {processes} worker process{plural}", store_name(server), size.jobs);
    table.add(runs.row(what, target));
    Ok(())
}

async fn enqueues(
    server: Option<&DatabaseServer>,
    callers: usize,
    batch: usize,
    size: Size,
    target: &'static str,
    table: &mut Table,
) -> Result<()> {
    let mut runs = Runs::default();
    let jobs = if batch == 1 { size.jobs / 2 } else { size.jobs * 2 };
    for _ in 0..size.runs {
        let bench = Bench::on(server).await?;
        bench.enqueue(100, 1, 100).await?;
        runs.add(&bench.measured(jobs, bench.enqueue(jobs, callers, batch)).await?);
        bench.end().await?;
    }
    let how = if batch == 1 { "one at a time".to_owned() } else { format!("in batches of {batch}") };
    table.add(runs.row(format!("{}: enqueue {how}, {callers} callers", store_name(server)), target));
    Ok(())
}

/// One job at a time on a system that has nothing else to do.
async fn pickups(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    let bench = Bench::on(Some(server)).await?;
    let mut workers = WorkerProcesses::start(&bench.coordinator, 1, 1)?;
    bench.enqueue(1, 1, 1).await?;
    workers.until(1).await?;
    let queue = bench.coordinator.queue().await?;
    for n in 0..size.pickups {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let job = Job::new(TOPIC, stamp());
        queue.enqueue(job).await?;
        workers.until(n as u64 + 2).await?;
    }
    let latencies = Series::of(workers.stop().await?);
    for (share, name, target) in [(0.5, "p50", "3 ms"), (0.99, "p99", "8 ms")] {
        table.add(Row {
            who: "giga",
            what: format!("PostgreSQL: enqueue to handler start, idle, {name}"),
            unit: "ms",
            figures: Series::of([latencies.at(share)]),
            target,
            ..Row::default()
        });
    }
    bench.end().await
}

/// Connected and nothing to do.
pub(crate) async fn idle(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    for streams in [4, 100] {
        let bench = Bench::on(Some(server)).await?;
        bench.enqueue(1, 1, 1).await?;
        let mut workers = WorkerProcesses::start(&bench.coordinator, 1, streams)?;
        workers.until(1).await?;
        bench
            .until("the workers connect", async |bench| Ok(bench.workers().await? >= streams as u64))
            .await?;
        let database = bench.database.as_ref().expect("it was started on one");
        tokio::time::sleep(SETTLE).await;
        let before = database.transactions().await?;
        let start = Instant::now();
        tokio::time::sleep(Duration::from_secs(size.idle_seconds)).await;
        let after = database.transactions().await?;
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        // The looks themselves: each takes two or more.
        let looks = 2.0;
        let rate = ((after.commits - before.commits) as f64 - looks).max(0.0) / minutes;
        table.add(Row {
            who: "giga",
            what: format!("PostgreSQL: transactions while idle, {streams} workers"),
            unit: "per minute",
            figures: Series::of([rate]),
            rollbacks: Some(after.rollbacks - before.rollbacks),
            target: "30",
            ..Row::default()
        });
        if let Some(memory) = bench.coordinator.memory_kib() {
            table.add(Row {
                who: "giga",
                what: format!("coordinator memory, {streams} idle workers"),
                unit: "MiB",
                figures: Series::of([memory / 1024.0]),
                target: "60",
                ..Row::default()
            });
        }
        workers.stop().await?;
        bench.end().await?;
    }
    Ok(())
}

/// The rate of the first jobs of a long queue against that of a short one, and while another session holds a snapshot.
pub(crate) async fn backlog(server: &DatabaseServer, size: Size, table: &mut Table) -> Result<()> {
    let part = size.jobs;
    for (waiting, held) in [(part, false), (size.backlog, false), (size.backlog.min(200_000), true)] {
        let mut runs = Runs::default();
        for _ in 0..size.runs {
            let bench = Bench::on(Some(server)).await?;
            bench.pause(true).await?;
            bench.enqueue(waiting, 4, BATCH).await?;
            let database = bench.database.as_ref().expect("it was started on one");
            let snapshot = if held { Some(database.hold_a_snapshot().await?) } else { None };
            // With a snapshot it is the whole queue that shows whether the dead pile up.
            runs.add(&bench.drain(if held { waiting } else { part }, 1).await?);
            drop(snapshot);
            bench.end().await?;
        }
        let with = if held { ", a snapshot held open" } else { "" };
        table
            .add(runs.row(format!("PostgreSQL: drain with {waiting} waiting{with}"), "0.85 of the shortest"));
    }
    Ok(())
}
