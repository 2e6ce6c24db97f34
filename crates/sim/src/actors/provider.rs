//! The providers of the engines' accounts: now and then one closes an account for a while. Nobody is told; whoever works with
//! it notices.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Account, AccountId, AccountState, Timestamp};
use giga_ports::Clock;
use parking_lot::Mutex;

use super::nap;
use crate::prng::Prng;
use crate::scenario::ENGINES;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Provider {
    pub world: Arc<World>,
    pub prng: Prng,
}

impl Provider {
    pub(crate) async fn run(mut self) {
        loop {
            nap(&mut self.prng, 500, 3_000).await;
            if self.world.is_stormy() && self.world.scenario.rules.accounts {
                let engine = *self.prng.pick(&ENGINES);
                let until =
                    self.world.clock.now().plus(Duration::from_millis(self.prng.between(1_000, 20_000)));
                self.world.trace.note(|| format!("the account of {engine} is closed until {until}"));
                self.world.accounts.close(engine, until);
            }
        }
    }
}

/// Until when each engine's account is closed.
#[derive(Debug, Default)]
pub(crate) struct Accounts(Mutex<[Option<Timestamp>; ENGINES.len()]>);

impl Accounts {
    fn close(&self, engine: &str, until: Timestamp) {
        let mut closed = self.0.lock();
        for (_, known) in ENGINES.iter().zip(closed.iter_mut()).filter(|(name, _)| **name == engine) {
            *known = (*known).max(Some(until));
        }
    }

    pub(crate) fn closed(&self, engine: &str, now: Timestamp) -> Option<Timestamp> {
        let closed = self.0.lock();
        let mut all = ENGINES.iter().zip(closed.iter());
        let (_, until) = all.find(|(name, _)| **name == engine)?;
        until.filter(|until| *until > now)
    }
}

/// What one life of a factory has noticed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noticed(Arc<Accounts>);

impl Noticed {
    pub(crate) fn note(&self, engine: &str, until: Timestamp) {
        self.0.close(engine, until);
    }

    pub(crate) fn until(&self, engine: &str, now: Timestamp) -> Option<Timestamp> {
        self.0.closed(engine, now)
    }

    /// As it says it with its heartbeats.
    pub(crate) fn reported(&self, now: Timestamp) -> Vec<Account> {
        let account = |engine: &&'static str| {
            let until = self.0.closed(engine, now);
            Account {
                engine: (*engine).to_owned(),
                // The same login everywhere.
                account: AccountId::fingerprint(engine, b"login"),
                state: until.map_or(AccountState::Open, |_| AccountState::OutOfQuota),
                until,
                windows: Vec::new(),
            }
        };
        ENGINES.iter().map(account).collect()
    }
}
