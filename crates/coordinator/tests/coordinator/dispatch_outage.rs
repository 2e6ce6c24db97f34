//! A broker that is away: offers wait in the store, and jobs reach factories without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::Fleet;
use async_trait::async_trait;
use giga_broker::Embedded;
use giga_coordinator::{Coordinator, Options, Ports, StreamEvent};
use giga_domain::{Delivery, FactoryId, Offer};
use giga_ports::broker::{DeadLetter, DeadLetters, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError};

/// Carries no offers while it is down; the hints between coordinators still go through.
struct Shaky {
    inner: Embedded,
    down: AtomicBool,
}

impl Shaky {
    fn feel(&self) -> Result<(), BrokerError> {
        if self.down.load(Ordering::SeqCst) { Err(BrokerError::because("it is down")) } else { Ok(()) }
    }
}

#[async_trait]
impl Broker for Shaky {
    fn kind(&self) -> &'static str {
        "shaky"
    }
    async fn ping(&self) -> Result<(), BrokerError> {
        self.feel()
    }
    async fn publish(&self, offers: &[Offer]) -> Result<(), BrokerError> {
        self.feel()?;
        self.inner.publish(offers).await
    }
    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        self.feel()?;
        self.inner.consume(factory).await
    }
    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        self.inner.dead_letter(letter).await
    }
    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        self.inner.dead_letters().await
    }
    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        self.inner.hint(hint).await
    }
    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        self.inner.hints().await
    }
}

fn down(fleet: &Fleet) -> (Arc<Shaky>, Ports) {
    let broker = Arc::new(Shaky { inner: fleet.broker.clone(), down: AtomicBool::new(true) });
    (broker.clone(), Ports { broker, ..fleet.ports.clone() })
}

#[tokio::test]
async fn offers_wait_until_the_broker_is_back() {
    let fleet = Fleet::by_hand().await;
    let (broker, ports) = down(&fleet);
    let leader = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    leader.dispatch().lead_once().await.unwrap();
    assert_eq!(leader.dispatch().dispatch_once().await.unwrap().offered.len(), 1);
    let waiting = fleet.store.read().unsent_offers(9).await.unwrap();
    assert_eq!(waiting.iter().map(|row| row.offer.job_id).collect::<Vec<_>>(), [job.id]);
    leader.dispatch().offers_once().await.unwrap_err();
    assert_eq!(
        fleet.store.read().unsent_offers(9).await.unwrap(),
        waiting,
        "it is not marked before it is sent"
    );

    broker.down.store(false, Ordering::SeqCst);
    assert_eq!(leader.dispatch().offers_once().await.unwrap(), 1);
    assert_eq!(fleet.store.read().unsent_offers(9).await.unwrap(), []);
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    let delivered = tokio::time::timeout(Duration::from_secs(20), offers.next()).await.unwrap().unwrap();
    assert_eq!(delivered.offer, waiting[0].offer);
}

#[tokio::test]
async fn a_job_that_nobody_picks_up_is_offered_to_another_while_the_broker_is_down() {
    let fleet = Fleet::by_hand().await;
    let (_broker, ports) = down(&fleet);
    let coordinator = Coordinator::start(ports, Options::default()).await.unwrap();
    let silent = fleet.factory_by(Delivery::Stream, "a-silent", 1).await;
    let job = fleet.submit("name: one").await;
    let mut head = fleet.store.head();
    let offered = async {
        while fleet.job(job.id).await.target().is_none_or(|target| target.factory != silent) {
            coordinator.refresh_once().await.unwrap();
            head.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(20), offered).await.expect("nothing was offered");

    let other = fleet.factory_by(Delivery::Stream, "b-other", 1).await;
    coordinator.refresh_once().await.unwrap();
    let mut stream = coordinator.dispatch().open_factory_stream(other).unwrap();
    fleet.clock.advance(Duration::from_secs(10));
    let event = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
    let Some(StreamEvent::Grant(grant)) = event.expect("unsent offers must not stand in the way") else {
        panic!("no grant")
    };
    assert_eq!(grant.job().id, job.id);
    grant.delivered();
    coordinator.stop().await;
}

#[tokio::test]
async fn an_offer_whose_deadline_is_over_is_dropped_unpublished() {
    let fleet = Fleet::by_hand().await;
    let (broker, ports) = down(&fleet);
    let leader = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    fleet.submit("name: one").await;
    leader.dispatch().lead_once().await.unwrap();
    assert_eq!(leader.dispatch().dispatch_once().await.unwrap().offered.len(), 1);
    fleet.clock.advance(Duration::from_secs(10));
    broker.down.store(false, Ordering::SeqCst);
    assert_eq!(leader.dispatch().offers_once().await.unwrap(), 0);
    assert_eq!(fleet.store.read().unsent_offers(9).await.unwrap(), []);
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    assert!(futures::FutureExt::now_or_never(offers.next()).is_none());
}

#[tokio::test]
async fn jobs_come_down_a_stream_while_the_broker_is_down() {
    let fleet = Fleet::by_hand().await;
    let (_broker, ports) = down(&fleet);
    let coordinator = Coordinator::start(ports, Options::default()).await.unwrap();
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 8).await;
    coordinator.refresh_once().await.unwrap();
    let mut stream = coordinator.dispatch().open_factory_stream(f1).unwrap();
    for n in 0..5 {
        let job = fleet.submit(&format!("name: job-{n}")).await;
        let event = tokio::time::timeout(Duration::from_secs(5), stream.next()).await;
        let Some(StreamEvent::Grant(grant)) = event.expect("well before the pickup deadline") else {
            panic!("no grant")
        };
        assert_eq!(grant.job().id, job.id);
        grant.delivered();
    }
    coordinator.stop().await;
}
