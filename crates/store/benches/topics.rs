//! How many topic jobs a second a store takes in, and hands out and takes back, and what that costs in transactions. Run
//! with `cargo bench -p giga-store --bench topics`; `-- --jobs 20000 --runs 1 --backlog 100000` for a quick look, `--only
//! postgres` for one store.
//!
//! PostgreSQL is a private server with fsync on, as it comes. Its own statistics say how many transactions a job took and
//! whether any was rolled back. The raw lines are the limit in the same run: hand-written statements on bare connections.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use giga_domain::Priority;
use giga_domain::topic::{DEFAULT_RETRY, Outcome, TopicKey};
use giga_ports::topics::{NewTopicJob, Settle, TopicClaim, TopicStore};
use giga_ports::{Clock, Randomness};
use giga_store::{ClockSource, Tuning, topics_on_postgres, topics_on_sqlite};
use giga_testkit::SeededRandomness;
use giga_testkit::postgres::{PostgresServer, TestDatabase};

use common::{Series, Wall, block_on, connect, number, word};

struct Settings {
    jobs: usize,
    runs: usize,
    backlog: usize,
    only: Option<String>,
}

fn main() {
    block_on(run(Settings {
        jobs: number("--jobs", 20_000),
        runs: number("--runs", 3),
        backlog: number("--backlog", 1_000_000),
        only: word("--only"),
    }));
}

async fn run(settings: Settings) {
    println!("{} jobs of 200 bytes a run, median of {} runs (range)\n", settings.jobs, settings.runs);
    println!("{:<10} {:<44} {:>28} {:>10} {:>10}", "store", "what", "jobs/s (range)", "tx/job", "rollbacks");
    let server = PostgresServer::start();
    for kind in ["postgres", "sqlite"] {
        if settings.only.as_deref().is_some_and(|only| only != kind) {
            continue;
        }
        enqueues(kind, &settings, &server).await;
        for (callers, batch) in [(1, 100), (1, 500), (8, 100), (8, 500)] {
            drains(kind, callers, batch, &settings, &server).await;
        }
        backlogs(kind, &settings, &server).await;
        println!();
    }
    if settings.only.as_deref() != Some("sqlite") {
        raw(&settings, &server).await;
    }
}

async fn enqueues(kind: &str, settings: &Settings, server: &PostgresServer) {
    for (callers, batch) in [(8, 1), (1, 100), (8, 100), (1, 1_000), (8, 1_000)] {
        let mut series = Series::default();
        // One at a time is bound by the disk; a quarter of the jobs tells as much.
        let jobs = if batch == 1 { settings.jobs / 4 } else { settings.jobs };
        for _ in 0..settings.runs {
            let bench = Bench::open(kind, server).await;
            bench.measure(&mut series, jobs, bench.enqueue(jobs, callers, batch)).await;
        }
        print(series, kind, &format!("enqueue, {callers} callers, {batch} a call"));
    }
}

async fn drains(kind: &str, callers: usize, batch: u32, settings: &Settings, server: &PostgresServer) {
    let mut series = Series::default();
    for _ in 0..settings.runs {
        let bench = Bench::open(kind, server).await;
        bench.enqueue(settings.jobs, 1, 1_000).await;
        bench.measure(&mut series, settings.jobs, bench.drain(settings.jobs, callers, batch)).await;
    }
    print(series, kind, &format!("claim + settle, {callers} callers, {batch} a call"));
}

/// The rate with few and with many waiting, and while somebody holds an old snapshot.
async fn backlogs(kind: &str, settings: &Settings, server: &PostgresServer) {
    let drained = settings.jobs.max(20_000);
    for waiting in [10_000, settings.backlog] {
        let bench = Bench::open(kind, server).await;
        bench.enqueue(waiting + drained, 8, 1_000).await;
        let mut series = Series::default();
        bench.measure(&mut series, drained, bench.drain(drained, 8, 500)).await;
        print(series, kind, &format!("drain, 8 x 500, {waiting} left waiting"));
    }
    if kind != "postgres" {
        return;
    }
    let bench = Bench::open(kind, server).await;
    let jobs = drained * 10;
    bench.enqueue(jobs, 8, 1_000).await;
    let holder = connect(bench.database.as_ref().expect("a database").url()).await;
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM topic_counts";
    holder.batch_execute(hold).await.expect("a snapshot");
    for part in 1..=4 {
        let mut series = Series::default();
        bench.measure(&mut series, jobs / 4, bench.drain(jobs / 4, 8, 500)).await;
        print(series, kind, &format!("drain, 8 x 500, old snapshot, part {part} of {jobs}"));
    }
}

struct Bench {
    store: Arc<dyn TopicStore>,
    random: SeededRandomness,
    /// The server's own count of this database's transactions.
    watcher: Option<tokio_postgres::Client>,
    database: Option<TestDatabase>,
    _folder: Option<tempfile::TempDir>,
}

fn topic() -> TopicKey {
    TopicKey { product: "bench".parse().expect("a good id"), topic: "mail".parse().expect("a good name") }
}

