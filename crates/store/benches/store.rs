//! How many jobs a second each store takes in, and hands out and takes back, and what that costs in transactions. Run
//! with `cargo bench -p giga-store --bench store`; `-- --jobs 2000 --runs 3` for a quick look.
//!
//! PostgreSQL is a private server with fsync on, as it comes. Its own statistics say how many transactions a job took
//! and whether any was rolled back. The raw line is the limit: one connection, one insert per transaction.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::manifest::from_json;
use giga_domain::token::{Permission, TokenRecord, TokenSecret};
use giga_domain::{Actor, FactoryId, Holder, HolderAction, RunReport, Timestamp};
use giga_ports::store::{Advertise, Claim, Claimed, Enroll, Hold, NewJob, Submit, Touch};
use giga_ports::{Clock, Randomness, Store};
use giga_store::{BatchStore, ClockSource, MemoryBackend, PostgresBackend, SqliteBackend, Tuning};
use giga_testkit::SeededRandomness;
use giga_testkit::postgres::{PostgresServer, TestDatabase};

use common::{Series, Wall, block_on, connect, number};

struct Settings {
    jobs: usize,
    runs: usize,
}

fn main() {
    block_on(run(Settings { jobs: number("--jobs", 10_000), runs: number("--runs", 3) }));
}

async fn run(settings: Settings) {
    println!("{} jobs a run, median of {} runs (range)\n", settings.jobs, settings.runs);
    println!(
        "{:<10} {:<26} {:>7} {:>26} {:>12} {:>14} {:>9}",
        "store", "what", "callers", "jobs/s (range)", "commits/job", "db tx/job", "rollbacks"
    );
    let server = PostgresServer::start();
    for callers in [1, 8, 64] {
        for kind in ["memory", "sqlite", "postgres"] {
            measure(kind, callers, &settings, &server).await;
        }
        println!();
    }
    raw_limit(&server, &settings).await;
    println!("peak resident memory of this process: {}", peak_memory());
}

/// One store for a number of callers: submit all jobs, then claim, start and report each.
async fn measure(kind: &str, callers: usize, settings: &Settings, server: &PostgresServer) {
    // One caller on a durable store is bound by the disk; a tenth of the jobs tells as much.
    let jobs = if callers == 1 { settings.jobs / 10 } else { settings.jobs };
    let (mut submits, mut lives) = (Measured::default(), Measured::default());
    for _ in 0..settings.runs {
        let bench = Bench::open(kind, server).await;
        submits.add(jobs, &bench, bench.submit(jobs, callers)).await;
        lives.add(jobs, &bench, bench.live(callers)).await;
    }
    submits.print(kind, "submit", callers);
    lives.print(kind, "claim + start + report", callers);
}

struct Bench {
    store: Arc<dyn Store>,
    random: SeededRandomness,
    factory: FactoryId,
    /// The server's own count of this database's transactions.
    watcher: Option<tokio_postgres::Client>,
    _folder: Option<tempfile::TempDir>,
    _database: Option<TestDatabase>,
}

