//! The embedded broker against the exported suite.

use std::sync::Arc;

use async_trait::async_trait;
use giga_broker::Embedded;
use giga_ports::Broker;
use giga_testkit::broker_suite::{self, BrokerFixture};

#[derive(Default)]
struct Fixture(Embedded);

#[async_trait]
impl BrokerFixture for Fixture {
    async fn open(&self) -> Arc<dyn Broker> {
        Arc::new(self.0.clone())
    }

    async fn wipe(&self) {
        self.0.wipe();
    }
}

giga_testkit::broker_conformance!(Fixture::default());

#[tokio::test]
async fn a_dropped_broker_ends_its_readers() {
    broker_suite::a_dropped_broker_ends_its_readers(Arc::new(Embedded::new())).await;
}

#[tokio::test]
async fn an_offer_that_nobody_acknowledges_becomes_a_dead_letter() {
    let clock = Arc::new(giga_testkit::ManualClock::default());
    let letter = crate::expired::by(&Embedded::with_clock(clock.clone())).await;
    assert_eq!(letter.at, giga_ports::Clock::now(&*clock));
}
