//! LISTEN and NOTIFY on the database that is there anyway: no other server to run.
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

use self::connect::{Connector, is_passing};
use self::listener::{Link, Listening, Receivers, listen};
use self::publisher::Publisher;
pub(crate) use self::wire::small_enough;
use crate::local::{Bounds, DeadLetterBroadcast, HintBroadcast, Mailboxes};

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
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
    /// The listener ends when this is dropped.
    link: watch::Receiver<Link>,
}

impl Postgres {
    /// Opens two connections of its own. If the server is unreachable it is retried in the background; fails if the
    /// server refuses.
    pub async fn connect(url: &str) -> Result<Self, BrokerError> {
        let connector = Arc::new(Connector::new(url)?);
        let first = match Listening::start(&connector).await {
            Ok(listening) => Some(listening),
            Err(error) if is_passing(&error) => {
                tracing::warn!(reason = error.reason, "cannot listen on PostgreSQL yet; retrying");
                None
            }
            Err(error) => return Err(error),
        };
        let publisher = Publisher::start(Arc::clone(&connector));
        let dead_letters = publisher.clone();
        let mailboxes =
            Arc::new(Mailboxes::new(BOUNDS, Box::new(move |offer| dead_letters.dead_letter(offer))));
        let (hints, dead) = (HintBroadcast::new(), DeadLetterBroadcast::new());
        let (link_sender, link) = watch::channel(if first.is_some() { Link::Up } else { Link::Connecting });
        let receivers =
            Receivers { mailboxes: Arc::clone(&mailboxes), hints: hints.clone(), dead: dead.clone() };
        tokio::spawn(listen(connector, first, receivers, link_sender));
        Ok(Self { publisher, mailboxes, hints, dead, link })
    }

    /// Fails while the connection is down: notifications would not arrive here.
    fn check_listening(&self) -> Result<(), BrokerError> {
        match *self.link.borrow() {
            Link::Up => Ok(()),
            Link::Connecting => Err(not_connected_yet()),
            Link::Lost => Err(BrokerError::because("the listening connection is being restored")),
        }
    }

    /// Fails at once if there was never a connection. A lost one is replaced when it is needed.
    async fn notify(&self, channel: &'static str, payloads: Vec<String>) -> Result<(), BrokerError> {
        if *self.link.borrow() == Link::Connecting {
            return Err(not_connected_yet());
        }
        self.publisher.notify(channel, payloads).await
    }

    /// Drops what this process holds, as a restart would.
    pub fn wipe(&self) {
        self.mailboxes.wipe();
    }
}

fn not_connected_yet() -> BrokerError {
    BrokerError::because("PostgreSQL has not been reached yet; retrying")
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
        self.check_listening()?;
        self.notify(wire::HINTS, Vec::new()).await
    }

    async fn publish(&self, offers: &[Offer]) -> Result<(), BrokerError> {
        if offers.is_empty() {
            return Ok(());
        }
        self.notify(wire::OFFERS, wire::pack(offers)?).await
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        let offers = self.mailboxes.consume(factory);
        // Looked at afterwards: a connection that is lost from here on ends this consumer too.
        self.check_listening()?;
        Ok(offers)
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        self.notify(wire::DEAD, wire::pack([letter])?).await
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        Ok(self.dead.subscribe())
    }

    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        self.notify(wire::HINTS, wire::pack(small_enough(hint.clone(), wire::MOST))?).await
    }

    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        Ok(self.hints.subscribe())
    }
}
