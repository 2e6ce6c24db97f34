//! NATS with JetStream: a subject per factory on one stream, dead letters on another, hints beside them.
//!
//! By default NATS writes to disk every two minutes, so a server that dies may forget what it confirmed; it is a hint.
//! A newer consumer takes over from an older one in another process too, with one gap: an older one that has no request
//! open at that moment may finish its batch and then share the offers with the newer one until it is dropped. The claim
//! decides who gets a job, as always. `Delivered::attempt` counts per consumer.
//!
//! `Nats` is the coordinator's end and may do everything. A factory has `read_offers`, which needs no more than
//! `server_accounts` grants.

mod accounts;
mod address;
mod key;
mod link;
mod mailbox;
mod offers;
mod streams;
mod subscriptions;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, Subject};
use async_trait::async_trait;
use futures::future::try_join_all;
use giga_domain::{FactoryId, Offer};
use giga_ports::broker::{DeadLetter, DeadLetters, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use self::accounts::server_accounts;
pub use self::key::{NatsKey, NatsPublicKey};
use self::link::Link;
pub use self::mailbox::read_offers;
use crate::local::{DeadLetterBroadcast, HintBroadcast};

const PATIENCE: Duration = Duration::from_secs(5);
/// Offers that are on their way to the server at once.
const IN_FLIGHT: usize = 256;
/// A factory's consumer is believed to be there for so long. The server forgets one that nobody reads from after an hour.
const PREPARED_FOR: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy)]
pub struct NatsTuning {
    /// How long a delivered offer may stay unacknowledged before it is delivered again. A claim takes milliseconds.
    pub ack_wait: Duration,
}

impl Default for NatsTuning {
    fn default() -> Self {
        Self { ack_wait: Duration::from_secs(15) }
    }
}

pub struct Nats {
    link: watch::Receiver<Link>,
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
    tuning: NatsTuning,
    /// Background tasks.
    _tasks: JoinSet<()>,
}

/// Shared by the calls and the background tasks.
struct Session {
    client: Client,
    context: Context,
    /// How often the connection was lost.
    disconnects: watch::Sender<u64>,
    /// The newest consumer of each factory in this process; an older one ends when its sender is dropped.
    consumers: Mutex<HashMap<FactoryId, oneshot::Sender<Infallible>>>,
    /// When the consumer of a factory that reads by itself was last seen to be there.
    prepared: Mutex<HashMap<FactoryId, Instant>>,
}

impl Nats {
    pub async fn connect(url: &str) -> Result<Self, BrokerError> {
        Self::connect_with(url, None, NatsTuning::default()).await
    }

    /// If the server is unreachable it is retried in the background; fails if it refuses or is unsuitable.
    pub async fn connect_with(
        url: &str,
        key: Option<NatsKey>,
        tuning: NatsTuning,
    ) -> Result<Self, BrokerError> {
        let (hints, dead) = (HintBroadcast::new(), DeadLetterBroadcast::new());
        let (link, tasks) = link::establish(url, key, &hints, &dead).await?;
        Ok(Self { link, hints, dead, tuning, _tasks: tasks })
    }

    /// Fails at once if the server was never reached.
    fn session(&self) -> Result<Arc<Session>, BrokerError> {
        self.link.borrow().clone().map_err(BrokerError::because)
    }
}

impl std::fmt::Debug for Nats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nats").field("tuning", &self.tuning).finish_non_exhaustive()
    }
}

/// The text of the library's errors includes their cause.
fn failure(error: impl std::error::Error + Send + Sync + 'static) -> BrokerError {
    BrokerError::from_source(error)
}

fn lost(changed: Result<(), watch::error::RecvError>) -> &'static str {
    if changed.is_ok() { "the connection to NATS was lost" } else { "it was closed" }
}

