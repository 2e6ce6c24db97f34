//! Everything that the parties of one simulation share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giga_broker::Embedded;
use giga_coordinator::{Coordinator, Error};
use giga_domain::JobId;
use giga_ports::StoreReads;
use giga_store::{MemoryBackend, MemoryTopics};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::actors::Accounts;
use crate::bug::Bug;
use crate::clock::SimClock;
use crate::history::History;
use crate::ports::{BudgetAudit, Repositories, SeenJobs};
use crate::prng::Prng;
use crate::scenario::{Rates, Scenario};
use crate::trace::Trace;
use crate::turnstile::Turnstile;

#[derive(Debug)]
pub(crate) struct World {
    pub scenario: Scenario,
    pub bug: Option<Bug>,
    pub clock: SimClock,
    pub turnstile: Turnstile,
    pub database: MemoryBackend,
    pub topics: MemoryTopics,
    pub broker: Embedded,
    pub history: History,
    pub trace: Trace,
    stormy: AtomicBool,
    seen_by_broker: SeenJobs,
    pub budget_audit: BudgetAudit,
    pub repositories: Repositories,
    pub accounts: Accounts,
    /// Where each coordinator can be reached, while it lives.
    addresses: Mutex<Vec<Option<Address>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub coordinator: Arc<Coordinator>,
    pub life: Arc<Life>,
}

/// Tells everybody who is connected to a coordinator when it dies, in the order in which they connected.
#[derive(Debug, Default)]
pub(crate) struct Life {
    over: AtomicBool,
    bell: Notify,
}

impl Life {
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.bell.notify_waiters();
    }

    pub(crate) async fn ended(&self) {
        let rung = self.bell.notified();
        if !self.over.load(Ordering::Relaxed) {
            rung.await;
        }
    }
}

/// Why a call brought nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Nobody knows whether it took effect.
    Lost,
    Refused(Error),
}

/// The longest that a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl World {
    pub(crate) fn new(scenario: Scenario, bug: Option<Bug>, keep_trace: bool) -> Self {
        let mut clock = SimClock::start();
        if scenario.rules.money.is_some_and(|money| money.midnight) {
            clock = clock.midnight_after(scenario.storm / 2);
        }
        Self {
            addresses: Mutex::new(vec![None; scenario.coordinators]),
            scenario,
            bug,
            clock,
            turnstile: Turnstile::default(),
            database: MemoryBackend::new(Arc::new(clock)),
            topics: MemoryTopics::new(Arc::new(clock)),
            broker: Embedded::with_clock(Arc::new(clock)),
            history: History::default(),
            trace: Trace::new(clock, keep_trace),
            stormy: AtomicBool::new(false),
            seen_by_broker: SeenJobs::default(),
            budget_audit: BudgetAudit::default(),
            repositories: Repositories::default(),
            accounts: Accounts::default(),
        }
    }

    /// What is in the database, past every turnstile.
    pub(crate) fn reads(&self) -> &dyn StoreReads {
        &self.database
    }

    pub(crate) fn is_stormy(&self) -> bool {
        self.stormy.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stormy(&self, stormy: bool) {
        self.stormy.store(stormy, Ordering::Relaxed);
    }

    /// How often things go wrong now.
    pub(crate) fn rates(&self) -> Rates {
        if self.is_stormy() { self.scenario.rates } else { Rates::default() }
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) fn is_new_to_the_broker(&self, job: JobId) -> bool {
        self.seen_by_broker.is_new(job)
    }

    pub(crate) fn set_address(&self, slot: usize, address: Option<Address>) {
        self.addresses.lock()[slot] = address;
    }

    pub(crate) fn address(&self, slot: usize) -> Option<Address> {
        self.addresses.lock()[slot].clone()
    }

    /// Any of those that live.
    pub(crate) fn some_address(&self, prng: &mut Prng) -> Option<Address> {
        let alive: Vec<Address> = {
            let addresses = self.addresses.lock();
            addresses.iter().flatten().cloned().collect()
        };
        (!alive.is_empty()).then(|| prng.pick(&alive).clone())
    }

    /// Calls some coordinator over a network that may lose the request or the reply.
    pub(crate) async fn call<T, Fut>(
        &self,
        prng: &mut Prng,
        make: impl FnOnce(Arc<Coordinator>) -> Fut,
    ) -> Result<T, Trouble>
    where
        Fut: Future<Output = Result<T, Error>>,
    {
        let rates = self.rates();
        tokio::time::sleep(Duration::from_millis(prng.between(1, 8))).await;
        let Some(address) = self.some_address(prng) else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            return Err(Trouble::Lost);
        };
        if prng.chance(rates.request_lost) {
            tokio::time::sleep(Duration::from_millis(prng.between(10, 400))).await;
            return Err(Trouble::Lost);
        }
        let Address { coordinator, life, .. } = address;
        let answer = self.while_alive(&life, make(coordinator)).await.ok_or(Trouble::Lost)?;
        if prng.chance(rates.reply_lost) {
            return Err(Trouble::Lost);
        }
        answer.map_err(|error| match error {
            Error::Store(store) if store.is_transient() => Trouble::Lost,
            error => Trouble::Refused(error),
        })
    }

    /// What comes of it before the coordinator dies and before the caller loses patience.
    async fn while_alive<T>(&self, life: &Life, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = life.ended() => None,
            answer = tokio::time::timeout(PATIENCE, work) => answer.ok(),
        }
    }
}
