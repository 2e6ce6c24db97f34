//! LISTEN and NOTIFY on the database that is there anyway: nothing more to run.
//!
//! PostgreSQL keeps no notification for whoever does not listen. Each process keeps the offers of its own consumers in
//! mailboxes, and for a short while those of factories that may be about to connect to it. A factory that has consumers
//! in two processes is offered the job in both; the claim decides. A pooler that hands out connections per transaction
//! must not stand between: it would lose the LISTEN.

mod connect;
mod listener;
mod publisher;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FactoryId, Offer};
use giga_ports::broker::{DeadLetter, DeadLetters, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError};
use tokio::sync::watch;

use self::connect::Connector;
use self::listener::{Ears, Listening, listen};
use self::publisher::Publisher;
use crate::local::{Bounds, DeadFan, HintFan, Mailboxes};

/// Offers of factories that have no consumer here are mostly another process's to deliver.
const BOUNDS: Bounds = Bounds {
    offers: 4_096,
    age: Duration::from_mins(10),
    unattended_offers: 64,
    unattended_age: Duration::from_secs(30),
};

pub struct Postgres {
    publisher: Publisher,
    mailboxes: Arc<Mailboxes>,
    hints: HintFan,
    dead: DeadFan,
    /// Whether the listening connection stands. The listener ends when this is dropped.
    listening: watch::Receiver<bool>,
}

impl Postgres {
    /// Both connections are its own. Fails when the server cannot be reached now; later on it comes back by itself.
    pub async fn connect(url: &str) -> Result<Self, BrokerError> {
        let connector = Arc::new(Connector::new(url)?);
        let first = Listening::start(&connector).await?;
        let publisher = Publisher::start(Arc::clone(&connector));
        let burier = publisher.clone();
        let mailboxes = Arc::new(Mailboxes::new(BOUNDS, Box::new(move |offer| burier.bury(offer))));
        let (hints, dead) = (HintFan::new(), DeadFan::new());
        let (alive, listening) = watch::channel(true);
        let ears = Ears { mailboxes: Arc::clone(&mailboxes), hints: hints.clone(), dead: dead.clone() };
        tokio::spawn(listen(connector, first, ears, alive));
        Ok(Self { publisher, mailboxes, hints, dead, listening })
    }

    /// Loses what this process holds, as its restart would.
    pub fn wipe(&self) {
        self.mailboxes.wipe();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.mailboxes.close();
    }
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

#[async_trait]
impl Broker for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    async fn ping(&self) -> Result<(), BrokerError> {
        if !*self.listening.borrow() {
            return Err(BrokerError::because("the connection that listens is being restored"));
        }
        self.publisher.notify(wire::HINTS, Vec::new()).await
    }

    async fn publish(&self, offers: &[Offer]) -> Result<(), BrokerError> {
        if offers.is_empty() {
            return Ok(());
        }
        self.publisher.notify(wire::OFFERS, wire::pack(offers)?).await
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        Ok(self.mailboxes.consume(factory))
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        self.publisher.notify(wire::DEAD, wire::pack([letter])?).await
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        Ok(self.dead.subscribe())
    }

    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        self.publisher.notify(wire::HINTS, wire::pack(wire::small_enough(hint.clone()))?).await
    }

    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        Ok(self.hints.subscribe())
    }
}
