//! The Service Bus broker against the exported suite, each case on a stand-in of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use giga_broker::{ServiceBus, ServiceBusAccess, ServiceBusCredential};
use giga_domain::Timestamp;
use giga_ports::{Broker, Clock, Randomness};
use giga_testkit::broker_suite::{self, BrokerFixture};
use giga_testkit::servicebus::ServiceBusPeer;

/// The machine's own clock, as the stand-in has it; and names that no other handle of this process has.
pub(crate) struct Machine;

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp::from_millis(since.as_millis() as i64)
    }
}

impl Randomness for Machine {
    fn bytes(&self) -> [u8; 32] {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}

pub(crate) fn access(connection_string: &str) -> ServiceBusAccess {
    let credential = ServiceBusCredential::from_connection_string(connection_string).unwrap();
    ServiceBusAccess { credential, clock: Arc::new(Machine), random: Arc::new(Machine) }
}

pub(crate) async fn open(peer: &ServiceBusPeer) -> ServiceBus {
    ServiceBus::connect(&peer.url(), access(&peer.connection_string())).await.unwrap()
}

struct Fixture(ServiceBusPeer);

#[async_trait]
impl BrokerFixture for Fixture {
    async fn open(&self) -> Arc<dyn Broker> {
        Arc::new(open(&self.0).await)
    }

    async fn wipe(&self) {
        self.0.stop();
        self.0.wipe();
        self.0.start_again();
    }
}

giga_testkit::broker_conformance!(Fixture(ServiceBusPeer::start()));

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_broker_ends_its_readers() {
    let peer = ServiceBusPeer::start();
    broker_suite::a_dropped_broker_ends_its_readers(Arc::new(open(&peer).await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_nobody_acknowledges_becomes_a_dead_letter() {
    let peer = ServiceBusPeer::start();
    let letter = crate::expired::by(&open(&peer).await).await;
    // Dated by the server, whose clock is somewhere near ours.
    assert!(letter.at > "2026-01-01T00:00:00Z".parse().unwrap(), "{:?}", letter.at);
}
