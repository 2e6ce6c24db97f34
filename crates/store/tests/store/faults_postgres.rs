//! The PostgreSQL store while its server dies, stops and cuts connections.
//!
//! What was acknowledged is there, what was not can be sent again, nothing is there twice, and the store finds its
//! way back without being opened anew.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use giga_domain::{Actor, EventSeq, FeedPos, JobId, Stage};
use giga_ports::store::{NewJob, Submit, Submitted};
use giga_ports::{Clock, Store};
use giga_store::{BatchStore, ClockSource, PostgresBackend, Tuning};
use giga_testkit::ManualClock;
use giga_testkit::postgres::{PostgresServer, TestDatabase};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_postgres::NoTls;

/// So few per transaction that an outage falls between, or into, transactions.
const SMALL_BATCHES: usize = 4;

async fn open(url: &str, patience: Duration) -> Arc<dyn Store> {
    let clock = Arc::new(ManualClock::default());
    let backend = PostgresBackend::open(url, ClockSource::Injected(clock)).await.unwrap();
    let tuning = Tuning { batch: SMALL_BATCHES, patience, ..Tuning::default() };
    Arc::new(BatchStore::start(backend, tuning).await.unwrap())
}

fn new_job(number: u64) -> NewJob {
    NewJob {
        id: JobId::from_parts(ManualClock::default().now(), number.into()),
        product: "demo".parse().unwrap(),
        spec: serde_json::from_value(json!({ "name": format!("job {number}") })).unwrap(),
        manifest: json!({}),
        body: "body".to_owned(),
        persona: None,
        under: None,
        tree: giga_domain::TreeLimits::default(),
        fingerprint: "fingerprint".to_owned(),
    }
}

/// What a caller tells of its attempts.
#[derive(Debug, PartialEq)]
enum Reported {
    Acknowledged(JobId),
    Refused,
}

/// Two hundred callers, each with one submit under way at any time. Each repeats the very same command until it is
/// acknowledged, and goes on with the next job until there is enough.
struct Callers {
    running: JoinSet<()>,
    reported: mpsc::UnboundedReceiver<Reported>,
    enough: watch::Sender<bool>,
    acknowledged: BTreeSet<JobId>,
}

impl Callers {
    fn start(store: &Arc<dyn Store>) -> Self {
        let (report, reported) = mpsc::unbounded_channel();
        let (enough, is_enough) = watch::channel(false);
        let next = Arc::new(AtomicU64::new(0));
        let mut running = JoinSet::new();
        for _ in 0..200 {
            let (store, report, next, is_enough) =
                (store.clone(), report.clone(), next.clone(), is_enough.clone());
            running.spawn(async move {
                while !*is_enough.borrow() {
                    let new = new_job(next.fetch_add(1, Ordering::Relaxed));
                    persist(&*store, new, &report).await;
                }
            });
        }
        Self { running, reported, enough, acknowledged: BTreeSet::new() }
    }

    async fn next(&mut self) -> Reported {
        let reported = self.reported.recv().await.expect("callers go on until there is enough");
        if let Reported::Acknowledged(id) = &reported {
            assert!(self.acknowledged.insert(*id), "{id} was made twice");
        }
        reported
    }

    /// The acknowledged jobs, and whether everything that was still told was an acknowledgement.
    async fn finish(mut self) -> (BTreeSet<JobId>, bool) {
        self.enough.send_replace(true);
        self.running.join_all().await;
        let mut smooth = true;
        while let Some(reported) = self.reported.recv().await {
            match reported {
                Reported::Acknowledged(id) => assert!(self.acknowledged.insert(id), "{id} was made twice"),
                Reported::Refused => smooth = false,
            }
        }
        (self.acknowledged, smooth)
    }
}

async fn persist(store: &dyn Store, new: NewJob, report: &mpsc::UnboundedSender<Reported>) {
    loop {
        let answer = store.submit(Submit { jobs: vec![new.clone()], actor: Actor::system("test") }).await;
        match answer.as_deref() {
            Ok([Submitted::Created(job)]) => return report.send(Reported::Acknowledged(job.id)).unwrap(),
            Err(error) if error.is_transient() => report.send(Reported::Refused).unwrap(),
            other => panic!("neither made nor passing: {other:?}"),
        }
    }
}

