//! Looking without touching. A read sees everything that was answered before it began.

use async_trait::async_trait;
use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Artifact, ArtifactId, Event, EventSeq, Factory, FactoryId, FeedPos, Job, JobId, Leadership, Offer,
    Priority, ProductId, RequestId, Run, Stage, Timestamp,
};
use serde_json::Value;

use super::{GovernanceReads, StoreError};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
pub trait StoreReads: GovernanceReads {
    /// The clock that deadlines are set and judged by.
    async fn now(&self) -> Result<Timestamp>;

    /// Answers when the store can be read and written; the error says what is wrong.
    async fn ping(&self) -> Result<()>;

    async fn job(&self, id: JobId) -> Result<Option<Job>>;

    /// Those that exist, in no particular order.
    async fn jobs_by_id(&self, ids: &[JobId]) -> Result<Vec<Job>>;

    async fn job_text(&self, id: JobId) -> Result<Option<JobText>>;

    /// The job that the product made under this idempotency key, as long as it is kept.
    async fn job_by_key(&self, product: &ProductId, key: &str) -> Result<Option<Job>>;

    /// Newest first.
    async fn list_jobs(&self, filter: &JobFilter, before: Option<JobId>, limit: usize) -> Result<Vec<Job>>;

    /// The job and all below it, parents before their children, at most so many.
    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>>;

    /// Every job that is queued, assigned or building, by id: what a scheduler's view is filled from.
    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>>;

    /// The job that this request won and still holds.
    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>>;

    async fn runs(&self, job: JobId) -> Result<Vec<Run>>;

    /// Of all runs, by epoch and name.
    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>>;

    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>>;

    /// Files of jobs that ended before `before`, oldest first.
    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>>;

    /// Terminal jobs that ended before `before` and that no blocked job waits for: what [`super::Store::retire`]
    /// would remove. None of them ever changes again in a way that matters, so what belongs to them elsewhere can go
    /// before they do.
    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>>;

    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>>;

    /// The fleet-wide feed in commit order. A reader that goes on from the last position it saw misses nothing
    /// and sees nothing twice, also while several writers commit. Positions may be skipped, never reused.
    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>>;

    /// The last position that a reader can see now.
    async fn feed_head(&self) -> Result<FeedPos>;

    /// A point read. A product without jobs is at version 0.
    async fn queue_state(&self, product: &ProductId) -> Result<QueueState>;

    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>>;

    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>>;

    /// By id.
    async fn factories(&self) -> Result<Vec<Factory>>;

    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>>;

    /// By creation.
    async fn tokens(&self) -> Result<Vec<TokenRecord>>;

    /// Offers that the broker may not have yet, oldest first.
    async fn outbox(&self, limit: usize) -> Result<Vec<Waiting>>;

    /// Who leads, where somebody ever did; it may be over.
    async fn leader(&self) -> Result<Option<Leadership>>;

    /// Those that were ever set.
    async fn flags(&self) -> Result<Vec<(String, Value)>>;
}

/// An offer in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub offer: Offer,
    pub since: Timestamp,
}

/// The cold part of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobText {
    pub manifest: Value,
    pub body: String,
    /// What the profile that the manifest names tells the engine, as it was at submit.
    pub persona: Option<String>,
}

/// Everything that is set must hold. Empty lists allow everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFilter {
    pub ids: Vec<JobId>,
    pub products: Vec<ProductId>,
    pub stages: Vec<Stage>,
    pub priorities: Vec<Priority>,
    pub repo: Option<String>,
    /// Held by it now.
    pub factory: Option<FactoryId>,
    pub parent: Option<JobId>,
    /// In upper or lower case, as far as the letters A to Z go: all databases agree on those.
    pub name_contains: Option<String>,
}

impl JobFilter {
    /// The meaning of the filter; a store may answer it by other means but not differently.
    pub fn matches(&self, job: &Job) -> bool {
        let lower = str::to_ascii_lowercase;
        (self.ids.is_empty() || self.ids.contains(&job.id))
            && (self.products.is_empty() || self.products.contains(&job.product))
            && (self.stages.is_empty() || self.stages.contains(&job.stage()))
            && (self.priorities.is_empty() || self.priorities.contains(&job.spec.priority))
            && self.repo.as_ref().is_none_or(|repo| job.spec.repo.as_ref() == Some(repo))
            && self.factory.as_ref().is_none_or(|id| job.lease().is_some_and(|lease| lease.factory == *id))
            && self.parent.is_none_or(|parent| job.spec.parent == Some(parent))
            && self.name_contains.as_ref().is_none_or(|part| lower(&job.spec.name).contains(&lower(part)))
    }
}

/// Per product: how often anything changed, and how many jobs stand in each stage. Kept by the writes themselves,
/// so that nobody has to count rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueState {
    pub version: u64,
    /// Indexed by `Stage as usize`.
    pub by_stage: [u64; 10],
}

impl QueueState {
    pub fn count(&self, stage: Stage) -> u64 {
        self.by_stage[stage as usize]
    }
}

/// Counted since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Write transactions that were committed.
    pub commits: u64,
    /// Commands that they carried.
    pub commands: u64,
    /// Transactions that had to be run again.
    pub retries: u64,
}
