//! A factory's offers: one subscription, read under locks by one consumer.
//!
//! A task reads ahead a little and settles; whoever consumes has the other end of a channel. What was handed over and not
//! acknowledged goes back when the consumer ends, counted as a delivery; what was only read ahead goes back uncounted.
//! Closing a link gives nothing back by itself: the locks would have to run out.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use fe2o3_amqp::Delivery;
use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::types::messaging::{Body, Modified};
use fe2o3_amqp::types::primitives::Value;
use giga_domain::{FactoryId, Offer};
use giga_ports::BrokerError;
use giga_ports::broker::{Delivered, Offers};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::entities::{DEFAULT_RULE, Made, RULE, TARGET};
use super::failure::{Failure, Kind, PATIENCE};
use super::namespace::{EntitySession, Namespace};
use super::requests::Requests;

/// Read ahead at most. Small, because their locks run while they wait.
const AHEAD: u32 = 32;
/// Handed over and not acknowledged; past it the oldest are left to their locks.
const UNACKNOWLEDGED: usize = 4_096;
/// What was sent before the other side learned that nobody reads here any more comes within this, or waits for its lock.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
const TAKEN_OVER: &str = "another consumer of this factory's offers took over";
const CLOSED: &str = "the connection to Service Bus was lost, or the broker was closed";

/// The newest consumer of a factory in this process.
pub(super) struct Current {
    pub(super) name: String,
    /// Whether its own notice was heard: those of others count from there on, and the last one wins everywhere.
    pub(super) noticed: bool,
    replaced: CancellationToken,
    done: watch::Receiver<bool>,
}

impl Current {
    pub(super) fn replace(&self) {
        self.replaced.cancel();
    }
}

enum Command {
    /// It was handed over.
    Taken(u64),
    Complete(u64, oneshot::Sender<Result<(), Failure>>),
}

/// Takes over from an older one in this process. The name is for the notice to others.
pub(super) async fn open(
    namespace: &Arc<Namespace>,
    factory: &FactoryId,
    made: Made,
) -> Result<(ServiceBusOffers, String), Failure> {
    let entity = namespace.address.mailbox(factory);
    let (finished, done) = watch::channel(false);
    let replaced = namespace.ended.child_token();
    let name = namespace.name("read");
    let current = Current { name: name.clone(), noticed: false, replaced: replaced.clone(), done };
    let older = namespace.consumers.lock().insert(factory.clone(), current);
    if let Some(mut older) = older {
        older.replace();
        // It gives back what it held, and this one is to find that in its old order.
        let _ = tokio::time::timeout(PATIENCE, older.done.wait_for(|done| *done)).await;
    }
    let opening = attach(namespace, factory, &entity, &name, made);
    let (session, receiver, requests) =
        namespace.in_time(PATIENCE * 3, opening).await.map_err(|failure| {
            namespace.forget(&entity);
            named(failure, &entity)
        })?;
    let ended = Arc::new(OnceLock::new());
    let (messages, heard) = mpsc::unbounded_channel();
    let (commands, orders) = mpsc::unbounded_channel();
    let pump = Pump {
        factory: factory.clone(),
        _session: session,
        receiver,
        requests,
        held: BTreeMap::new(),
        next: 0,
        waiting: 0,
        credit: 0,
        messages,
        ended: Arc::clone(&ended),
        lost: None,
    };
    let namespace = Arc::clone(namespace);
    tokio::spawn(async move {
        Box::pin(pump.run(orders, &replaced, &namespace)).await;
        // An error means that nobody has asked.
        let _ = finished.send(true);
    });
    Ok((ServiceBusOffers { messages: heard, commands, ended }, name))
}

fn named(failure: Failure, entity: &str) -> Failure {
    match failure.kind {
        Kind::Missing => failure.during(format!(
            "the subscription {entity} is not there: make it, with a correlation rule {TARGET}, or give the coordinators' credential \
             the right to manage (docs/servicebus.md)"
        )),
        Kind::Refused => failure.during(format!("this credential may not listen to {entity}")),
        _ => failure.during(format!("reading {entity}")),
    }
}

async fn attach(
    namespace: &Namespace,
    factory: &FactoryId,
    entity: &str,
    name: &str,
    made: Made,
) -> Result<(EntitySession, Receiver, Requests), Failure> {
    let mut session = namespace.session_for(entity).await?;
    let receiver = Receiver::builder()
        .name(name)
        .source(entity)
        .credit_mode(CreditMode::Manual)
        .attach(&mut session.session)
        .await?;
    let mut requests = Requests::open(&mut session.session, entity, &format!("{name}-answers")).await?;
    if made != Made::Now {
        narrow(&mut requests, factory, entity).await;
    }
    Ok((session, receiver, requests))
}

