//! One coordinator's way to the broker: what it publishes may be lost, come twice, come late or be wiped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FactoryId, JobId, Offer};
use giga_ports::broker::{DeadLetter, DeadLetters, Delivered, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError};
use parking_lot::Mutex;

use crate::bug::Bug;
use crate::prng::Prng;
use crate::turnstile::{Kind, Node, Verdict};
use crate::world::World;

type Result<T> = std::result::Result<T, BrokerError>;

#[derive(Debug)]
pub(crate) struct NodeBroker {
    node: Node,
    world: Arc<World>,
    prng: Mutex<Prng>,
}

impl NodeBroker {
    pub(crate) fn new(node: Node, world: Arc<World>, prng: Prng) -> Self {
        Self { node, world, prng: Mutex::new(prng) }
    }

    async fn pass(&self, what: &'static str) -> Verdict {
        self.world.turnstile.pass(self.node, Kind::Broker, what).await
    }

    fn chance(&self, per_mille: u64) -> bool {
        self.prng.lock().chance(per_mille)
    }

    fn between(&self, low: u64, high: u64) -> u64 {
        self.prng.lock().between(low, high)
    }

    async fn carry(&self, offer: &Offer) -> Result<()> {
        let rates = self.world.rates();
        let id = offer.message_id();
        if self.world.has(Bug::DedupByJob) && !self.world.is_new_to_the_broker(offer.job_id) {
            self.world.trace.note(|| format!("n{} the broker swallows {id}", self.node.0));
            return Ok(());
        }
        if self.chance(rates.offer_lost) {
            self.world.trace.note(|| format!("n{} the broker loses {id}", self.node.0));
            return Ok(());
        }
        if self.chance(rates.offer_late) {
            let (world, offer) = (self.world.clone(), offer.clone());
            let late = Duration::from_millis(self.between(5, 3_000));
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                let _ = world.broker.publish(&[offer]).await;
            });
            return Ok(());
        }
        self.world.broker.publish(std::slice::from_ref(offer)).await
    }
}

#[async_trait]
impl Broker for NodeBroker {
    fn kind(&self) -> &'static str {
        "simulated"
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    async fn publish(&self, offers: &[Offer]) -> Result<()> {
        let verdict = self.pass("publish").await;
        if verdict == Verdict::FailBefore {
            return Err(BrokerError::because("simulated: it is away"));
        }
        for offer in offers {
            self.carry(offer).await?;
        }
        if self.chance(self.world.rates().broker_wiped) {
            self.world.trace.note(|| "the broker is wiped".to_owned());
            self.world.broker.wipe();
        }
        if verdict == Verdict::FailAfter { Err(BrokerError::because("simulated: no answer")) } else { Ok(()) }
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>> {
        if self.pass("consume").await == Verdict::FailBefore {
            return Err(BrokerError::because("simulated: it is away"));
        }
        let offers = self.world.broker.consume(factory).await?;
        let prng = self.prng.lock().fork();
        Ok(Box::new(Doubtful { offers, world: self.world.clone(), prng, again: None }))
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<()> {
        self.world.broker.dead_letter(letter).await
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>> {
        self.world.broker.dead_letters().await
    }

    async fn hint(&self, hint: &Hint) -> Result<()> {
        if self.chance(self.world.rates().offer_lost) { Ok(()) } else { self.world.broker.hint(hint).await }
    }

    async fn hints(&self) -> Result<Box<dyn Hints>> {
        self.world.broker.hints().await
    }
}

/// Offers that may come twice.
struct Doubtful {
    offers: Box<dyn Offers>,
    world: Arc<World>,
    prng: Prng,
    again: Option<Delivered>,
}

#[async_trait]
impl Offers for Doubtful {
    async fn next(&mut self) -> Result<Delivered> {
        if let Some(again) = self.again.take() {
            return Ok(again);
        }
        let delivered = self.offers.next().await?;
        if self.prng.chance(self.world.rates().offer_twice) {
            self.again = Some(delivered.clone());
        }
        Ok(delivered)
    }

    async fn ack(&mut self, delivered: &Delivered) -> Result<()> {
        self.offers.ack(delivered).await
    }
}

/// What a broker has ever seen, for the bug that tells duplicates by the job alone.
#[derive(Debug, Default)]
pub(crate) struct SeenJobs(Mutex<BTreeSet<JobId>>);

impl SeenJobs {
    pub(crate) fn is_new(&self, job: JobId) -> bool {
        self.0.lock().insert(job)
    }
}