impl Session {
    fn replace(&self, factory: &FactoryId) -> oneshot::Receiver<Infallible> {
        let (newest, replaced) = oneshot::channel();
        let mut consumers = self.consumers.lock();
        consumers.retain(|_, consumer| !consumer.is_closed());
        consumers.insert(factory.clone(), newest);
        replaced
    }

    fn is_prepared(&self, factory: &FactoryId) -> bool {
        let mut prepared = self.prepared.lock();
        prepared.retain(|_, at| at.elapsed() < PREPARED_FOR);
        prepared.contains_key(factory)
    }

    /// Fails at once where the library would wait for the connection to come back.
    async fn ask<T>(&self, work: impl Future<Output = Result<T, BrokerError>>) -> Result<T, BrokerError> {
        let mut disconnects = self.disconnects.subscribe();
        if self.client.connection_state() != State::Connected {
            return Err(BrokerError::because("NATS is not connected"));
        }
        tokio::select! {
            result = work => result,
            changed = disconnects.changed() => Err(BrokerError::because(lost(changed))),
        }
    }

    /// All of them are confirmed by the server. What was sent before an error may come twice.
    async fn publish(
        &self,
        messages: &[(Subject, PublishMessage)],
    ) -> Result<(), jetstream::context::PublishError> {
        for chunk in messages.chunks(IN_FLIGHT) {
            let mut confirmations = Vec::with_capacity(chunk.len());
            for (subject, message) in chunk {
                confirmations.push(self.context.send_publish(subject.clone(), message.clone()).await?);
            }
            try_join_all(confirmations.into_iter().map(IntoFuture::into_future)).await?;
        }
        Ok(())
    }

    /// Creates the streams again if the server has lost them.
    async fn publish_or_create_streams(
        &self,
        messages: &[(Subject, PublishMessage)],
    ) -> Result<(), BrokerError> {
        self.ask(async {
            match self.publish(messages).await {
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                    streams::ensure(&self.context).await?;
                    self.publish(messages).await.map_err(failure)
                }
                result => result.map_err(failure),
            }
        })
        .await
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.ask(async { self.context.query_account().await.map_err(failure) }).await?;
        Ok(())
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        let payload = serde_json::to_vec(letter).map_err(BrokerError::from_source)?;
        let message = PublishMessage::build().payload(payload.into());
        self.publish_or_create_streams(&[(streams::DEAD_SUBJECT.into(), message)]).await
    }
}

#[async_trait]
impl Broker for Nats {
    fn kind(&self) -> &'static str {
        "nats"
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.session()?.ping().await
    }

    async fn publish(&self, offers: &[Offer]) -> Result<(), BrokerError> {
        let messages: Vec<(Subject, PublishMessage)> = offers
            .iter()
            .map(|offer| {
                let payload = serde_json::to_vec(offer).map_err(BrokerError::from_source)?;
                let message = PublishMessage::build().payload(payload.into()).message_id(offer.message_id());
                Ok((streams::subject(&offer.target_factory_id).into(), message))
            })
            .collect::<Result<_, BrokerError>>()?;
        self.session()?.publish_or_create_streams(&messages).await
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        let session = self.session()?;
        session.ask(offers::open(&session, factory, self.tuning.ack_wait)).await
    }

    async fn prepare(&self, factory: &FactoryId) -> Result<(), BrokerError> {
        let session = self.session()?;
        if !session.is_prepared(factory) {
            session.ask(offers::ensure_consumer(&session, factory, self.tuning.ack_wait)).await?;
            session.prepared.lock().insert(factory.clone(), Instant::now());
        }
        Ok(())
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        self.session()?.dead_letter(letter).await
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        Ok(self.dead.subscribe())
    }

    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        let payload = serde_json::to_vec(hint).map_err(BrokerError::from_source)?;
        let session = self.session()?;
        let publish = session.client.publish(streams::HINTS_SUBJECT, payload.into());
        session.ask(async { publish.await.map_err(failure) }).await
    }

    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        Ok(self.hints.subscribe())
    }
}
