//! How long an offer takes from `publish` to `next`, one at a time. Prints; judges nothing but that all arrive.
#![expect(clippy::print_stdout, reason = "a measurement says what it found")]

use std::time::{Duration, Instant};

use giga_broker::{Embedded, Nats, Postgres};
use giga_ports::Broker;
use giga_testkit::broker_suite::{in_time, offer};
use giga_testkit::nats::NatsServer;
use giga_testkit::postgres::TestDatabase;
use giga_testkit::servicebus::ServiceBusPeer;

use crate::conformance_servicebus::open;

const OFFERS: u128 = 500;

async fn measure(here: &dyn Broker, there: &dyn Broker) {
    let mut consumer = there.consume(&"f1".parse().unwrap()).await.unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for job in 0..OFFERS {
        let offer = offer(job, "f1");
        let start = Instant::now();
        here.publish(std::slice::from_ref(&offer)).await.unwrap();
        let delivered = in_time("an offer", consumer.next()).await.unwrap();
        times.push(start.elapsed());
        assert_eq!(delivered.offer, offer);
        consumer.ack(&delivered).await.unwrap();
    }
    times.sort_unstable();
    let at = |percent: usize| times[times.len() * percent / 100];
    println!("{}: publish to next p50 {:?}, p99 {:?}", here.kind(), at(50), at(99));
}

#[tokio::test(flavor = "multi_thread")]
async fn from_publish_to_next() {
    let embedded = Embedded::new();
    measure(&embedded, &embedded).await;
    let database = TestDatabase::new().await;
    let url = database.url();
    measure(&Postgres::connect(url).await.unwrap(), &Postgres::connect(url).await.unwrap()).await;
    let server = NatsServer::start();
    let url = server.url();
    measure(&Nats::connect(&url).await.unwrap(), &Nats::connect(&url).await.unwrap()).await;
    // A stand-in: says what the client costs, and nothing about Azure.
    let peer = ServiceBusPeer::start();
    measure(&open(&peer).await, &open(&peer).await).await;
}
