//! PostgreSQL dies, comes back, and comes late under the broker.

use std::time::Duration;

use giga_broker::Postgres;
use giga_domain::FeedPos;
use giga_ports::Broker;
use giga_ports::broker::Hint;
use giga_testkit::broker_suite::{in_time, offer, persistently};
use giga_testkit::postgres::{PostgresServer, TestDatabase};

/// Shorter than any timeout of a connection.
const AT_ONCE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_found_again_and_everybody_is_told_to_look() {
    let server = PostgresServer::start();
    let database = TestDatabase::on(&server).await;
    let broker = Postgres::connect(database.url()).await.unwrap();
    let mut hints = broker.hints().await.unwrap();
    let factory = "f1".parse().unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.hint(&Hint::Feed { pos: FeedPos(41) }).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(41) });
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    in_time("an offer", consumer.next()).await.unwrap();

    server.kill9();
    assert!(in_time("the end of the consumer", consumer.next()).await.is_err());
    assert!(broker.consume(&factory).await.is_err());
    assert!(broker.publish(&[offer(2, "f1")]).await.is_err());
    assert!(broker.hint(&Hint::Pauses).await.is_err());
    assert!(broker.ping().await.is_err());
    server.start_again();

    // Nobody asked for it: the listener comes back by itself.
    for looked_at in [Hint::Feed { pos: FeedPos(41) }, Hint::Pauses, Hint::Leaderless] {
        assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), looked_at);
    }
    persistently("an answer", || broker.ping()).await;
    // What this process holds is still there, and what comes now arrives.
    let mut consumer = persistently("another consumer", || broker.consume(&factory)).await;
    let again = in_time("an offer", consumer.next()).await.unwrap();
    assert_eq!((again.offer.clone(), again.attempt), (offer(1, "f1"), 2));
    consumer.ack(&again).await.unwrap();
    broker.publish(&[offer(3, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(3, "f1"));
}

/// The server lives on, so everything but listening works: nobody may wait where nothing can come.
#[tokio::test(flavor = "multi_thread")]
async fn consumers_end_with_the_connection_that_listens() {
    let server = PostgresServer::start();
    let database = TestDatabase::on(&server).await;
    let broker = Postgres::connect(database.url()).await.unwrap();
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    let held = in_time("an offer", consumer.next()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE application_name = 'gigafactory-broker' AND query LIKE 'LISTEN%'";
    assert_eq!(client.query_one(cut, &[]).await.unwrap().get::<_, i64>(0), 1);
    let ended = in_time("the end of the consumer", consumer.next()).await.unwrap_err();
    assert!(ended.reason.contains("the connection was lost"), "{ended}");
    assert!(consumer.ack(&held).await.is_err(), "it went back");
    assert!(matches!(in_time("a hint to look", hints.next()).await.unwrap(), Hint::Feed { .. }));
    let mut consumer = persistently("another consumer", || broker.consume(&factory)).await;
    let again = in_time("the offer again", consumer.next()).await.unwrap();
    assert_eq!((again.offer, again.attempt), (offer(1, "f1"), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_yet_is_used_as_soon_as_it_is() {
    let server = PostgresServer::start();
    let database = TestDatabase::on(&server).await;
    server.kill9();
    let broker = in_time("a start without the server", giga_broker::open(database.url())).await.unwrap();
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    let calls = async {
        assert!(broker.publish(&[offer(1, "f1")]).await.is_err());
        assert!(broker.hint(&Hint::Pauses).await.is_err());
        assert!(broker.consume(&factory).await.is_err());
        assert!(broker.ping().await.is_err());
    };
    tokio::time::timeout(AT_ONCE, calls).await.expect("nobody waits for a server that was never there");

    server.start_again();
    for looked_at in [Hint::Feed { pos: FeedPos(0) }, Hint::Pauses, Hint::Leaderless] {
        assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), looked_at);
    }
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.publish(&[offer(2, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(2, "f1"));
    broker.hint(&Hint::Feed { pos: FeedPos(7) }).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(7) });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_is_told_of_at_once() {
    let database = TestDatabase::new().await;
    let nowhere = format!("{}_of_somebody_else", database.url());
    let error = Postgres::connect(&nowhere).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
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
