//! A mailbox per factory: offers wait in it, one consumer takes them, and what it does not acknowledge goes back.
//!
//! Bounded in number and age. Nothing is awaited under the lock, and taking an offer cannot be interrupted half-way: a
//! `next` that is dropped has taken nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FactoryId, Offer};
use giga_ports::BrokerError;
use giga_ports::broker::{Delivered, Offers};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::window::Window;

/// How often an offer is delivered before it becomes a dead letter.
pub(crate) const DELIVERIES: u32 = 5;
const SWEEP: Duration = Duration::from_secs(30);

/// How much is kept for a factory, and for how long. Past it the oldest goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) offers: usize,
    pub(crate) age: Duration,
    /// While nobody consumes.
    pub(crate) unattended_offers: usize,
    pub(crate) unattended_age: Duration,
}

/// Called for every offer that was delivered too often, without the lock held.
type OnDead = Box<dyn Fn(Offer) + Send + Sync>;

pub(crate) struct Mailboxes {
    state: Mutex<State>,
    bounds: Bounds,
    on_dead: OnDead,
}

#[derive(Default)]
struct State {
    boxes: HashMap<FactoryId, Mailbox>,
    seen: Window,
    /// Names consumers and deliveries.
    counter: u64,
    swept: Option<Instant>,
    closed: bool,
}

#[derive(Default)]
struct Mailbox {
    waiting: VecDeque<Waiting>,
    /// Delivered to the consumer, by tag, which rises in the order of delivery.
    unacked: BTreeMap<u64, Waiting>,
    consumer: Option<Consumer>,
}

struct Waiting {
    offer: Offer,
    deliveries: u32,
    since: Instant,
}

struct Consumer {
    id: u64,
    wake: Arc<Notify>,
}

impl Mailboxes {
    pub(crate) fn new(bounds: Bounds, on_dead: OnDead) -> Self {
        Self { state: Mutex::default(), bounds, on_dead }
    }

    pub(crate) fn put(&self, offers: impl IntoIterator<Item = Offer>) {
        let now = Instant::now();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let State { boxes, seen, .. } = state;
        for offer in offers {
            if !seen.is_new(offer.message_id(), now) {
                continue;
            }
            let mailbox = boxes.entry(offer.target_factory_id.clone()).or_default();
            mailbox.waiting.push_back(Waiting { offer, deliveries: 0, since: now });
            mailbox.trim(&self.bounds, now);
            if let Some(consumer) = &mailbox.consumer {
                consumer.wake.notify_one();
            }
        }
        // Otherwise the mailboxes of factories that have left would stay forever.
        if state.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP) {
            state.swept = Some(now);
            state.boxes.retain(|_, mailbox| {
                mailbox.trim(&self.bounds, now);
                mailbox.consumer.is_some() || !mailbox.waiting.is_empty()
            });
        }
    }

    /// Replaces the previous consumer.
    pub(crate) fn consume(self: &Arc<Self>, factory: &FactoryId) -> Box<dyn Offers> {
        let wake = Arc::new(Notify::new());
        let mut state = self.state.lock();
        state.counter += 1;
        let id = state.counter;
        let mailbox = state.boxes.entry(factory.clone()).or_default();
        let dead = mailbox.requeue_unacked();
        let previous = mailbox.consumer.replace(Consumer { id, wake: Arc::clone(&wake) });
        drop(state);
        if let Some(previous) = previous {
            previous.wake.notify_one();
        }
        self.dead_letter(dead);
        Box::new(LocalOffers { mailboxes: Arc::clone(self), factory: factory.clone(), id, wake })
    }

    /// Drops every offer. Consumers stay.
    pub(crate) fn wipe(&self) {
        let mut state = self.state.lock();
        state.seen = Window::default();
        state.boxes.retain(|_, mailbox| {
            mailbox.waiting.clear();
            mailbox.unacked.clear();
            mailbox.consumer.is_some()
        });
    }

    /// Ends every consumer: nothing will arrive for a while. Unacknowledged offers wait for the next consumers.
    pub(crate) fn end_consumers(&self) {
        let mut state = self.state.lock();
        let mut dead = Vec::new();
        for mailbox in state.boxes.values_mut() {
            if let Some(consumer) = mailbox.consumer.take() {
                dead.extend(mailbox.requeue_unacked());
                consumer.wake.notify_one();
            }
        }
        drop(state);
        self.dead_letter(dead);
    }

    /// Ends every consumer: the broker is gone.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for consumer in state.boxes.values().filter_map(|mailbox| mailbox.consumer.as_ref()) {
            consumer.wake.notify_one();
        }
    }

    fn dead_letter(&self, dead: Vec<Offer>) {
        dead.into_iter().for_each(&self.on_dead);
    }
}

impl Mailbox {
    fn trim(&mut self, bounds: &Bounds, now: Instant) {
        let (most, age) = match self.consumer {
            Some(_) => (bounds.offers, bounds.age),
            None => (bounds.unattended_offers, bounds.unattended_age),
        };
        // The oldest are in front, including those that were put back.
        while let Some(oldest) = self.waiting.front()
            && (self.waiting.len() > most || now.duration_since(oldest.since) >= age)
        {
            self.waiting.pop_front();
        }
    }