/// A subscription that somebody else made takes everything unless they said otherwise. Failing here costs messages that are
/// dropped, and no more.
async fn narrow(requests: &mut Requests, factory: &FactoryId, entity: &str) {
    match requests.add_rule(RULE, TARGET, factory.as_str()).await {
        // It was ours already.
        Err(failure) if failure.is(Kind::Exists) => return,
        Err(failure) => {
            tracing::warn!(reason = failure.reason, entity, "the rule of this subscription cannot be set");
            return;
        }
        Ok(()) => {}
    }
    match requests.remove_rule(DEFAULT_RULE).await {
        Ok(()) => tracing::warn!(
            entity,
            "this subscription took every offer; it takes its own factory's from now on"
        ),
        Err(failure) if failure.is(Kind::Missing) => {}
        Err(failure) => {
            tracing::warn!(reason = failure.reason, entity, "the rule $Default cannot be removed");
        }
    }
}

struct Held {
    info: DeliveryInfo,
    lock: Option<[u8; 16]>,
    handed_over: bool,
}

struct Pump {
    factory: FactoryId,
    /// Lives as long as its links.
    _session: EntitySession,
    receiver: Receiver,
    requests: Requests,
    held: BTreeMap<u64, Held>,
    next: u64,
    /// Sent to the consumer and not taken yet.
    waiting: u32,
    /// What the other side may still send.
    credit: u32,
    messages: mpsc::UnboundedSender<Delivered>,
    ended: Arc<OnceLock<String>>,
    /// The link or the connection does not work any more.
    lost: Option<Failure>,
}

impl Pump {
    async fn run(
        mut self,
        mut orders: mpsc::UnboundedReceiver<Command>,
        replaced: &CancellationToken,
        namespace: &Namespace,
    ) {
        let reason = loop {
            if self.credit + self.waiting <= AHEAD / 2 {
                self.credit = AHEAD - self.waiting;
                if let Err(error) = self.receiver.set_credit(self.credit).await {
                    break format!("the link to Service Bus was lost: {error}");
                }
            }
            tokio::select! {
                biased;
                () = replaced.cancelled() => {
                    break if namespace.ended.is_cancelled() { CLOSED } else { TAKEN_OVER }.to_owned();
                }
                order = orders.recv() => match order {
                    None => break "the consumer was dropped".to_owned(),
                    Some(Command::Taken(tag)) => {
                        self.waiting -= 1;
                        if let Some(held) = self.held.get_mut(&tag) {
                            held.handed_over = true;
                        }
                    }
                    Some(Command::Complete(tag, answer)) => {
                        let result = self.complete(tag).await;
                        let _ = answer.send(result);
                    }
                },
                delivery = self.receiver.recv::<Body<Value>>() => match delivery {
                    Ok(delivery) => self.received(delivery).await,
                    Err(error) => {
                        let failure = Failure::from(error);
                        // The one who opens the next looks whether it is still there.
                        namespace.forget(&namespace.address.mailbox(&self.factory));
                        let reason = failure.reason.clone();
                        self.lost = Some(failure);
                        break reason;
                    }
                },
            }
            if let Some(failure) = &self.lost {
                break failure.reason.clone();
            }
        };
        let _ = self.ended.set(reason);
        // What was handed over in the meantime counts as delivered.
        while let Ok(order) = orders.try_recv() {
            if let Command::Taken(tag) = order
                && let Some(held) = self.held.get_mut(&tag)
            {
                held.handed_over = true;
            }
        }
        let farewell = tokio::time::timeout(PATIENCE, self.leave());
        let _ = farewell.await;
    }

    async fn received(&mut self, delivery: Delivery<Body<Value>>) {
        self.credit = self.credit.saturating_sub(1);
        let before = delivery.message().header.as_ref().map_or(0, |header| header.delivery_count);
        let lock = lock_of(delivery.delivery_tag());
        let (info, message) = delivery.into_parts();
        let offer = match body(&message.body).map(serde_json::from_slice::<Offer>) {
            Some(Ok(offer)) if offer.target_factory_id == self.factory => offer,
            Some(Ok(offer)) => {
                tracing::debug!(offer = offer.message_id(), "dropped an offer for another factory");
                self.settle_by_link(&info).await;
                return;
            }
            _ => {
                tracing::warn!("dropped an unreadable offer");
                self.settle_by_link(&info).await;
                return;
            }
        };
        self.next += 1;
        let tag = self.next;
        self.held.insert(tag, Held { info, lock, handed_over: false });
        if self.held.len() > UNACKNOWLEDGED
            && let Some((_, oldest)) = self.held.pop_first()
        {
            // Forgotten here; its lock runs out.
            drop(oldest);
        }
        self.waiting += 1;
        // An error means that the consumer was dropped, which comes as the next order.
        let _ = self.messages.send(Delivered { offer, attempt: before.saturating_add(1), tag });
    }

