//! NATS with JetStream: a subject per factory on one stream, dead letters on another, hints beside them.
//!
//! By default NATS writes to disk every two minutes, so a server that dies may forget what it confirmed; it is a hint.
//! A newer consumer takes over from an older one in another process too, with one gap: an older one that has no request
//! open at that moment may finish its batch and then share the offers with the newer one until it is dropped. The claim
//! decides who gets a job, as always. `Delivered::attempt` counts per consumer.

mod address;
mod ears;
mod offers;
mod streams;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, Subject};
use async_trait::async_trait;
use futures::future::try_join_all;
use giga_domain::{FactoryId, Offer};
use giga_ports::broker::{DeadLetter, DeadLetters, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::local::{DeadFan, HintFan};

const PATIENCE: Duration = Duration::from_secs(5);
/// Offers that are on their way to the server at once.
const IN_FLIGHT: usize = 256;

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
    session: Arc<Session>,
    hints: HintFan,
    dead: DeadFan,
    tuning: NatsTuning,
    _ears: JoinSet<()>,
}

/// What the calls and the tasks share.
struct Session {
    client: Client,
    context: Context,
    /// How often the connection was lost.
    losses: watch::Sender<u64>,
    /// The newest consumer of each factory in this process; an older one ends when its sender is dropped.
    consumers: Mutex<HashMap<FactoryId, oneshot::Sender<Infallible>>>,
}

impl Nats {
    pub async fn connect(url: &str) -> Result<Self, BrokerError> {
        Self::connect_with(url, NatsTuning::default()).await
    }

    /// Fails when the server cannot be reached now, or will not do; later on it comes back by itself.
    pub async fn connect_with(url: &str, tuning: NatsTuning) -> Result<Self, BrokerError> {
        let (servers, options) = address::parse(url)?;
        let (happened, events) = mpsc::unbounded_channel();
        let client = options
            .name("gigafactory")
            .connection_timeout(PATIENCE)
            .reconnect_delay_callback(pause_before)
            .event_callback(move |event| {
                // An error means that the broker is being dropped.
                let _ = happened.send(event);
                std::future::ready(())
            })
            .connect(servers)
            .await
            .map_err(unreachable)?;
        fit_for_us(&client)?;
        let context = ContextBuilder::new().timeout(PATIENCE).build(client.clone());
        streams::ensure(&context).await?;
        let session =
            Arc::new(Session { client, context, losses: watch::Sender::new(0), consumers: Mutex::default() });
        let (hints, dead) = (HintFan::new(), DeadFan::new());
        let ears = ears::listen(&session, events, &hints, &dead).await?;
        let nats = Self { session, hints, dead, tuning, _ears: ears };
        // The server answers in order: after this it knows the subscriptions.
        nats.ping().await?;
        Ok(nats)
    }
}

impl std::fmt::Debug for Nats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nats").field("tuning", &self.tuning).finish_non_exhaustive()
    }
}

fn pause_before(attempt: usize) -> Duration {
    match attempt {
        0 | 1 => Duration::ZERO,
        more => Duration::from_millis(25 << more.min(7)),
    }
}

fn fit_for_us(client: &Client) -> Result<(), BrokerError> {
    let info = client.server_info();
    if !client.is_server_compatible(2, 10, 0) {
        return Err(BrokerError::because(format!(
            "the NATS server is version {}, and 2.10 or newer is needed: upgrade it, or use another broker",
            info.version
        )));
    }
    if !info.jetstream {
        return Err(BrokerError::because(
            "the NATS server runs without JetStream: start it with `-js`, or enable `jetstream` in its settings",
        ));
    }
    Ok(())
}

fn unreachable(error: async_nats::ConnectError) -> BrokerError {
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            BrokerError::because("the NATS server refuses the credentials in the URL")
        }
        _ => failure(error),
    }
}

/// The library's errors say in their text what is behind them.
fn failure(error: impl std::error::Error + Send + Sync + 'static) -> BrokerError {
    BrokerError::from_source(error)
}

fn lost(changed: Result<(), watch::error::RecvError>) -> &'static str {
    if changed.is_ok() { "the connection to NATS was lost" } else { "it was closed" }
}

impl Session {
    fn replace(&self, factory: &FactoryId) -> oneshot::Receiver<Infallible> {
        let (newest, replaced) = oneshot::channel();
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        consumers.retain(|_, consumer| !consumer.is_closed());
        consumers.insert(factory.clone(), newest);
        replaced
    }

    /// Fails at once where the library would wait for the connection to come back.
    async fn ask<T>(&self, work: impl Future<Output = Result<T, BrokerError>>) -> Result<T, BrokerError> {
        let mut losses = self.losses.subscribe();
        if self.client.connection_state() != State::Connected {
            return Err(BrokerError::because("NATS is not connected"));
        }
        tokio::select! {
            result = work => result,
            changed = losses.changed() => Err(BrokerError::because(lost(changed))),
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

    /// Makes the streams again when the server has lost them.
    async fn publish_surely(&self, messages: &[(Subject, PublishMessage)]) -> Result<(), BrokerError> {
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

    async fn bury(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        let payload = serde_json::to_vec(letter).map_err(BrokerError::from_source)?;
        let message = PublishMessage::build().payload(payload.into());
        self.publish_surely(&[(streams::DEAD_SUBJECT.into(), message)]).await
    }
}

#[async_trait]
impl Broker for Nats {
    fn kind(&self) -> &'static str {
        "nats"
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        self.session.ask(async { self.session.context.query_account().await.map_err(failure) }).await?;
        Ok(())
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
        self.session.publish_surely(&messages).await
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        self.session.ask(offers::open(&self.session, factory, self.tuning.ack_wait)).await
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        self.session.bury(letter).await
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        Ok(self.dead.subscribe())
    }

    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        let payload = serde_json::to_vec(hint).map_err(BrokerError::from_source)?;
        let publish = self.session.client.publish(streams::HINTS_SUBJECT, payload.into());
        self.session.ask(async { publish.await.map_err(failure) }).await
    }

    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        Ok(self.hints.subscribe())
    }
}
