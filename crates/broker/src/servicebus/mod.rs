//! Azure Service Bus over AMQP 1.0: a topic with a subscription per factory, and topics for hints and dead letters with a
//! subscription per coordinator (ADR 0025).
//!
//! Service Bus knows no exclusive consumer of a subscription. A newer one takes over at once in its own process, and in another
//! when that hears the notice; until then both share the offers, and the claim decides who gets a job, as always.
//!
//! `ServiceBus` is the coordinator's end. A factory has `read_service_bus_offers`, which needs no more than to listen to its
//! own subscription.

mod address;
mod connection;
mod credential;
mod entities;
mod failure;
mod link;
mod namespace;
mod offers;
mod outgoing;
mod requests;
mod signals;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use giga_domain::{FactoryId, Offer};
use giga_ports::broker::{DeadLetter, DeadLetters, Delivered, Hint, Hints, Offers};
use giga_ports::{Broker, BrokerError, Clock, Randomness};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::address::subscription_name;
pub use self::credential::ServiceBusCredential;
use self::entities::{Made, TARGET};
use self::failure::{Failure, Kind};
use self::link::{Connected, Link};
use self::namespace::{Namespace, Settings};
use self::offers::ServiceBusOffers;
use self::outgoing::Outgoing;
use crate::local::{DeadLetterBroadcast, HintBroadcast};

/// Entities that are made at once.
const MADE_AT_ONCE: usize = 16;

/// Who we are there, and what must come from outside.
#[derive(Clone)]
pub struct ServiceBusAccess {
    pub credential: ServiceBusCredential,
    /// Tokens expire by it.
    pub clock: Arc<dyn Clock>,
    /// Names links and subscriptions apart.
    pub random: Arc<dyn Randomness>,
}

impl std::fmt::Debug for ServiceBusAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceBusAccess").field("credential", &self.credential).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ServiceBusTuning {
    /// How long a delivered offer may stay unacknowledged before it is delivered again, from 5 seconds to 5 minutes. A claim
    /// takes milliseconds.
    pub lock: Duration,
    /// How long a signature of ours is good for.
    pub signed_for: Duration,
}

impl Default for ServiceBusTuning {
    fn default() -> Self {
        Self { lock: Duration::from_secs(30), signed_for: credential::SIGNED_FOR }
    }
}

pub struct ServiceBus {
    link: watch::Receiver<Link>,
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
    /// Ends what was opened on it.
    _closed: DropGuard,
    /// Background tasks.
    _tasks: JoinSet<()>,
}

impl ServiceBus {
    pub async fn connect(url: &str, access: ServiceBusAccess) -> Result<Self, BrokerError> {
        Self::connect_with(url, access, ServiceBusTuning::default()).await
    }

    /// If the namespace is unreachable it is retried in the background; fails if it refuses, or if something is missing there
    /// that this credential may not make.
    pub async fn connect_with(
        url: &str,
        access: ServiceBusAccess,
        tuning: ServiceBusTuning,
    ) -> Result<Self, BrokerError> {
        let settings = Settings::new(address::parse(url)?, access, tuning)?;
        let (hints, dead) = (HintBroadcast::new(), DeadLetterBroadcast::new());
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        let (link, tasks) = link::establish(settings, hints.clone(), dead.clone(), closed).await?;
        Ok(Self { link, hints, dead, _closed: guard, _tasks: tasks })
    }

    /// Fails at once while there is no connection.
    fn connected(&self) -> Result<Arc<Connected>, BrokerError> {
        let connected = self.link.borrow().clone().map_err(BrokerError::because)?;
        if connected.namespace.ended.is_cancelled() {
            return Err(BrokerError::because("the connection to Service Bus was lost"));
        }
        Ok(connected)
    }
}

impl std::fmt::Debug for ServiceBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceBus").finish_non_exhaustive()
    }
}

