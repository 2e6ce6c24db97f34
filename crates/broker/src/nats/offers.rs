//! A factory's offers: one pull consumer on the stream.
//!
//! A new consumer deletes the one before, which ends it and releases at once what it did not acknowledge. Ends itself
//! when the connection is lost, because offers that were on their way then are best requested again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::{self, MessagesErrorKind};
use async_nats::jetstream::consumer::{Consumer, PullConsumer};
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::stream::ConsumerCreateStrictErrorKind;
use async_nats::jetstream::{AckKind, ErrorCode, Message};
use async_trait::async_trait;
use futures::StreamExt;
use giga_domain::FactoryId;
use giga_ports::BrokerError;
use giga_ports::broker::{Delivered, Offers};
use tokio::sync::{oneshot, watch};

use super::{Session, failure, lost, streams};

/// How many are on their way to the factory at once. Small, because they grow old in the buffer.
const BATCH: usize = 64;
const ASK_AGAIN: Duration = Duration::from_mins(1);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Others may open a consumer for the same factory at the same time.
const TRIES: usize = 5;
const TAKEN_OVER: &str = "another consumer of this factory's offers took over, or the stream is gone";

pub(super) async fn open(
    session: &Arc<Session>,
    factory: &FactoryId,
    ack_wait: Duration,
) -> Result<Box<dyn Offers>, BrokerError> {
    let disconnects = session.disconnects.subscribe();
    let replaced = session.replace(factory);
    let consumer = take_over(session, factory, ack_wait).await?;
    Ok(Box::new(read(consumer, disconnects, replaced, None).await?))
}

/// `newest` is kept where nothing else would keep the consumer from counting as replaced.
pub(super) async fn read(
    consumer: PullConsumer,
    disconnects: watch::Receiver<u64>,
    replaced: oneshot::Receiver<Infallible>,
    newest: Option<oneshot::Sender<Infallible>>,
) -> Result<NatsOffers, BrokerError> {
    let messages = consumer
        .stream()
        .max_messages_per_batch(BATCH)
        .expires(ASK_AGAIN)
        .heartbeat(HEARTBEAT)
        .messages()
        .await
        .map_err(failure)?;
    Ok(NatsOffers { messages, disconnects, replaced, _newest: newest, unacked: BTreeMap::new(), ended: None })
}

/// Leaves one that is there alone, whoever reads from it.
pub(super) async fn ensure_consumer(
    session: &Session,
    factory: &FactoryId,
    ack_wait: Duration,
) -> Result<(), BrokerError> {
    let context = &session.context;
    for _ in 0..TRIES {
        let config = streams::consumer(factory, ack_wait);
        let Err(error) = context.create_consumer_strict_on_stream(config, streams::OFFERS).await else {
            return Ok(());
        };
        match error.kind() {
            ConsumerCreateStrictErrorKind::AlreadyExists => return Ok(()),
            ConsumerCreateStrictErrorKind::JetStream(why)
                if why.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                streams::ensure(context).await?;
            }
            _ => return Err(failure(error)),
        }
    }
    Err(BrokerError::because("the stream of offers keeps disappearing"))
}

async fn take_over(
    session: &Session,
    factory: &FactoryId,
    ack_wait: Duration,
) -> Result<PullConsumer, BrokerError> {
    let context = &session.context;
    for _ in 0..TRIES {
        // Most likely it is not there; whatever else went wrong, creating meets it too.
        let _ = context.delete_consumer_from_stream(streams::token(factory), streams::OFFERS).await;
        let config = streams::consumer(factory, ack_wait);
        let made: Result<Consumer<pull::Config>, _> =
            context.create_consumer_strict_on_stream(config, streams::OFFERS).await;
        match made {
            Ok(consumer) => return Ok(consumer),
            Err(error) => match error.kind() {
                ConsumerCreateStrictErrorKind::AlreadyExists => {}
                ConsumerCreateStrictErrorKind::JetStream(why)
                    if why.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    streams::ensure(context).await?;
                }
                _ => return Err(failure(error)),
            },
        }
    }
    Err(BrokerError::because("others keep opening a consumer of this factory's offers"))
}

pub(super) struct NatsOffers {
    messages: pull::Stream,
    disconnects: watch::Receiver<u64>,
    /// Resolves when this process opens another one.
    replaced: oneshot::Receiver<Infallible>,
    _newest: Option<oneshot::Sender<Infallible>>,
    /// By place in the stream.
    unacked: BTreeMap<u64, Acker>,
    ended: Option<&'static str>,
}

impl NatsOffers {
    fn delivered(&mut self, message: Message) -> Result<Option<Delivered>, BrokerError> {
        let info = message.info().map_err(|error| BrokerError::because(error.to_string()))?;
        let (tag, attempt) = (info.stream_sequence, info.delivered);
        let (message, acker) = message.split();
        let offer = match serde_json::from_slice(&message.payload) {
            Ok(offer) => offer,
            Err(error) => {
                tracing::warn!(%error, "dropped an unreadable offer");
                tokio::spawn(async move { acker.ack_with(AckKind::Term).await });
                return Ok(None);
            }
        };
        self.unacked.insert(tag, acker);
        if self.unacked.len() > streams::UNACKNOWLEDGED {
            self.unacked.pop_first();
        }
        let attempt = u32::try_from(attempt).unwrap_or(1);
        Ok(Some(Delivered { offer, attempt, tag }))
    }
}

#[async_trait]
impl Offers for NatsOffers {
    async fn next(&mut self) -> Result<Delivered, BrokerError> {
        while self.ended.is_none() {
            let message = tokio::select! {
                biased;
                _ = &mut self.replaced => {
                    self.ended = Some(TAKEN_OVER);
                    break;
                }
                changed = self.disconnects.changed() => {
                    self.ended = Some(lost(changed));
                    break;
                }
                message = self.messages.next() => message,
            };
            match message {
                Some(Ok(message)) => {
                    if let Some(delivered) = self.delivered(message)? {
                        return Ok(delivered);
                    }
                }
                Some(Err(error)) if error.kind() == MessagesErrorKind::ConsumerDeleted => {
                    self.ended = Some(TAKEN_OVER);
                }
                Some(Err(error)) => {
                    self.ended = Some("the consumer failed");
                    return Err(failure(error));
                }
                None => self.ended = Some("the consumer ended"),
            }
        }
        Err(BrokerError::because(self.ended.unwrap_or("the consumer ended")))
    }

    /// Confirmed by the server, so that whoever opens the next consumer does not meet it again.
    async fn ack(&mut self, delivered: &Delivered) -> Result<(), BrokerError> {
        let Some(acker) = self.unacked.remove(&delivered.tag) else {
            return Ok(());
        };
        let mut disconnects = self.disconnects.clone();
        tokio::select! {
            confirmed = acker.double_ack() => {
                confirmed.map_err(|error| BrokerError::because(error.to_string()))
            }
            changed = disconnects.changed() => Err(BrokerError::because(lost(changed))),
        }
    }
}
