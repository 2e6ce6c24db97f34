//! The outbox of effects on PostgreSQL: whoever sends waits for nobody.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{EffectOutcome, EffectReceiver, EffectTarget, NewEffect};
use giga_ports::Store;
use giga_ports::store::{AddEffect, OutboxStore, RetireEffects, SettleEffect, TakeEffects};
use giga_store::{BatchStore, ClockSource, PostgresBackend, PostgresStore, Tuning};
use giga_testkit::ManualClock;
use giga_testkit::postgres::{PostgresServer, TestDatabase};
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio_postgres::{Client, NoTls};

const LEASE: Duration = Duration::from_mins(1);

/// Long past anything that a statement needs; a store that waits for a lock waits for ever.
const PATIENCE: Duration = Duration::from_secs(20);

fn new(number: u32) -> NewEffect {
    NewEffect {
        id: format!("tracker:{number}").parse().unwrap(),
        product: Some("demo".parse().unwrap()),
        target: EffectTarget::Tracker { tracker: "github".to_owned(), item: "acme/app#1".to_owned() },
        job: None,
        payload: json!({ "number": number }),
    }
}

fn github() -> EffectReceiver {
    EffectReceiver::Tracker("github".to_owned())
}

fn delivered() -> EffectOutcome {
    EffectOutcome::Delivered { detail: "204".to_owned() }
}

async fn opened(database: &TestDatabase, clock: Arc<ManualClock>) -> PostgresStore {
    let backend = PostgresBackend::open(database.url(), ClockSource::Injected(clock)).await.unwrap();
    BatchStore::start(backend, Tuning::default()).await.unwrap()
}

async fn connected(database: &TestDatabase) -> Client {
    let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    // Ends with its client.
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_wait_for_nobody() {
    let server = Arc::new(spawn_blocking(PostgresServer::start).await.unwrap());
    let database = TestDatabase::on(&server).await;
    let clock = Arc::new(ManualClock::default());
    let store = opened(&database, clock.clone()).await;
    for number in 1..=4 {
        store.add_effect(AddEffect { effect: new(number) }).await.unwrap();
    }
    let busy = connected(&database).await;

    // Somebody is about to settle the first two, everybody else appends events.
    let held = "BEGIN; SELECT * FROM effects WHERE id IN ('tracker:1', 'tracker:2') FOR UPDATE; \
                SELECT * FROM feed FOR UPDATE; SELECT * FROM fan_out FOR UPDATE";
    busy.batch_execute(held).await.unwrap();
    let taken = tokio::time::timeout(
        PATIENCE,
        store.take_effects(TakeEffects { receiver: github(), limit: 10, lease: LEASE }),
    )
    .await
    .expect("a sender waited");
    let ids: Vec<String> = taken.unwrap().into_iter().map(|effect| effect.id.to_string()).collect();
    assert_eq!(ids, ["tracker:3", "tracker:4"]);
    let settled = store.settle_effect(SettleEffect { id: new(3).id, attempt: 1, outcome: delivered() });
    tokio::time::timeout(PATIENCE, settled).await.expect("a settlement waited").unwrap();
    busy.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(
        store.take_effects(TakeEffects { receiver: github(), limit: 10, lease: LEASE }).await.unwrap().len(),
        2,
        "nothing was lost by passing over them"
    );

    // Nor does the sweep of what is over wait for somebody who brings one back.
    store.settle_effect(SettleEffect { id: new(4).id, attempt: 1, outcome: delivered() }).await.unwrap();
    clock.advance(LEASE);
    busy.batch_execute("BEGIN; SELECT * FROM effects WHERE id = 'tracker:3' FOR UPDATE").await.unwrap();
    let retired = store.retire_effects(RetireEffects { before: giga_ports::Clock::now(&*clock), limit: 10 });
    let retired = tokio::time::timeout(PATIENCE, retired).await.expect("a sweep waited").unwrap();
    assert_eq!(retired, 1);
    busy.batch_execute("ROLLBACK").await.unwrap();
    assert!(store.read().effect(&new(3).id).await.unwrap().is_some());
    assert_eq!(store.stats().retries, 0);
}
