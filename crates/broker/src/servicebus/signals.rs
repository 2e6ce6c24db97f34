//! Hints, dead letters and notices of takeovers, each to every coordinator: a topic, and a subscription of each process that
//! deletes itself when nobody reads it any more. Received and deleted at once: nothing here is worth a lock.
//!
//! Many hints travel as one message, because each message is paid for, once for each coordinator.

use std::sync::Arc;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::types::definitions::SenderSettleMode;
use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{Body, Message};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use giga_domain::{FactoryId, Offer, Timestamp};
use giga_ports::broker::{DeadLetter, Hint};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::address::subscription;
use super::entities::Made;
use super::failure::{Failure, Kind, PATIENCE};
use super::namespace::{EntitySession, Namespace};
use super::offers::body;
use super::outgoing::{Outgoing, TopicSender};
use crate::backoff::Backoff;
use crate::local::{DeadLetterBroadcast, HintBroadcast, never_acknowledged};
use crate::postgres::small_enough;

/// Well below what a message may have.
const MOST_BYTES: usize = 128 * 1024;
const CREDIT: u32 = 200;

/// What a message of the hints' topic holds.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Signal {
    Hints(Vec<serde_json::Value>),
    TakeOver {
        #[serde(rename = "takeOver")]
        factory: FactoryId,
        consumer: String,
    },
}

type Answer = oneshot::Sender<Result<(), Failure>>;

/// Hints that are to be sent.
pub(super) struct HintSender {
    topic: Arc<TopicSender>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    hints: Vec<(Hint, Answer)>,
    /// Somebody is sending, and takes along what comes meanwhile.
    sending: bool,
}

impl HintSender {
    pub(super) fn new(topic: Arc<TopicSender>) -> Arc<Self> {
        Arc::new(Self { topic, waiting: Mutex::default() })
    }

    pub(super) async fn send(self: &Arc<Self>, hint: Hint) -> Result<(), Failure> {
        let (answer, answered) = oneshot::channel();
        let somebody_sends = {
            let mut waiting = self.waiting.lock();
            waiting.hints.push((hint, answer));
            std::mem::replace(&mut waiting.sending, true)
        };
        if !somebody_sends {
            tokio::spawn(Arc::clone(self).send_waiting());
        }
        answered.await.map_err(|_| Failure::lost("it ended"))?
    }

    async fn send_waiting(self: Arc<Self>) {
        loop {
            let (hints, answers): (Vec<Hint>, Vec<Answer>) = {
                let mut waiting = self.waiting.lock();
                if waiting.hints.is_empty() {
                    waiting.sending = false;
                    return;
                }
                std::mem::take(&mut waiting.hints).into_iter().unzip()
            };
            let result = match messages(hints) {
                Ok(messages) => self.topic.send(messages).await,
                Err(failure) => Err(failure),
            };
            for answer in answers {
                let _ = answer.send(result.clone());
            }
        }
    }

    /// Tells other processes that a consumer is the newest.
    pub(super) async fn take_over(&self, factory: &FactoryId, consumer: String) -> Result<(), Failure> {
        let signal = Signal::TakeOver { factory: factory.clone(), consumer };
        let body = serde_json::to_vec(&signal).map_err(Failure::lost)?;
        self.topic.send(vec![Outgoing { id: None, properties: Vec::new(), body }]).await
    }
}

/// As few messages as hold them all, in their order. Of positions of the feed in one message the newest says all.
fn messages(hints: Vec<Hint>) -> Result<Vec<Outgoing>, Failure> {
    let newest =
        hints.iter().filter_map(|hint| if let Hint::Feed { pos } = hint { Some(*pos) } else { None }).max();
    let mut fed = false;
    let mut bodies: Vec<String> = Vec::new();
    for hint in hints.into_iter().flat_map(|hint| small_enough(hint, MOST_BYTES)) {
        let hint = match (hint, newest) {
            (Hint::Feed { .. }, _) if fed => continue,
            (Hint::Feed { .. }, Some(pos)) => {
                fed = true;
                Hint::Feed { pos }
            }
            (hint, _) => hint,
        };
        let text = serde_json::to_string(&hint).map_err(Failure::lost)?;
        match bodies.last_mut() {
            Some(body) if body.len() + text.len() < MOST_BYTES => {
                body.push(',');
                body.push_str(&text);
            }
            _ => bodies.push(text),
        }
    }
    let message =
        |body: String| Outgoing { id: None, properties: Vec::new(), body: format!("[{body}]").into_bytes() };
    Ok(bodies.into_iter().map(message).collect())
}

/// One of this process's own subscriptions. Fails only at first; later it reads again by itself, as long as the connection lives.
pub(super) async fn read(
    namespace: &Arc<Namespace>,
    topic: String,
    mut receive: impl FnMut(Message<Body<Value>>) + Send + 'static,
    resync: impl Fn() + Send + 'static,
) -> Result<(), Failure> {
    let mut reader = Reader::open(namespace, &topic).await?;
    let namespace = Arc::clone(namespace);
    tokio::spawn(async move {
        let mut backoff = Backoff::new();
        loop {
            match reader.next(&namespace).await {
                Ok(message) => {
                    backoff = Backoff::new();
                    receive(message);
                    continue;
                }
                Err(failure) => {
                    tracing::warn!(reason = failure.reason, topic, "a link to Service Bus was lost");
                }
            }
            reader = loop {
                tokio::select! {
                    () = namespace.ended.cancelled() => return,
                    () = backoff.wait() => {}
                }
                match Reader::open(&namespace, &topic).await {
                    Ok(reader) => break reader,
                    Err(failure) => {
                        tracing::warn!(reason = failure.reason, topic, "cannot read from Service Bus yet");
                    }
                }
            };
            // Whatever was told in between was not heard.
            resync();
        }
    });
    Ok(())
}

