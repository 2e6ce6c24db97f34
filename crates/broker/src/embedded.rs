//! The broker that needs nothing: everything stays in this process and is gone with it.
//!
//! Several coordinators of one process may share one, which is how the simulator and the tests run a cluster. It keeps
//! at most a few thousand offers per factory for a few minutes; the oldest are dropped first.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FactoryId, Offer, Timestamp};
use giga_ports::broker::{DeadLetter, DeadLetters, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError, Clock};

use crate::local::{Bounds, DeadLetterBroadcast, HintBroadcast, Mailboxes, never_acknowledged};

const KEPT: usize = 4_096;
const KEPT_FOR: Duration = Duration::from_mins(10);

/// A clone is another handle on the same broker.
#[derive(Clone)]
pub struct Embedded(Arc<Inner>);

struct Inner {
    mailboxes: Arc<Mailboxes>,
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.mailboxes.close();
    }
}

impl Embedded {
    /// Without a clock: the offers that it gives up are dated to the beginning of time.
    pub fn new() -> Self {
        Self::dated_by(|| Timestamp::ZERO)
    }

    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::dated_by(move || clock.now())
    }

    fn dated_by(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let dead = DeadLetterBroadcast::new();
        let bounds =
            Bounds { offers: KEPT, age: KEPT_FOR, unattended_offers: KEPT, unattended_age: KEPT_FOR };
        let mirror = dead.clone();
        let on_dead = move |offer: Offer| mirror.send(never_acknowledged(&offer, now()));
        let mailboxes = Arc::new(Mailboxes::new(bounds, Box::new(on_dead)));
        Self(Arc::new(Inner { mailboxes, hints: HintBroadcast::new(), dead }))
    }

    /// Loses every offer and the memory of duplicates, as a broker may at any time. Readers stay connected.
    pub fn wipe(&self) {
        self.0.mailboxes.wipe();
    }
}

impl Default for Embedded {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}

#[async_trait]
impl Broker for Embedded {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        Ok(())
    }

    async fn publish(&self, offers: &[Offer]) -> Result<(), BrokerError> {
        self.0.mailboxes.put(offers.iter().cloned());
        Ok(())
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        Ok(self.0.mailboxes.consume(factory))
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        self.0.dead.send(letter.clone());
        Ok(())
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        Ok(self.0.dead.subscribe())
    }

    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        self.0.hints.send(hint.clone());
        Ok(())
    }

    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        Ok(self.0.hints.subscribe())
    }
}