impl Bench {
    async fn open(kind: &str, server: &PostgresServer) -> Self {
        let random = SeededRandomness::new(1);
        if kind == "sqlite" {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("giga.db");
            let store = topics_on_sqlite(&path, Arc::new(Wall), Tuning::default()).await.expect("it opens");
            return Self { store, random, watcher: None, database: None, _folder: Some(folder) };
        }
        let database = TestDatabase::on(server).await;
        let store = topics_on_postgres(database.url(), ClockSource::Database, Tuning::default());
        let store = store.await.expect("it opens");
        let watcher = Some(connect(database.url()).await);
        Self { store, random, watcher, database: Some(database), _folder: None }
    }

    fn job(&self) -> NewTopicJob {
        NewTopicJob {
            id: self.random.job_id(Wall.now()),
            key: topic(),
            priority: Priority::Normal,
            payload: vec![b'x'; 200],
            idempotency_key: None,
            run_at: None,
            retry: DEFAULT_RETRY,
        }
    }

    async fn enqueue(&self, jobs: usize, callers: usize, batch: usize) {
        let mut tasks = tokio::task::JoinSet::new();
        assert_eq!(jobs % batch, 0, "a rate over jobs that were not made would flatter");
        for caller in 0..callers {
            // The calls are dealt in turn, so that every one of them is made whatever the number of callers.
            let calls: Vec<Vec<NewTopicJob>> = (caller..jobs / batch)
                .step_by(callers)
                .map(|_| (0..batch).map(|_| self.job()).collect())
                .collect();
            let store = self.store.clone();
            tasks.spawn(async move {
                for call in calls {
                    store.enqueue(call).await.expect("it is taken in");
                }
            });
        }
        tasks.join_all().await;
    }

    async fn drain(&self, jobs: usize, callers: usize, batch: u32) {
        let left = Arc::new(AtomicUsize::new(jobs / batch as usize));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..callers {
            let (store, left) = (self.store.clone(), left.clone());
            tasks.spawn(async move {
                let worker = format!("worker-{number}").parse().expect("a good id");
                let workers = vec![(worker, batch)];
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
                {
                    let claim = TopicClaim {
                        key: topic(),
                        workers: workers.clone(),
                        most_bytes: u64::MAX,
                        lease: Duration::from_secs(30),
                    };
                    let held = store.claim(claim).await.expect("it answers");
                    assert_eq!(
                        held.len(),
                        batch as usize,
                        "a rate over jobs that were not claimed would flatter"
                    );
                    let words = held.into_iter().map(|held| Settle {
                        id: held.id,
                        epoch: held.epoch,
                        outcome: Outcome::Success,
                    });
                    store.settle(words.collect()).await.expect("it answers");
                }
            });
        }
        tasks.join_all().await;
    }

    async fn measure(&self, series: &mut Series, jobs: usize, work: impl Future<Output = ()>) {
        let write = async { drop(self.store.expire(1).await.expect("an empty write")) };
        series.add(jobs, self.watcher.as_ref(), work, write).await;
    }
}

fn print(mut series: Series, store: &str, what: &str) {
    let (rates, (database, rollbacks)) = (series.rates(), series.database());
    println!("{store:<10} {what:<44} {rates:>28} {database:>10} {rollbacks:>10}");
}

/// What the same machine does without us: claim and complete by hand, two statements and nothing else.
async fn raw(settings: &Settings, server: &PostgresServer) {
    for (callers, batch) in [(1, 100_i64), (1, 500), (8, 100), (8, 500)] {
        let database = TestDatabase::on(server).await;
        let client = connect(database.url()).await;
        let schema = "CREATE TABLE raw (id bigint PRIMARY KEY, state smallint, worker text, body text);
                      CREATE INDEX raw_ready ON raw (id) WHERE state = 1";
        client.batch_execute(schema).await.expect("a table");
        let fill = format!(
            "INSERT INTO raw SELECT n, 1, NULL, repeat('x', 200) FROM generate_series(1, {}) n",
            settings.jobs
        );
        client.batch_execute(&fill).await.expect("jobs");
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let client = connect(database.url()).await;
            tasks.spawn(async move {
                let claim = format!(
                    "UPDATE raw SET state = 2, worker = 'w' WHERE id IN (SELECT id FROM raw WHERE state = 1 \
                     ORDER BY id LIMIT {batch} FOR UPDATE SKIP LOCKED) RETURNING id, body"
                );
                let claim = client.prepare(&claim).await.expect("a statement");
                let complete = "UPDATE raw SET state = 3 WHERE id = ANY($1)";
                let complete = client.prepare(complete).await.expect("a statement");
                loop {
                    let rows = client.query(&claim, &[]).await.expect("a claim");
                    if rows.is_empty() {
                        break;
                    }
                    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                    client.execute(&complete, &[&ids]).await.expect("done");
                }
            });
        }
        tasks.join_all().await;
        let rate = settings.jobs as f64 / start.elapsed().as_secs_f64();
        println!(
            "{:<10} {:<44} {rate:>28.0}",
            "raw SQL",
            format!("claim + complete, {callers} connections, {batch}")
        );
    }
}
