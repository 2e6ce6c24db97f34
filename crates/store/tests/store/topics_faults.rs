//! The PostgreSQL topic store while its server dies and comes back, in the middle of everything.
//!
//! What was acknowledged is there, nothing is done twice, and the store finds its way back without being opened anew.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use giga_domain::topic::{DEFAULT_RETRY, Outcome, TopicKey, TopicStage};
use giga_domain::{JobId, Priority};
use giga_ports::topics::{Assignment, NewTopicJob, Settle, Settled, TopicClaim, TopicStore};
use giga_ports::{Clock, StoreError};
use giga_store::{ClockSource, Tuning, topics_on_postgres};
use giga_testkit::ManualClock;
use giga_testkit::postgres::{PostgresServer, TestDatabase};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};

const LEASE: Duration = Duration::from_secs(30);

fn mail() -> TopicKey {
    TopicKey { product: "demo".parse().unwrap(), topic: "mail".parse().unwrap() }
}

async fn open(url: &str, clock: &Arc<ManualClock>) -> Arc<dyn TopicStore> {
    // Callers hear of the outage, because the store's patience is shorter than it.
    let tuning = Tuning { batch: 8, patience: Duration::from_millis(50), ..Tuning::default() };
    topics_on_postgres(url, ClockSource::Injected(clock.clone()), tuning).await.unwrap()
}

#[derive(Debug, PartialEq)]
enum Reported {
    Made(Vec<JobId>),
    Done(JobId),
    Refused,
}

/// The same call again until it is answered; every refusal is told.
async fn persist<T, F: Future<Output = Result<T, StoreError>>>(
    report: &mpsc::UnboundedSender<Reported>,
    call: impl Fn() -> F,
) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) if error.is_transient() => report.send(Reported::Refused).unwrap(),
            Err(error) => panic!("not passing: {error}"),
        }
    }
}

async fn produce(store: Arc<dyn TopicStore>, next: Arc<AtomicU64>, report: mpsc::UnboundedSender<Reported>) {
    let number = next.fetch_add(5, Ordering::Relaxed);
    let job = |number: u64| NewTopicJob {
        id: JobId::from_parts(ManualClock::default().now(), number.into()),
        key: mail(),
        priority: Priority::Normal,
        payload: number.to_string().into_bytes(),
        idempotency_key: number.is_multiple_of(2).then(|| format!("key-{number}")),
        run_at: None,
        retry: DEFAULT_RETRY,
    };
    let jobs: Vec<NewTopicJob> = (number..number + 5).map(job).collect();
    let made = persist(&report, || store.enqueue(jobs.clone())).await;
    // A repeated call is answered as the first one would have been.
    let ids: Vec<JobId> = made.iter().map(giga_ports::topics::Enqueued::id).collect();
    assert_eq!(ids, jobs.iter().map(|job| job.id).collect::<Vec<_>>());
    report.send(Reported::Made(ids)).unwrap();
}

async fn work(store: Arc<dyn TopicStore>, name: &str, report: &mpsc::UnboundedSender<Reported>) {
    let claim = TopicClaim {
        key: mail(),
        workers: vec![(name.parse().unwrap(), 7)],
        most_bytes: u64::MAX,
        lease: LEASE,
    };
    let held: Vec<Assignment> = persist(report, || store.claim(claim.clone())).await;
    let word = |held: &Assignment| Settle { id: held.id, epoch: held.epoch, outcome: Outcome::Success };
    let words: Vec<Settle> = held.iter().map(word).collect();
    for (held, answer) in held.iter().zip(persist(report, || store.settle(words.clone())).await) {
        match answer {
            Settled::Applied { stage: TopicStage::Done, .. } => report.send(Reported::Done(held.id)).unwrap(),
            other => panic!("{} was nobody else's: {other:?}", held.id),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_everything() {
    let server = Arc::new(spawn_blocking(PostgresServer::start).await.unwrap());
    let database = TestDatabase::on(&server).await;
    let clock = Arc::new(ManualClock::default());
    let store = open(database.url(), &clock).await;
    let (report, mut reported) = mpsc::unbounded_channel();
    let (enough, is_enough) = watch::channel(false);
    let next = Arc::new(AtomicU64::new(1));
    let mut running = JoinSet::new();
    for number in 0..40 {
        let (store, report, next, is_enough) =
            (store.clone(), report.clone(), next.clone(), is_enough.clone());
        running.spawn(async move {
            let name = format!("worker-{number}");
            while !*is_enough.borrow() {
                if number % 2 == 0 {
                    produce(store.clone(), next.clone(), report.clone()).await;
                } else {
                    work(store.clone(), &name, &report).await;
                }
            }
        });
    }
    let (mut made, mut done, mut refused) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut note = |reported: Reported| match reported {
        Reported::Made(ids) => {
            assert!(ids.into_iter().all(|id| made.insert(id)), "made twice");
            (made.len(), done.len(), refused)
        }
        Reported::Done(id) => {
            assert!(done.insert(id), "{id} was done twice");
            (made.len(), done.len(), refused)
        }
        Reported::Refused => {
            refused += 1;
            (made.len(), done.len(), refused)
        }
    };
    for _ in 0..2 {
        // Well into the traffic, then dead, then noticed, then back.
        let mut seen = note(reported.recv().await.unwrap());
        let goal = (seen.0 + 100, seen.1 + 100);
        while seen.0 < goal.0 || seen.1 < goal.1 {
            seen = note(reported.recv().await.unwrap());
        }
        let dying = server.clone();
        spawn_blocking(move || dying.kill9()).await.unwrap();
        let before = seen.2;
        while seen.2 == before {
            seen = note(reported.recv().await.unwrap());
        }
        let rising = server.clone();
        spawn_blocking(move || rising.start_again()).await.unwrap();
    }
    enough.send_replace(true);
    running.join_all().await;
    drop(report);
    while let Some(reported) = reported.recv().await {
        note(reported);
    }

    // With fresh eyes: what was acknowledged is there, and the counts are exact.
    let fresh = open(database.url(), &clock).await;
    for id in &done {
        let job = fresh.job(*id).await.unwrap().expect("acknowledged means durable");
        assert_eq!((job.head.state.stage(), job.head.epoch.0), (TopicStage::Done, 1));
    }
    for id in made.difference(&done) {
        let stage = fresh.job(*id).await.unwrap().expect("acknowledged means durable").head.state.stage();
        // Running: a claim whose answer was lost with the server, for the lease to take back.
        assert!(matches!(stage, TopicStage::Ready | TopicStage::Running), "{id} is {stage}");
    }
    // What is left over is done after the leases have ended, and then everything was done once.
    clock.advance(LEASE);
    store.expire(100_000).await.unwrap();
    let (report, mut reported) = mpsc::unbounded_channel();
    while done.len() < made.len() {
        work(store.clone(), "last", &report).await;
        while let Ok(reported) = reported.try_recv() {
            let Reported::Done(id) = reported else { panic!("{reported:?}") };
            assert!(done.insert(id), "{id} was done twice");
        }
    }
    assert_eq!(made, done);
    let counts = fresh.topics().await.unwrap();
    assert_eq!(counts[0].by_stage, [0, 0, 0, made.len() as u64, 0]);
}
