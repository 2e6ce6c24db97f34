//! PostgreSQL dies and comes back under the broker.

use giga_broker::Postgres;
use giga_domain::FeedPos;
use giga_ports::Broker;
use giga_ports::broker::Hint;
use giga_testkit::broker_suite::{in_time, offer, persistently};
use giga_testkit::postgres::{PostgresServer, TestDatabase};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_found_again_and_everybody_is_told_to_look() {
    let server = PostgresServer::start();
    let database = TestDatabase::on(&server).await;
    let broker = Postgres::connect(database.url()).await.unwrap();
    let mut hints = broker.hints().await.unwrap();
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    broker.hint(&Hint::Feed { pos: FeedPos(41) }).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(41) });
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    let held = in_time("an offer", consumer.next()).await.unwrap();

    server.kill9();
    assert!(broker.publish(&[offer(2, "f1")]).await.is_err());
    assert!(broker.hint(&Hint::Gates).await.is_err());
    assert!(broker.ping().await.is_err());
    server.start_again();

    // Nobody asked for it: the listener comes back by itself.
    for looked_at in [Hint::Feed { pos: FeedPos(41) }, Hint::Gates, Hint::Leaderless] {
        assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), looked_at);
    }
    persistently("an answer", || broker.ping()).await;
    // What this process holds is still there, and what comes now arrives.
    consumer.ack(&held).await.unwrap();
    broker.publish(&[offer(3, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(3, "f1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_is_replaced_by_the_next_call() {
    let database = TestDatabase::new().await;
    let broker = Postgres::connect(database.url()).await.unwrap();
    let mut hints = broker.hints().await.unwrap();
    broker.ping().await.unwrap();
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'gigafactory-broker'";
    assert_eq!(client.query_one(cut, &[]).await.unwrap().get::<_, i64>(0), 2);
    // No error: a call that meets the cut connection takes another.
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    assert!(matches!(in_time("a hint to look", hints.next()).await.unwrap(), Hint::Feed { .. }));
}
