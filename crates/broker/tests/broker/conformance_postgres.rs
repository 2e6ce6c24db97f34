//! The PostgreSQL broker against the exported suite, each case on a database of its own.

use std::sync::Arc;

use async_trait::async_trait;
use giga_broker::Postgres;
use giga_ports::Broker;
use giga_testkit::broker_suite::{self, BrokerFixture};
use giga_testkit::postgres::TestDatabase;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// Every handle has its own connections and mailboxes, as every process has.
#[derive(Default)]
struct Fixture {
    database: OnceCell<TestDatabase>,
    handles: Mutex<Vec<Arc<Postgres>>>,
}

#[async_trait]
impl BrokerFixture for Fixture {
    async fn open(&self) -> Arc<dyn Broker> {
        let database = self.database.get_or_init(TestDatabase::new).await;
        let handle = Arc::new(Postgres::connect(database.url()).await.unwrap());
        self.handles.lock().push(handle.clone());
        handle
    }

    /// PostgreSQL itself keeps nothing.
    async fn wipe(&self) {
        self.handles.lock().iter().for_each(|handle| handle.wipe());
    }
}

giga_testkit::broker_conformance!(Fixture::default());

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_broker_ends_its_readers_and_its_connections() {
    let database = TestDatabase::new().await;
    let broker = Postgres::connect(database.url()).await.unwrap();
    broker.ping().await.unwrap();
    broker_suite::a_dropped_broker_ends_its_readers(Arc::new(broker)).await;
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let left = "SELECT count(*) FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = 'gigafactory-broker'";
    broker_suite::in_time("the end of the connections", async {
        while client.query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_nobody_acknowledges_becomes_a_dead_letter() {
    let database = TestDatabase::new().await;
    let letter = crate::expired::by(&Postgres::connect(database.url()).await.unwrap()).await;
    // Dated by the server, whose clock is somewhere near ours.
    assert!(letter.at > "2026-01-01T00:00:00Z".parse().unwrap(), "{:?}", letter.at);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_say_is_no_query() {
    let database = TestDatabase::new().await;
    let broker = Postgres::connect(database.url()).await.unwrap();
    let _consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let last = "SELECT state, query, query_start::text FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = 'gigafactory-broker'";
    let activity = async || {
        let rows = client.query(last, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect::<Vec<(String, String, String)>>()
    };
    broker.publish(&[]).await.unwrap();
    let before = activity().await;
    // The one that listens; the one that publishes is made when it is needed.
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(before[0].0 == "idle" && before[0].1.starts_with("LISTEN"), "{before:?}");
    let mut hints = broker.hints().await.unwrap();
    broker.hint(&giga_ports::broker::Hint::Pauses).await.unwrap();
    broker_suite::in_time("a hint", hints.next()).await.unwrap();
    let after = activity().await;
    assert!(after.contains(&before[0]), "hearing a hint takes no query: {after:?}");
    assert_eq!(after.len(), 2, "{after:?}");
}
