//! The store of topic jobs: tables of their own, hot and narrow, because thousands of them pass each second.
//!
//! Like [`crate::Store`] it is the only truth, judges by its own clock, answers when a write is durable, and shares
//! transactions between callers. What a claim costs depends on the batch, never on the backlog. Implementations pass
//! `giga_testkit::topic_suite`.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::job::RetryPolicy;
use giga_domain::topic::{Outcome, TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, Epoch, JobId, Priority, ProductId, Timestamp, WorkerId};

use crate::StoreError;
use crate::store::StoreStats;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
pub trait TopicStore: Send + Sync {
    /// All or none. A job whose topic and idempotency key are known is not made again; with another payload the whole
    /// call is refused as [`StoreError::KeyReused`]. The same ids again are this very call, repeated.
    async fn enqueue(&self, jobs: Vec<NewTopicJob>) -> Result<Vec<Enqueued>>;

    /// Up to as many ready jobs as the workers have free slots: priority, then age (id). Racing claimers, in this
    /// process or another, get disjoint jobs and never wait for each other. A closed gate gives nothing. What was
    /// claimed and never heard of comes back when its lease ends.
    async fn claim(&self, claim: TopicClaim) -> Result<Vec<Assignment>>;

    /// Holders' final reports, each on its own: one that is fenced does not hurt the others. In the order given.
    async fn settle(&self, results: Vec<Settle>) -> Result<Vec<Settled>>;

    /// Keeps leases alive. In the order given: whether the holder still holds it.
    async fn renew(&self, held: Vec<(JobId, Epoch)>, lease: Duration) -> Result<Vec<bool>>;

    /// Takes back jobs whose lease has ended, longest ended first.
    async fn expire(&self, limit: usize) -> Result<Swept>;

    /// Makes scheduled jobs ready whose time has come, longest due first.
    async fn promote(&self, limit: usize) -> Result<Swept>;

    /// Dead jobs of the topic become ready again, oldest first: those named, or all where none is named, at most
    /// `limit`. Answers which.
    ///
    /// This, `expire` and `promote` name what they moved once: where the connection is lost over the commit, the call is
    /// run again, finds nothing left to move, and answers with less than happened. [`StoreStats::retries`] has risen then.
    async fn retry_dead(&self, key: TopicKey, jobs: Vec<JobId>, limit: usize) -> Result<Vec<JobId>>;

    /// Opens or closes a gate; a closed one says since when and by whom. Closing a closed one changes nothing.
    async fn set_gate(&self, gate: Gate, closed: bool, actor: Actor) -> Result<()>;

    /// Removes jobs that were done or dead before `before`, at most `limit`; says how many.
    async fn retire(&self, before: Timestamp, limit: usize) -> Result<usize>;

    async fn gates(&self) -> Result<Vec<ClosedGate>>;

    /// Every topic that ever had a job, by product and name. Counts are kept by the writes; nobody counts rows.
    async fn topics(&self) -> Result<Vec<TopicCounts>>;

    async fn job(&self, id: JobId) -> Result<Option<TopicJob>>;

    /// Whose jobs these are; those that there are not are left out. One look, without payloads.
    async fn products_of(&self, ids: &[JobId]) -> Result<HashMap<JobId, ProductId>>;

    /// Newest first. For operators' eyes: in a large store, scheduled, running and done jobs are found by looking through
    /// many others, which may take a while. Dead and ready ones are found at once.
    async fn list(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>>;

    fn stats(&self) -> StoreStats;

    /// Another process made jobs of the topic ready, none of them with a smaller id. Only a hint: it makes their age
    /// count at the next claim; without it they are found a little later.
    fn ready_below(&self, _key: &TopicKey, _lowest: JobId) {}
}

#[derive(Debug, Clone)]
pub struct NewTopicJob {
    pub id: JobId,
    pub key: TopicKey,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub idempotency_key: Option<String>,
    pub run_at: Option<Timestamp>,
    pub retry: RetryPolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// `due` is set for a job whose time has not come.
    Created { id: JobId, due: Option<Timestamp> },
    /// The key was seen before; this is the job it made.
    Existing(JobId),
}

impl Enqueued {
    pub const fn id(&self) -> JobId {
        match self {
            Self::Created { id, .. } | Self::Existing(id) => *id,
        }
    }
}

#[derive(Debug, Clone)]
pub struct TopicClaim {
    pub key: TopicKey,
    /// Who has room for how many. Jobs are dealt to them in turn, best first.
    pub workers: Vec<(WorkerId, u32)>,
    pub lease: Duration,
}

impl TopicClaim {
    pub fn slots(&self) -> usize {
        self.workers.iter().map(|(_, free)| *free as usize).sum()
    }
}

/// A job with the right to write to it, for one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub id: JobId,
    pub worker: WorkerId,
    pub epoch: Epoch,
    /// 1 for the first.
    pub attempt: u32,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Settle {
    pub id: JobId,
    pub epoch: Epoch,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// `due` where it is tried again later. `repeated` for a word that was heard before, which changed nothing now: the
    /// job is where it has come to since.
    Applied { key: TopicKey, stage: TopicStage, due: Option<Timestamp>, repeated: bool },
    /// The job is another's by now, or nobody's, or its holder reported something else before.
    Fenced,
    /// There is no such job.
    Unknown,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    pub jobs: Vec<(TopicKey, JobId, TopicStage)>,
    /// When the next one ends or is due, where there is one: nothing has to be looked at before.
    pub next: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    Everything,
    Topic(TopicKey),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedGate {
    pub gate: Gate,
    pub since: Timestamp,
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicCounts {
    pub key: TopicKey,
    /// Indexed by `TopicStage as usize`.
    pub by_stage: [u64; 5],
}

impl TopicCounts {
    pub fn count(&self, stage: TopicStage) -> u64 {
        self.by_stage[stage as usize]
    }
}
