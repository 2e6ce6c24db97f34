//! Pools: factories that appear with the work and leave after it.
//!
//! Who does what: `look` says what there is work for and what should happen, on any node and without asking anybody;
//! `reconcile` lets the leader do it, one step at a time, each of which the store judges by the leader's term; `people` is
//! what operators ask for, and `enroll` what factories do. A leader that dies in the middle leaves nothing but rows that the
//! next one finds: a member that was ordered is started (again: drivers take the same order twice), one that was given up is
//! stopped.

mod enroll;
mod look;
mod people;
mod reconcile;

pub(crate) use look::could_run;
pub use look::{Awaited, MemberActivity, PoolState, PoolView};

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use giga_domain::{Event, FactoryId, Job, JobId, PoolName, Stage, Timestamp};
use giga_ports::PoolDrivers;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::core::Core;
use crate::dispatch::Lead;
use crate::tokens::TokenCache;
use crate::view::{Fleet, Follower};

pub struct Pools {
    core: Arc<Core>,
    fleet: Arc<Fleet>,
    lead: Arc<Lead>,
    tokens: Arc<TokenCache>,
    drivers: PoolDrivers,
    /// Rung when the view has moved.
    moved: Notify,
    /// The same for those who are told how many factories are wanted.
    watched: watch::Sender<()>,
    memory: Mutex<Memory>,
}

/// What this node has noticed. A new leader starts without it, and notices it again.
#[derive(Default)]
struct Memory {
    /// Since when each member has nothing to do.
    idle: HashMap<FactoryId, Timestamp>,
    /// Members that a driver is busy with.
    driven: HashSet<FactoryId>,
    /// What a driver said of a member the last time that it could not do something, and when it is asked again.
    trouble: HashMap<FactoryId, Trouble>,
    /// Results that wait to be merged, by the repository whose turn it is.
    merging: BTreeMap<JobId, String>,
    /// When the hours of a pool were charged last.
    charged: HashMap<PoolName, Timestamp>,
}

struct Trouble {
    reason: String,
    again_at: Timestamp,
}

impl Pools {
    pub(crate) fn new(
        core: Arc<Core>,
        fleet: Arc<Fleet>,
        lead: Arc<Lead>,
        tokens: Arc<TokenCache>,
        drivers: PoolDrivers,
    ) -> Self {
        Self {
            core,
            fleet,
            lead,
            tokens,
            drivers,
            moved: Notify::new(),
            watched: watch::Sender::default(),
            memory: Mutex::default(),
        }
    }

    /// Changes whenever more or fewer factories may be wanted.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.watched.subscribe()
    }
}

impl Follower for Pools {
    fn sees(&self, _: &[Event]) {
        self.moved.notify_one();
        self.watched.send_replace(());
    }

    fn sees_jobs(&self, jobs: &[Job]) {
        let mut memory = self.memory.lock();
        for job in jobs {
            let waits =
                job.stage() == Stage::Shipping && job.merge.as_ref().is_some_and(|m| m.due().is_some());
            match job.merging().filter(|_| waits) {
                Some(merging) => drop(memory.merging.insert(job.id, merging.repo.to_owned())),
                None => drop(memory.merging.remove(&job.id)),
            }
        }
    }
}