struct Reader {
    _session: EntitySession,
    receiver: Receiver,
    credit: u32,
}

impl Reader {
    async fn open(namespace: &Namespace, topic: &str) -> Result<Self, Failure> {
        let name = namespace.address.coordinator.clone();
        let name = name
            .map_or_else(|| format!("coordinator-{}", namespace.id), |name| format!("coordinator-{name}"));
        let entity = subscription(topic, &name);
        let made = namespace.ensure_own(topic, &name).await?;
        let opening = async {
            let mut session = namespace.session_for(&entity).await?;
            let mut receiver = Receiver::builder()
                .name(namespace.name("hear"))
                .source(entity.as_str())
                .sender_settle_mode(SenderSettleMode::Settled)
                .credit_mode(CreditMode::Manual)
                .attach(&mut session.session)
                .await?;
            receiver.set_credit(CREDIT).await.map_err(Failure::lost)?;
            Ok(Self { _session: session, receiver, credit: CREDIT })
        };
        namespace.in_time(PATIENCE * 3, opening).await.map_err(|failure: Failure| match failure.kind {
            Kind::Missing if made == Made::Unknown => failure.during(format!(
                "the subscription {entity} is not there, and this credential may not make it: give it the right to manage, or make it \
                 and name it by ?coordinator=NAME (docs/servicebus.md)"
            )),
            Kind::Refused => failure.during(format!("this credential may not listen to {entity}")),
            _ => failure.during(format!("reading {entity}")),
        })
    }

    async fn next(&mut self, namespace: &Namespace) -> Result<Message<Body<Value>>, Failure> {
        if self.credit <= CREDIT / 2 {
            self.credit = CREDIT;
            self.receiver.set_credit(CREDIT).await.map_err(Failure::lost)?;
        }
        tokio::select! {
            biased;
            () = namespace.ended.cancelled() => Err(Failure::lost("it ended")),
            delivery = self.receiver.recv::<Body<Value>>() => {
                self.credit -= 1;
                Ok(delivery?.into_message())
            }
        }
    }
}

pub(super) fn hear(namespace: &Namespace, hints: &HintBroadcast, message: &Message<Body<Value>>) {
    match body(&message.body).map(serde_json::from_slice::<Signal>) {
        Some(Ok(Signal::Hints(values))) => {
            for value in values {
                match serde_json::from_value::<Hint>(value) {
                    Ok(hint) => hints.send(hint),
                    // Of a newer coordinator.
                    Err(error) => tracing::debug!(%error, "skipped an unreadable hint"),
                }
            }
        }
        Some(Ok(Signal::TakeOver { factory, consumer })) => taken_over(namespace, &factory, &consumer),
        _ => tracing::debug!("skipped an unreadable message"),
    }
}

/// Everybody hears the notices in the same order, so the last one wins everywhere.
fn taken_over(namespace: &Namespace, factory: &FactoryId, consumer: &str) {
    let mut consumers = namespace.consumers.lock();
    let Some(current) = consumers.get_mut(factory) else { return };
    if current.name == consumer {
        current.noticed = true;
    } else if current.noticed {
        current.replace();
        consumers.remove(factory);
    }
}

/// Of a coordinator; or an offer that was delivered too often, which Service Bus sent here by itself.
pub(super) fn mourn(dead: &DeadLetterBroadcast, message: &Message<Body<Value>>) {
    let Some(bytes) = body(&message.body) else { return };
    if let Ok(letter) = serde_json::from_slice::<DeadLetter>(bytes) {
        dead.send(letter);
    } else if let Ok(offer) = serde_json::from_slice::<Offer>(bytes) {
        dead.send(never_acknowledged(&offer, enqueued(message)));
    } else {
        tracing::debug!("skipped an unreadable dead letter");
    }
}

fn enqueued(message: &Message<Body<Value>>) -> Timestamp {
    let key = OwnedKey::Symbol(Symbol::from("x-opt-enqueued-time"));
    let value = message.message_annotations.as_ref().and_then(|annotations| annotations.0.get(&key));
    match value {
        Some(Value::Timestamp(at)) => Timestamp::from_millis(at.milliseconds()),
        _ => Timestamp::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use giga_domain::{FeedPos, JobId};

    use super::*;

    fn read(message: &Outgoing) -> Vec<Hint> {
        serde_json::from_slice(&message.body).unwrap()
    }

    #[test]
    fn many_hints_are_one_message_and_the_newest_position_says_all() {
        let feed = |pos| Hint::Feed { pos: FeedPos(pos) };
        let sent = messages(vec![feed(7), Hint::Pauses, feed(9), feed(8), Hint::Leaderless]).unwrap();
        assert_eq!(sent.len(), 1);
        assert_eq!(read(&sent[0]), [feed(9), Hint::Pauses, Hint::Leaderless]);
    }

    #[test]
    fn what_is_too_long_comes_in_parts_and_whole() {
        let jobs: Vec<JobId> = (0..20_000).map(JobId::from_u128).collect();
        let sent =
            messages(vec![Hint::Settled { worker: "w1".parse().unwrap(), jobs: jobs.clone() }]).unwrap();
        assert!(sent.len() > 1 && sent.iter().all(|message| message.body.len() <= MOST_BYTES + 2));
        let back = sent.iter().flat_map(read).flat_map(|hint| match hint {
            Hint::Settled { jobs, .. } => jobs,
            other => panic!("{other:?}"),
        });
        assert_eq!(back.collect::<Vec<_>>(), jobs);
    }
}
