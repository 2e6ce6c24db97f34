//! What a plan is made from. The caller gathers it; nothing here is looked up later.
//!
//! These are views: they hold what placing a job needs and never a lease, a body or anything that is written back.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use giga_domain::factory::FactoryRepo;
use giga_domain::job::Concurrency;
use giga_domain::{
    Access, Capability, CapabilitySet, ClosedEngine, EngineChoice, EngineHere, Evict, FactoryId,
    FactoryState, Health, JobId, Priority, ProductId, Rev, Timestamp, UnitsInUse, Usd,
};

pub use crate::policy::ProductPolicy;
pub use giga_domain::Weights;

/// A queued job, as far as placing it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    pub id: JobId,
    pub rev: Rev,
    pub product: ProductId,
    pub priority: Priority,
    /// Since when it competes for a place: its age is measured from here.
    pub enqueued_at: Timestamp,
    /// Not before this (a schedule, a back-off).
    pub ready_at: Timestamp,
    /// In order of preference. Where it names several, one of them is enough; otherwise `capabilities` has it.
    pub engine: EngineChoice,
    pub capabilities: CapabilitySet,
    pub repo: Option<String>,
    /// Those that it needs beside `repo`.
    pub more_repos: Vec<String>,
    pub concurrency: Option<Concurrency>,
    /// The most it may cost.
    pub cost_cap: Option<Usd>,
    /// Where it, or its parent, last ran.
    pub last_factory: Option<FactoryId>,
    /// A live offer: until the deadline only this factory may take it.
    pub offered_to: Option<(FactoryId, Timestamp)>,
    /// Factories that failed to pick it up, or will have when the offer ends, each until when it is left out.
    pub excluded: Vec<(FactoryId, Timestamp)>,
    /// What the attempts before this one came to; boxed, because most jobs have none.
    pub earlier: Option<Box<Earlier>>,
}

/// Attempts that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Which attempt the next one is, and how many there are at most.
    pub next: u32,
    pub of: u32,
    /// Why the last one failed, for people.
    pub failure: String,
    /// Factories that have shown that they cannot run it.
    pub unfit: Vec<FactoryId>,
}

impl JobView {
    pub fn unfit(&self) -> &[FactoryId] {
        self.earlier.as_ref().map(|earlier| earlier.unfit.as_slice()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FactoryView {
    pub id: FactoryId,
    pub state: FactoryState,
    pub health: Health,
    /// Why it is not well, in its own words.
    pub health_reason: Option<String>,
    /// Within its heartbeat deadline.
    pub live: bool,
    /// It asks for work right now, so that a pickup which it missed before says nothing.
    pub asks: bool,
    /// Cut to its token's scope already.
    pub capabilities: CapabilitySet,
    /// Those of its engines whose account takes no work now.
    pub closed: Vec<ClosedEngine>,
    /// Empty: every product.
    pub products: Vec<ProductId>,
    pub repos: Vec<FactoryRepo>,
    pub can_clone: bool,
    /// Prefixes of URLs; see [`giga_domain::factory::Advertised`].
    pub clones: Vec<String>,
    pub seat_limit: u32,
    pub seats_used: u32,
    /// What the jobs that it holds use of what it has a number of.
    pub units_used: UnitsInUse,
    /// Its own measure of how busy it is, 0 for idle.
    pub load: f64,
    pub cost_per_hour: Option<Usd>,
}

impl FactoryView {
    pub fn free_seats(&self) -> u32 {
        self.seat_limit.saturating_sub(self.seats_used)
    }

    /// One more job is there.
    pub(crate) fn hold(&mut self, job: &JobView) {
        self.seats_used = self.seats_used.saturating_add(1);
        self.units_used.take(&job.capabilities);
    }

    /// Of what the job uses and there is a number of: what there are too few left of, and how many are left.
    pub(crate) fn short_of<'a>(&'a self, job: &'a JobView) -> impl Iterator<Item = (&'a Capability, u32)> {
        job.capabilities.short_of(&self.capabilities, &self.units_used)
    }

    /// Its engines, and whether each can be given work.
    pub fn engines(&self) -> Vec<EngineHere<'_>> {
        let names = self.capabilities.iter().filter_map(Capability::as_engine);
        let named = names.filter(|name| *name != Capability::ANY_ENGINE);
        named.map(|name| EngineHere { name, access: self.access(name) }).collect()
    }

    fn access(&self, engine: &str) -> Access {
        self.closed.iter().find(|closed| closed.engine == engine).map_or(Access::Open, |closed| closed.access)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub products: BTreeMap<ProductId, ProductPolicy>,
    /// At this age the starvation penalty is gone, and each further span lifts a job by one priority.
    pub starvation_after: Duration,
    /// A job that was preempted this often is left alone, so that it gets done some day.
    pub max_evictions: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { products: BTreeMap::new(), starvation_after: Duration::from_mins(30), max_evictions: 3 }
    }
}

/// A held job, as far as preempting it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningJob {
    pub id: JobId,
    pub product: ProductId,
    pub priority: Priority,
    pub factory: FactoryId,
    pub started_at: Timestamp,
    /// How often it was preempted before.
    pub evictions: u32,
    /// Its holder is asked to let go already.
    pub evict: Option<Evict>,
}

/// Everything but the queue: the fleet, and what it is doing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    pub factories: Vec<FactoryView>,
    /// Held jobs per product: where its fair share stands.
    pub running_by_product: HashMap<ProductId, u32>,
    /// Held jobs per product and concurrency key.
    pub running_by_key: HashMap<(ProductId, String), u32>,
    /// Queued jobs that somebody else gave a seat up for. They go before everybody.
    pub promised: Vec<JobId>,
    /// Factories that are not there yet, in the order in which they are filled: they take only what nobody else can.
    pub absent: HashMap<FactoryId, usize>,
}
