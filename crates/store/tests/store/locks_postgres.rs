//! What the dispatcher's idle work must not wait for: it shares a database with busy coordinators.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Actor, JobId, NodeId};
use giga_ports::store::{DispatchStore, JobStore, MakeOffers, NewJob, NewOffer, Sent, Submit, TakeLead};
use giga_ports::{Clock, Store};
use giga_store::{BatchStore, ClockSource, PostgresBackend, Tuning};
use giga_testkit::ManualClock;
use giga_testkit::postgres::{PostgresServer, TestDatabase};
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio_postgres::NoTls;

const LEASE: Duration = Duration::from_secs(10);

/// Long past anything that a statement needs; a store that waits for a lock waits for ever.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn idle_work_waits_for_nobody() {
    let server = Arc::new(spawn_blocking(PostgresServer::start).await.unwrap());
    let database = TestDatabase::on(&server).await;
    let clock = Arc::new(ManualClock::default());
    let backend = PostgresBackend::open(database.url(), ClockSource::Injected(clock.clone())).await.unwrap();
    let store = BatchStore::start(backend, Tuning::default()).await.unwrap();
    let node: NodeId = "node".parse().unwrap();
    let term = store.lead(TakeLead { node: node.clone(), lease: LEASE }).await.unwrap().term;
    let new = NewJob {
        id: JobId::from_parts(clock.now(), 1),
        product: "demo".parse().unwrap(),
        spec: serde_json::from_value(json!({ "name": "offered" })).unwrap(),
        manifest: json!({}),
        body: "body".to_owned(),
        persona: None,
        under: None,
        tree: giga_domain::TreeLimits::default(),
        fingerprint: "fingerprint".to_owned(),
    };
    let job = store
        .submit(Submit { jobs: vec![new], actor: Actor::system("test") })
        .await
        .unwrap()
        .remove(0)
        .job()
        .clone();
    let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: "mac-1".parse().unwrap() }];
    let offer = store.offer(MakeOffers { term, chosen, pickup: LEASE }).await.unwrap().remove(0).unwrap();

    let (busy, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    busy.batch_execute("BEGIN; SELECT * FROM feed FOR UPDATE; SELECT * FROM jobs FOR UPDATE").await.unwrap();
    clock.advance(Duration::from_secs(1));
    let renewed = tokio::time::timeout(PATIENCE, store.lead(TakeLead { node, lease: LEASE }))
        .await
        .expect("a renewal waited");
    assert_eq!(renewed.unwrap().expires_at, clock.now().plus(LEASE));
    let sent = || store.sent(Sent { offers: vec![(offer.job_id, offer.dispatch_seq)] });
    tokio::time::timeout(PATIENCE, sent()).await.expect("a send waited").unwrap();
    assert_eq!(store.read().unsent_offers(10).await.unwrap(), []);
    busy.batch_execute("ROLLBACK").await.unwrap();

    // An offer that somebody else is about to delete is left to him.
    let job = store.read().job(job.id).await.unwrap().unwrap();
    let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: "mac-2".parse().unwrap() }];
    let offer = store.offer(MakeOffers { term, chosen, pickup: LEASE }).await.unwrap().remove(0).unwrap();
    let sent = || store.sent(Sent { offers: vec![(offer.job_id, offer.dispatch_seq)] });
    busy.batch_execute("BEGIN; SELECT * FROM outbox FOR UPDATE").await.unwrap();
    tokio::time::timeout(PATIENCE, sent()).await.expect("a send waited for another").unwrap();
    assert_eq!(store.read().unsent_offers(10).await.unwrap().len(), 1);
    busy.batch_execute("ROLLBACK").await.unwrap();
    sent().await.unwrap();
    assert_eq!(store.read().unsent_offers(10).await.unwrap(), []);

    // Nor does whoever only waits for the leader to fail wait for the leader's own transactions.
    busy.batch_execute("BEGIN; SELECT * FROM leader FOR UPDATE").await.unwrap();
    let other = store.lead(TakeLead { node: "other".parse().unwrap(), lease: LEASE });
    let leader = tokio::time::timeout(PATIENCE, other).await.expect("a look waited").unwrap();
    assert_eq!(leader.term, term);
    busy.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.stats().retries, 0);
    drop(busy);
    connection.await.unwrap().unwrap();
}
