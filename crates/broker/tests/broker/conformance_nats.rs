//! The NATS broker against the exported suite, each case on a server of its own.

use std::sync::Arc;

use async_trait::async_trait;
use giga_broker::Nats;
use giga_ports::Broker;
use giga_testkit::broker_suite::{self, BrokerFixture};
use giga_testkit::nats::NatsServer;

struct Fixture(NatsServer);

#[async_trait]
impl BrokerFixture for Fixture {
    async fn open(&self) -> Arc<dyn Broker> {
        Arc::new(Nats::connect(&self.0.url()).await.unwrap())
    }

    async fn wipe(&self) {
        self.0.kill9();
        self.0.start_empty();
    }
}

giga_testkit::broker_conformance!(Fixture(NatsServer::start()));

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_broker_ends_its_readers() {
    let server = NatsServer::start();
    let broker = Nats::connect(&server.url()).await.unwrap();
    broker_suite::a_dropped_broker_ends_its_readers(Arc::new(broker)).await;
}