    /// Puts unacknowledged offers back in front, in their old order, and returns those that were delivered too often.
    fn requeue_unacked(&mut self) -> Vec<Offer> {
        let unacked = std::mem::take(&mut self.unacked).into_values();
        let (dead, alive): (Vec<_>, Vec<_>) = unacked.partition(|held| held.deliveries >= DELIVERIES);
        for held in alive.into_iter().rev() {
            self.waiting.push_front(held);
        }
        dead.into_iter().map(|held| held.offer).collect()
    }
}

struct LocalOffers {
    mailboxes: Arc<Mailboxes>,
    factory: FactoryId,
    id: u64,
    wake: Arc<Notify>,
}

impl LocalOffers {
    fn own_mailbox<'a>(&self, state: &'a mut State) -> Option<&'a mut Mailbox> {
        let mailbox = state.boxes.get_mut(&self.factory)?;
        mailbox.consumer.as_ref().is_some_and(|consumer| consumer.id == self.id).then_some(mailbox)
    }

    fn take(&self) -> Result<Option<Delivered>, BrokerError> {
        let mut state = self.mailboxes.state.lock();
        if state.closed {
            return Err(BrokerError::because("it was closed"));
        }
        state.counter += 1;
        let tag = state.counter;
        let mailbox = self.own_mailbox(&mut state).ok_or_else(ended)?;
        mailbox.trim(&self.mailboxes.bounds, Instant::now());
        let Some(mut held) = mailbox.waiting.pop_front() else {
            return Ok(None);
        };
        held.deliveries += 1;
        let delivered = Delivered { offer: held.offer.clone(), attempt: held.deliveries, tag };
        mailbox.unacked.insert(tag, held);
        Ok(Some(delivered))
    }
}

fn ended() -> BrokerError {
    BrokerError::because("another consumer of this factory's offers took over, or the connection was lost")
}

#[async_trait]
impl Offers for LocalOffers {
    async fn next(&mut self) -> Result<Delivered, BrokerError> {
        loop {
            if let Some(delivered) = self.take()? {
                return Ok(delivered);
            }
            // An offer that was added after the check above leaves a permit here.
            self.wake.notified().await;
        }
    }

    async fn ack(&mut self, delivered: &Delivered) -> Result<(), BrokerError> {
        let mut state = self.mailboxes.state.lock();
        // It may be gone already after a wipe.
        self.own_mailbox(&mut state).ok_or_else(ended)?.unacked.remove(&delivered.tag);
        Ok(())
    }
}

impl Drop for LocalOffers {
    fn drop(&mut self) {
        let mut state = self.mailboxes.state.lock();
        let dead = self.own_mailbox(&mut state).map(|mailbox| {
            mailbox.consumer = None;
            mailbox.requeue_unacked()
        });
        drop(state);
        self.mailboxes.dead_letter(dead.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use giga_domain::{CapabilitySet, DispatchSeq, JobId, Priority};

    use super::*;

    const BOUNDS: Bounds = Bounds {
        offers: 3,
        age: Duration::from_mins(10),
        unattended_offers: 2,
        unattended_age: Duration::from_secs(30),
    };

    fn mailboxes() -> Arc<Mailboxes> {
        Arc::new(Mailboxes::new(BOUNDS, Box::new(|offer| panic!("{offer:?} was delivered too often"))))
    }

    fn offer(job: u128) -> Offer {
        Offer {
            job_id: JobId::from_u128(job),
            dispatch_seq: DispatchSeq(1),
            product_id: "demo".parse().unwrap(),
            repo: None,
            caps: CapabilitySet::default(),
            priority: Priority::Normal,
            target_factory_id: "f1".parse().unwrap(),
        }
    }

    fn factory() -> FactoryId {
        offer(1).target_factory_id
    }

    /// Everything that is there now.
    async fn take_all(mut consumer: Box<dyn Offers>) -> Vec<u128> {
        let mut jobs = Vec::new();
        while let Some(delivered) = futures::FutureExt::now_or_never(consumer.next()) {
            let delivered = delivered.unwrap();
            consumer.ack(&delivered).await.unwrap();
            jobs.push(delivered.offer.job_id.as_u128());
        }
        jobs
    }

    #[tokio::test]
    async fn a_full_mailbox_loses_its_oldest() {
        let mailboxes = mailboxes();
        mailboxes.put((1..=4).map(offer));
        assert_eq!(take_all(mailboxes.consume(&factory())).await, [3, 4], "nobody consumed");
        let consumer = mailboxes.consume(&factory());
        mailboxes.put((5..=9).map(offer));
        assert_eq!(take_all(consumer).await, [7, 8, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_too_long_is_dropped() {
        let mailboxes = mailboxes();
        mailboxes.put([offer(1)]);
        tokio::time::advance(Duration::from_secs(20)).await;
        mailboxes.put([offer(2)]);
        tokio::time::advance(Duration::from_secs(10)).await;
        // Kept unattended for half a minute, and for ten once there is somebody who may take it.
        mailboxes.put([offer(3)]);
        let consumer = mailboxes.consume(&factory());
        tokio::time::advance(Duration::from_mins(10) - Duration::from_secs(11)).await;
        assert_eq!(take_all(consumer).await, [2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_mailbox_of_a_factory_that_left_is_removed() {
        let mailboxes = mailboxes();
        mailboxes.put([offer(1)]);
        drop(mailboxes.consume(&factory()));
        tokio::time::advance(Duration::from_secs(30)).await;
        mailboxes.put([]);
        assert!(mailboxes.state.lock().boxes.is_empty());
    }
}