    async fn settle_by_link(&mut self, info: &DeliveryInfo) {
        if let Err(error) = self.receiver.accept(info.clone()).await {
            self.lost = Some(Failure::lost(error));
        }
    }

    async fn complete(&mut self, tag: u64) -> Result<(), Failure> {
        let Some(held) = self.held.remove(&tag) else { return Ok(()) };
        let Some(lock) = held.lock else {
            self.settle_by_link(&held.info).await;
            return Ok(());
        };
        let result = self.requests.complete(lock).await;
        // On the link too, so that neither side remembers it. What that says is of no account any more.
        match &result {
            Ok(()) => self.settle_by_link(&held.info).await,
            Err(failure) if failure.is(Kind::Lost) => self.lost = Some(failure.clone()),
            Err(_) => {
                if let Err(error) = self.receiver.release(held.info).await {
                    self.lost = Some(Failure::lost(error));
                }
            }
        }
        match result {
            // Somebody else may have it by now. The claim in the store has decided, and decides for them too.
            Err(failure) if failure.is(Kind::LockLost) => {
                tracing::debug!(
                    reason = failure.reason,
                    "an offer was acknowledged after its lock was over; it comes again"
                );
                Ok(())
            }
            result => result,
        }
    }

    /// Without it, what is given back would come again on this very link. What is on its way arrives first.
    async fn stop_the_flow(&mut self) {
        if self.receiver.set_credit(0).await.is_err() {
            return;
        }
        while let Ok(Ok(delivery)) =
            tokio::time::timeout(ON_ITS_WAY, self.receiver.recv::<Body<Value>>()).await
        {
            let (info, _) = delivery.into_parts();
            self.next += 1;
            self.held.insert(self.next, Held { info, lock: None, handed_over: false });
        }
    }

    /// Gives back what it holds, and says so before it closes.
    async fn leave(mut self) {
        if self.lost.is_none() {
            self.stop_the_flow().await;
            for held in std::mem::take(&mut self.held).into_values() {
                let given_back = if held.handed_over {
                    let failed = Modified {
                        delivery_failed: Some(true),
                        undeliverable_here: None,
                        message_annotations: None,
                    };
                    self.receiver.modify(held.info, failed).await
                } else {
                    self.receiver.release(held.info).await
                };
                if given_back.is_err() {
                    break;
                }
            }
        }
        let _ = self.receiver.close().await;
        self.requests.close().await;
    }
}

/// .NET writes the first three groups of a GUID backwards; the token of a lock is that reading of the delivery's tag.
fn lock_of(tag: &[u8]) -> Option<[u8; 16]> {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let tag: [u8; 16] = tag.try_into().ok()?;
    Some(ORDER.map(|at| tag[at]))
}

/// The bytes of a message, if it has any.
pub(super) fn body(body: &Body<Value>) -> Option<&[u8]> {
    match body {
        Body::Data(data) => data.first().map(|data| data.0.as_slice()),
        _ => None,
    }
}

pub(super) struct ServiceBusOffers {
    messages: mpsc::UnboundedReceiver<Delivered>,
    commands: mpsc::UnboundedSender<Command>,
    ended: Arc<OnceLock<String>>,
}

impl ServiceBusOffers {
    fn end(&self) -> BrokerError {
        BrokerError::because(self.ended.get().map_or(CLOSED, String::as_str))
    }
}

#[async_trait]
impl Offers for ServiceBusOffers {
    async fn next(&mut self) -> Result<Delivered, BrokerError> {
        // What still waits here was given back when it ended.
        if self.ended.get().is_some() {
            return Err(self.end());
        }
        let Some(delivered) = self.messages.recv().await else { return Err(self.end()) };
        if self.ended.get().is_some() {
            return Err(self.end());
        }
        let _ = self.commands.send(Command::Taken(delivered.tag));
        Ok(delivered)
    }

    async fn ack(&mut self, delivered: &Delivered) -> Result<(), BrokerError> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(Command::Complete(delivered.tag, answer)).map_err(|_| self.end())?;
        match answered.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(self.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_lock_is_the_tag_as_a_guid() {
        let tag: Vec<u8> = (0..16).collect();
        assert_eq!(lock_of(&tag), Some([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]));
        assert_eq!(lock_of(&tag[..4]), None, "of a stranger");
    }
}