/// Every job is there, whole and once, and nothing else is.
async fn assert_each_once(store: &dyn Store, jobs: &BTreeSet<JobId>) {
    let read = store.read();
    for id in jobs {
        let job = read.job(*id).await.unwrap().expect("acknowledged means durable");
        assert_eq!((job.stage(), job.last_event), (Stage::Queued, EventSeq(1)));
        assert!(read.job_text(*id).await.unwrap().is_some());
    }
    let feed = read.feed(FeedPos::ZERO, 1_000_000).await.unwrap();
    let named: BTreeSet<JobId> = feed.iter().filter_map(|event| Some(event.job?.0)).collect();
    assert_eq!((feed.len(), &named), (jobs.len(), jobs), "one event each");
    let queue = read.queue_state(&"demo".parse().unwrap()).await.unwrap();
    assert_eq!((queue.count(Stage::Queued), queue.version), (jobs.len() as u64, jobs.len() as u64));
}

async fn at(server: &Arc<PostgresServer>, order: impl FnOnce(&PostgresServer) + Send + 'static) {
    let server = server.clone();
    spawn_blocking(move || order(&server)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_submits() {
    let server = Arc::new(spawn_blocking(PostgresServer::start).await.unwrap());
    let database = TestDatabase::on(&server).await;
    // Callers hear of the outage, because the store's patience is shorter than it.
    let store = open(database.url(), Duration::from_millis(50)).await;
    let mut callers = Callers::start(&store);
    for _ in 0..50 {
        assert_ne!(callers.next().await, Reported::Refused, "the server is well");
    }
    at(&server, PostgresServer::kill9).await;
    assert!(store.read().ping().await.unwrap_err().is_transient());
    while callers.next().await != Reported::Refused {}
    at(&server, PostgresServer::start_again).await;

    let (acknowledged, _) = callers.finish().await;
    store.read().ping().await.expect("it found its way back");
    // A look with fresh eyes too, so that nothing is answered from memory.
    let fresh = open(database.url(), Duration::ZERO).await;
    assert_each_once(&*fresh, &acknowledged).await;
    assert_each_once(&*store, &acknowledged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_outage_is_waited_out() {
    let server = Arc::new(spawn_blocking(PostgresServer::start).await.unwrap());
    let database = TestDatabase::on(&server).await;
    let store = open(database.url(), Duration::from_mins(1)).await;
    let mut callers = Callers::start(&store);
    assert_ne!(callers.next().await, Reported::Refused);
    at(&server, PostgresServer::stop).await;
    assert!(store.read().ping().await.unwrap_err().is_transient());
    at(&server, PostgresServer::start_again).await;

    let (acknowledged, smooth) = callers.finish().await;
    assert!(smooth, "nobody hears of an outage that patience covers");
    assert!(store.stats().retries > 0, "the outage hit nothing");
    assert_each_once(&*store, &acknowledged).await;
}

/// As a failover or an impatient administrator does, over and over: readers and the writer lose their connections.
#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_are_made_again() {
    let server = Arc::new(spawn_blocking(PostgresServer::start).await.unwrap());
    let database = TestDatabase::on(&server).await;
    let store = open(database.url(), Duration::from_mins(1)).await;
    let (admin, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut callers = Callers::start(&store);
    for _ in 0..5 {
        for _ in 0..20 {
            assert_ne!(callers.next().await, Reported::Refused, "the writer tries again by itself");
        }
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert!(!admin.query(sql, &[]).await.unwrap().is_empty(), "there was something to cut");
        let product = "demo".parse().unwrap();
        for answer in join_all((0..4).map(|_| store.read().queue_state(&product))).await {
            answer.expect("a reader that lost its connection makes a new one");
        }
    }
    let (acknowledged, smooth) = callers.finish().await;
    assert!(smooth);
    assert_each_once(&*store, &acknowledged).await;
    drop(admin);
    connection.await.unwrap().unwrap();
}
