//! What a decided batch changes. A backend persists it set-wise, in the order of the fields.

use std::collections::BTreeMap;

use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Artifact, ArtifactId, CapabilitySet, DispatchSeq, Epoch, EventSeq, Factory, FactoryId, Job, JobId,
    Leadership, Lease, NewEvent, ProductId, Run, RunOutcome, RunReport, Stage, Timestamp, TokenId,
};
use giga_ports::store::Waiting;
use serde_json::Value;

use super::{BudgetRow, ChargeRow, EffectWrites, GraphWrites, PoolWrites, RegistryWrites, SecretWrites};

#[derive(Debug, Default)]
pub struct Writes {
    /// Gone with their texts, runs, deps, artifacts, offers and events. Their queue counts fall with them. First,
    /// because a new job may take over the idempotency key of one that goes.
    pub retire_jobs: Vec<JobId>,
    pub insert_jobs: Vec<JobInsert>,
    /// The whole new state of jobs that existed before. Each appears once.
    pub update_jobs: Vec<Job>,
    /// Leases as they are after the batch. Each job appears in at most one of these two.
    pub put_leases: Vec<LeaseRow>,
    pub delete_leases: Vec<JobId>,
    /// In order: a run can be opened and closed in one batch.
    pub runs: Vec<RunWrite>,
    pub put_budgets: Vec<BudgetRow>,
    /// In order.
    pub insert_charges: Vec<ChargeRow>,
    /// Before the inserts: a file may take over the name of one that goes.
    pub delete_artifacts: Vec<ArtifactId>,
    pub insert_artifacts: Vec<Artifact>,
    pub put_factories: Vec<Factory>,
    pub delete_factories: Vec<FactoryId>,
    /// Only ever moves `last_seen_at` forward.
    pub seen_factories: BTreeMap<FactoryId, Timestamp>,
    pub put_tokens: Vec<TokenRecord>,
    /// None of which is put.
    pub delete_tokens: Vec<TokenId>,
    /// Each flag appears in at most one of these two.
    pub put_flags: Vec<(String, Value)>,
    pub delete_flags: Vec<String>,
    pub put_leader: Option<Leadership>,
    /// Every unsent offer of these jobs goes: a newer one, below, takes its place.
    pub withdraw_offers: Vec<JobId>,
    /// Those that are gone are fine.
    pub delete_offers: Vec<(JobId, DispatchSeq)>,
    /// At most one per job.
    pub put_offers: Vec<Waiting>,
    pub registry: RegistryWrites,
    pub secrets: SecretWrites,
    pub pools: PoolWrites,
    pub effects: EffectWrites,
    pub graph: GraphWrites,
    /// To be added, by product and stage.
    pub queue: BTreeMap<(ProductId, Stage), QueueDelta>,
    /// In order. The backend gives each the next feed position, under a lock that is taken last and kept until
    /// commit, so that positions become visible in their order.
    pub events: Vec<PendingEvent>,
}

impl Writes {
    pub fn is_empty(&self) -> bool {
        self.insert_jobs.is_empty()
            && self.update_jobs.is_empty()
            && self.put_leases.is_empty()
            && self.delete_leases.is_empty()
            && self.runs.is_empty()
            && self.put_budgets.is_empty()
            && self.insert_charges.is_empty()
            && self.delete_artifacts.is_empty()
            && self.insert_artifacts.is_empty()
            && self.put_factories.is_empty()
            && self.delete_factories.is_empty()
            && self.seen_factories.is_empty()
            && self.put_tokens.is_empty()
            && self.delete_tokens.is_empty()
            && self.put_flags.is_empty()
            && self.delete_flags.is_empty()
            && self.put_leader.is_none()
            && self.withdraw_offers.is_empty()
            && self.delete_offers.is_empty()
            && self.put_offers.is_empty()
            && self.retire_jobs.is_empty()
            && self.registry.is_empty()
            && self.secrets.is_empty()
            && self.pools.is_empty()
            && self.effects.is_empty()
            && self.graph.is_empty()
            && self.queue.is_empty()
            && self.events.is_empty()
    }
}

/// With `job.spec.deps` as rows of their own, for the way back from a dep to who waits for it.
#[derive(Debug)]
pub struct JobInsert {
    pub job: Job,
    pub manifest: Value,
    pub body: String,
    pub persona: Option<String>,
    pub fingerprint: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    pub job: JobId,
    pub product: ProductId,
    pub concurrency_key: Option<String>,
    /// What the job uses of capabilities that a factory may have a number of.
    pub units: Option<CapabilitySet>,
    pub lease: Lease,
}

#[derive(Debug)]
pub enum RunWrite {
    Open(Run),
    Engine { job: JobId, epoch: Epoch, engine: String, model: Option<String> },
    Start { job: JobId, epoch: Epoch, at: Timestamp },
    Close { job: JobId, epoch: Epoch, at: Timestamp, outcome: RunOutcome, report: RunReport },
}

/// What is added to the counts of a product's stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDelta {
    /// How many jobs came to the stage or were retired from it: added to the version.
    pub changes: u64,
    pub jobs: i64,
}

#[derive(Debug)]
pub struct PendingEvent {
    pub product: Option<ProductId>,
    pub job: Option<(JobId, EventSeq)>,
    pub at: Timestamp,
    pub actor: Actor,
    pub event: NewEvent,
}