#[async_trait]
impl Broker for ServiceBus {
    fn kind(&self) -> &'static str {
        "servicebus"
    }

    /// A session begins and ends, which the other side answers.
    async fn ping(&self) -> Result<(), BrokerError> {
        let connected = self.connected()?;
        let namespace = &connected.namespace;
        namespace.session_for(&namespace.address.offers()).await?;
        Ok(())
    }

    async fn publish(&self, offers: &[Offer]) -> Result<(), BrokerError> {
        if offers.is_empty() {
            return Ok(());
        }
        let connected = self.connected()?;
        // A topic drops what no subscription takes.
        let factories: std::collections::BTreeSet<&FactoryId> =
            offers.iter().map(|offer| &offer.target_factory_id).collect();
        let factories: Vec<FactoryId> = factories.into_iter().cloned().collect();
        let making = futures::stream::iter(factories.into_iter().map(|factory| {
            let namespace = Arc::clone(&connected.namespace);
            async move { namespace.ensure_mailbox(&factory).await }
        }));
        let made: Vec<Result<Made, Failure>> = making.buffer_unordered(MADE_AT_ONCE).collect().await;
        made.into_iter().collect::<Result<Vec<_>, _>>()?;
        let messages = offers.iter().map(outgoing).collect::<Result<_, _>>()?;
        Ok(connected.offers.send(messages).await?)
    }

    async fn consume(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        let connected = self.connected()?;
        let namespace = &connected.namespace;
        let made = namespace.ensure_mailbox(factory).await?;
        let opened = match offers::open(namespace, factory, made).await {
            // Somebody deleted it, and it was believed to be there.
            Err(failure) if failure.is(Kind::Missing) && made == Made::Before => {
                let made = namespace.ensure_mailbox(factory).await?;
                offers::open(namespace, factory, made).await?
            }
            opened => opened?,
        };
        let (offers, name) = opened;
        if let Err(failure) = connected.hints.take_over(factory, name).await {
            tracing::debug!(reason = failure.reason, "others were not told about a new consumer");
        }
        Ok(Box::new(offers))
    }

    async fn prepare(&self, factory: &FactoryId) -> Result<(), BrokerError> {
        self.connected()?.namespace.ensure_mailbox(factory).await?;
        Ok(())
    }

    async fn dead_letter(&self, letter: &DeadLetter) -> Result<(), BrokerError> {
        let body = serde_json::to_vec(letter).map_err(BrokerError::from_source)?;
        let message = Outgoing { id: None, properties: Vec::new(), body };
        Ok(self.connected()?.dead.send(vec![message]).await?)
    }

    async fn dead_letters(&self) -> Result<Box<dyn DeadLetters>, BrokerError> {
        Ok(self.dead.subscribe())
    }

    async fn hint(&self, hint: &Hint) -> Result<(), BrokerError> {
        Ok(self.connected()?.hints.send(hint.clone()).await?)
    }

    async fn hints(&self) -> Result<Box<dyn Hints>, BrokerError> {
        Ok(self.hints.subscribe())
    }
}

fn outgoing(offer: &Offer) -> Result<Outgoing, BrokerError> {
    let body = serde_json::to_vec(offer).map_err(BrokerError::from_source)?;
    let properties = vec![(TARGET, offer.target_factory_id.to_string())];
    Ok(Outgoing { id: Some(offer.message_id()), properties, body })
}

/// A factory's own end: it listens to its subscription and to nothing else. The coordinator has made that when the factory sent
/// its heartbeat. Whatever goes wrong is the end of it; whoever reads opens another.
pub async fn read_service_bus_offers(
    url: &str,
    access: ServiceBusAccess,
    factory: &FactoryId,
) -> Result<Box<dyn Offers>, BrokerError> {
    let settings = Arc::new(Settings::new(address::parse(url)?, access, ServiceBusTuning::default())?);
    let closed = CancellationToken::new();
    let guard = closed.clone().drop_guard();
    let namespace = Namespace::open(&settings, &closed).await?;
    // Its rule is the coordinator's.
    let (offers, _) = offers::open(&namespace, factory, Made::Now).await?;
    Ok(Box::new(OwnOffers { offers, _closed: guard }))
}

/// With the connection that they are read on.
struct OwnOffers {
    offers: ServiceBusOffers,
    _closed: DropGuard,
}

#[async_trait]
impl Offers for OwnOffers {
    async fn next(&mut self) -> Result<Delivered, BrokerError> {
        self.offers.next().await
    }

    async fn ack(&mut self, delivered: &Delivered) -> Result<(), BrokerError> {
        self.offers.ack(delivered).await
    }
}
