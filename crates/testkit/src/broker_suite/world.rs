//! What a case of the broker suite works with. Nothing here waits without a deadline.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use giga_domain::{CapabilitySet, DispatchSeq, FactoryId, JobId, Offer, Priority};
use giga_ports::broker::{Delivered, Offers};
use giga_ports::{Broker, BrokerError};

use super::BrokerFixture;

/// Far longer than anything takes; a case that meets it has failed.
const DEADLINE: Duration = Duration::from_secs(30);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The outcome, or a panic when it does not come.
pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(DEADLINE, work).await;
    outcome.unwrap_or_else(|_| panic!("{what} did not happen within {DEADLINE:?}"))
}

/// Tries until it succeeds: what every user of a broker does, for whom all its errors are passing.
pub async fn persistently<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, BrokerError>>,
{
    let tries = async {
        loop {
            if let Ok(outcome) = attempt().await {
                return outcome;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    };
    in_time(what, tries).await
}

pub struct BrokerWorld {
    fixture: Box<dyn BrokerFixture>,
    jobs: AtomicU64,
}

impl std::fmt::Debug for BrokerWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerWorld").finish_non_exhaustive()
    }
}

impl BrokerWorld {
    pub fn new(fixture: impl BrokerFixture + 'static) -> Self {
        Self { fixture: Box::new(fixture), jobs: AtomicU64::new(1) }
    }

    pub async fn open(&self) -> Arc<dyn Broker> {
        self.fixture.open().await
    }

    pub async fn wipe(&self) {
        self.fixture.wipe().await;
    }

    /// The first offer of another job.
    pub fn offer(&self, factory: &str) -> Offer {
        let job = self.jobs.fetch_add(1, Ordering::Relaxed);
        offer(job.into(), factory)
    }
}

/// The first offer of that job.
pub fn offer(job: u128, factory: &str) -> Offer {
    Offer {
        job_id: JobId::from_u128(job),
        dispatch_seq: DispatchSeq(1),
        product_id: "demo".parse().unwrap(),
        repo: None,
        caps: CapabilitySet::default(),
        priority: Priority::Normal,
        target_factory_id: factory_id(factory),
    }
}

pub(super) fn factory_id(name: &str) -> FactoryId {
    name.parse().unwrap()
}

pub(super) async fn next(offers: &mut Box<dyn Offers>) -> Delivered {
    in_time("an offer", offers.next()).await.unwrap()
}

/// Exactly these come next, in this order.
pub(super) async fn expect(offers: &mut Box<dyn Offers>, expected: &[&Offer]) -> Vec<Delivered> {
    let mut delivered = Vec::new();
    for offer in expected {
        let one = next(offers).await;
        assert_eq!(one.offer, **offer);
        delivered.push(one);
    }
    delivered
}

/// Not among the cases, because a fixture may keep a handle of its own: an implementation calls it with its last one.
pub async fn a_dropped_broker_ends_its_readers(broker: Arc<dyn Broker>) {
    let mut consumer = broker.consume(&factory_id("f1")).await.unwrap();
    let mut hints = broker.hints().await.unwrap();
    let mut letters = broker.dead_letters().await.unwrap();
    drop(broker);
    assert!(in_time("the end of the offers", consumer.next()).await.is_err());
    assert!(in_time("the end of the hints", hints.next()).await.is_err());
    drop(consumer);
    assert!(in_time("the end of the dead letters", letters.next()).await.is_err());
}