impl Bench {
    async fn open(kind: &str, server: &PostgresServer) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Wall);
        let (mut folder, mut database, mut watcher) = (None, None, None);
        let store: Arc<dyn Store> = match kind {
            "memory" => started(MemoryBackend::new(clock)).await,
            "sqlite" => {
                let dir = tempfile::tempdir().expect("a folder");
                let backend =
                    SqliteBackend::open(&dir.path().join("giga.db"), clock).await.expect("SQLite opens");
                folder = Some(dir);
                started(backend).await
            }
            _ => {
                let fresh = TestDatabase::on(server).await;
                let backend =
                    PostgresBackend::open(fresh.url(), ClockSource::Database).await.expect("it opens");
                watcher = Some(connect(fresh.url()).await);
                database = Some(fresh);
                started(backend).await
            }
        };
        let factory: FactoryId = "bench".parse().expect("a good id");
        let bench = Self {
            store,
            random: SeededRandomness::new(1),
            factory,
            watcher,
            _folder: folder,
            _database: database,
        };
        bench.enroll().await;
        bench
    }

    async fn enroll(&self) {
        let secret = TokenSecret::from_random("factory", self.random.bytes());
        let scope = FactoryScope::default();
        let token = TokenRecord {
            id: "tok-bench".parse().expect("a good id"),
            hash: secret.hash(),
            permission: Permission::Factory { factory: self.factory.clone(), scope: scope.clone() },
            label: String::new(),
            created_at: Timestamp::ZERO,
            expires_at: None,
            revoked_at: None,
        };
        let new = Enroll { id: self.factory.clone(), scope, token, actor: Actor::system("bench") };
        self.store.enroll(new).await.expect("it enrols");
        let advertised = Advertised { seat_limit: 1_000_000, ..Advertised::default() };
        self.store
            .advertise(Advertise { factory: self.factory.clone(), advertised })
            .await
            .expect("it advertises");
    }

    fn job(&self, n: usize) -> NewJob {
        let manifest = serde_json::json!({"name": format!("job-{n}"), "ship": "auto", "repo": "hello"});
        let parsed = from_json(&manifest).expect("a good manifest");
        let body = "Make the greeting friendlier, and keep the tests green. ".repeat(4);
        NewJob {
            id: self.random.job_id(Wall.now()),
            product: "bench".parse().expect("a good id"),
            spec: parsed.to_spec(Vec::new(), None),
            fingerprint: parsed.fingerprint(&body),
            manifest,
            body,
            persona: None,
            under: None,
            tree: giga_domain::TreeLimits::default(),
        }
    }

    async fn submit(&self, jobs: usize, callers: usize) {
        let made: Vec<NewJob> = (0..jobs).map(|n| self.job(n)).collect();
        self.each(made, callers, |store, job| async move {
            store
                .submit(Submit { jobs: vec![job], actor: Actor::system("bench") })
                .await
                .expect("it is taken in");
        })
        .await;
    }

    /// Every queued job through its whole life: three writes each, as a factory would send them.
    async fn live(&self, callers: usize) {
        let mut queued = Vec::new();
        while let page = self.store.read().live_jobs(queued.last().copied(), 1_000).await.expect("a page")
            && !page.is_empty()
        {
            queued.extend(page.iter().map(|job| job.id));
        }
        let factory = self.factory.clone();
        self.each(queued, callers, move |store, job| {
            let factory = factory.clone();
            async move {
                let claim = Claim {
                    job,
                    rev: None,
                    dispatch_seq: None,
                    factory: factory.clone(),
                    request: job.to_string().parse().expect("an id is a request id"),
                    lease: Duration::from_mins(1),
                };
                let Claimed::Granted(held) = store.claim(claim).await.expect("it answers") else {
                    panic!("nobody else claims");
                };
                let holder = Holder { factory, epoch: held.epoch };
                for action in [HolderAction::Start, HolderAction::Report(RunReport::default())] {
                    let write = Hold { job, holder: holder.clone(), actions: vec![action] };
                    store.hold(write).await.expect("it holds");
                }
            }
        })
        .await;
    }

    async fn each<T, F, Fut>(&self, items: Vec<T>, callers: usize, work: F)
    where
        T: Send + 'static,
        F: Fn(Arc<dyn Store>, T) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let mut shares: Vec<Vec<T>> = (0..callers).map(|_| Vec::new()).collect();
        for (n, item) in items.into_iter().enumerate() {
            shares[n % callers].push(item);
        }
        let mut tasks = tokio::task::JoinSet::new();
        for share in shares {
            let (store, work) = (self.store.clone(), work.clone());
            tasks.spawn(async move {
                for item in share {
                    work(store.clone(), item).await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("a caller finishes");
        }
    }
}

async fn started<B: giga_store::engine::Backend>(backend: B) -> Arc<dyn Store> {
    Arc::new(BatchStore::start(backend, Tuning::default()).await.expect("it starts"))
}

/// A series, and how many commits a job took in the last run.
#[derive(Default)]
struct Measured {
    series: Series,
    commits: f64,
}

impl Measured {
    async fn add(&mut self, jobs: usize, bench: &Bench, work: impl Future<Output = ()>) {
        let before = bench.store.stats().commits;
        let write = async { bench.store.touch(Touch { seen: Vec::new() }).await.expect("an empty write") };
        let work = async {
            work.await;
            self.commits = (bench.store.stats().commits - before) as f64 / jobs as f64;
        };
        self.series.add(jobs, bench.watcher.as_ref(), work, write).await;
    }

    fn print(&mut self, store: &str, what: &str, callers: usize) {
        let (rates, (database, rollbacks)) = (self.series.rates(), self.series.database());
        println!(
            "{store:<10} {what:<26} {callers:>7} {rates:>26} {:>12.3} {database:>14} {rollbacks:>9}",
            self.commits
        );
    }
}

/// What the same machine does without us: one small insert per transaction from one connection.
async fn raw_limit(server: &PostgresServer, settings: &Settings) {
    let database = TestDatabase::on(server).await;
    let client = connect(database.url()).await;
    client.batch_execute("CREATE TABLE raw (id bigint PRIMARY KEY, body text)").await.expect("a table");
    let insert = client.prepare("INSERT INTO raw VALUES ($1, repeat('x', 200))").await.expect("a statement");
    let count = settings.jobs / 10;
    let start = Instant::now();
    for n in 0..count {
        client.execute(&insert, &[&(n as i64)]).await.expect("an insert");
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("limit: raw PostgreSQL, 1 connection, 1 insert per transaction: {rate:.0} per second");
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or_else(|| "not known on this system".to_owned(), |kb| kb.trim().to_owned())
}
