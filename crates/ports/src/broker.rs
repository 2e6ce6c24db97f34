//! The broker: carries offers to factories and hints between coordinators. Never the truth.
//!
//! Everything that it carries may come late, twice, in another order or not at all, and may be wiped at any time; the
//! store and the timers make up for it. Implementations pass `giga_testkit::broker_suite`.

use async_trait::async_trait;
use giga_domain::topic::TopicKey;
use giga_domain::{FactoryId, FeedPos, JobId, Offer, ProductId, Timestamp, WorkerId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Passing, all of them: whoever meets one tries again or does without.
#[derive(Debug, Error)]
#[error("the broker cannot be reached: {reason}")]
pub struct BrokerError {
    pub reason: String,
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl BrokerError {
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), source: None }
    }

    pub fn from_source(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { reason: source.to_string(), source: Some(Box::new(source)) }
    }
}

type Result<T> = std::result::Result<T, BrokerError>;

#[async_trait]
pub trait Broker: Send + Sync {
    /// `embedded`, `postgres`, `nats`, `servicebus`: for people and metrics.
    fn kind(&self) -> &'static str;

    async fn ping(&self) -> Result<()>;

    /// Answers when the broker has them all. The same message id again, soon after, is delivered once.
    async fn publish(&self, offers: &[Offer]) -> Result<()>;

    /// The offers for one factory, those from before included where the broker keeps them. One consumer per factory:
    /// a newer one takes over, and the older one's `next` fails.
    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>>;

    /// Makes ready what a factory reads its offers from by itself, where that is no right of a factory's.
    async fn prepare(&self, _factory: &FactoryId) -> Result<()> {
        Ok(())
    }

    /// Mirrors what nobody will try again, for whoever watches the broker rather than the API.
    async fn dead_letter(&self, letter: &DeadLetter) -> Result<()>;

    /// Dead letters from here on.
    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>>;

    /// Tells every coordinator on this broker, this one included.
    async fn hint(&self, hint: &Hint) -> Result<()>;

    /// Hints from here on.
    async fn hints(&self) -> Result<Box<dyn Hints>>;
}

/// A factory's offers. Dropping it leaves what was not acknowledged to the next consumer.
#[async_trait]
pub trait Offers: Send {
    /// Waits for the next one. An error means that this consumer is at its end; another has to be opened.
    async fn next(&mut self) -> Result<Delivered>;

    /// After the claim succeeded or was refused: from there on the lease owns liveness.
    async fn ack(&mut self, delivered: &Delivered) -> Result<()>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub offer: Offer,
    /// 1 for the first time.
    pub attempt: u32,
    /// How its consumer knows it.
    pub tag: u64,
}

#[async_trait]
pub trait Hints: Send {
    async fn next(&mut self) -> Result<Hint>;
}

#[async_trait]
pub trait DeadLetters: Send {
    async fn next(&mut self) -> Result<DeadLetter>;
}

/// Something may have changed; look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "hint", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Hint {
    /// The feed has come to this position.
    Feed { pos: FeedPos },
    /// Jobs of these topics became ready; none of them has a smaller id.
    Ready { topics: Vec<ReadyTopic> },
    /// A topic job is due then.
    Due { at: Timestamp },
    /// Somebody else than its stream's coordinator settled these for the worker.
    Settled { worker: WorkerId, jobs: Vec<JobId> },
    /// Topics were paused or resumed. On the broker it has its name of before.
    #[serde(rename = "gates")]
    Pauses,
    /// The leader stepped down.
    Leaderless,
    /// Somebody put something into the outbox of effects, apart from the feed.
    Effects,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyTopic {
    pub product: ProductId,
    pub topic: giga_domain::TopicName,
    pub lowest: JobId,
}

impl ReadyTopic {
    pub fn key(&self) -> TopicKey {
        TopicKey { product: self.product.clone(), topic: self.topic.clone() }
    }
}

/// A job that used up its retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    pub job_id: JobId,
    pub product_id: ProductId,
    /// Of a topic job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<giga_domain::TopicName>,
    pub reason: String,
    pub at: Timestamp,
}
