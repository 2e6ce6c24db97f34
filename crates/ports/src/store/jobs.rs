//! Jobs, from submit to retirement: who holds one, what its holder and its operators write, how many stand in each stage.

use std::time::Duration;

use giga_domain::stage::PerStage;
use giga_domain::{
    Actor, Command, DispatchSeq, FactoryId, Holder, HolderAction, Job, JobId, JobSpec, Priority, ProductId,
    RequestId, Rev, Run, Stage, Timestamp, TreeLimits,
};
use serde_json::Value;

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! jobs {
    ($make:ident) => {
        $make! {
            writes JobStore {
                /// All or none of the jobs. A job whose product and idempotency key are known is not made again. A parent
                /// must not be over, and nothing may come to wait for itself, through deps or through children.
                submit(Submit) -> Vec<Submitted>;

                /// One compare-and-set: lease, epoch and run in the same transaction. Losing is not an error.
                claim(Claim) -> Claimed;

                /// Every write by the holder of a lease: fenced by its epoch, all of its actions or none.
                hold(Hold) -> Job;

                /// A command of an operator or a reviewer.
                steer(Steer) -> Job;

                /// Requeues jobs whose lease has ended, or whose holder was asked to let go in vain, longest due first.
                expire_leases(ExpireLeases) -> Reaped;

                /// Removes those of the jobs that are [`JobReads::retirable`], with all that belongs to them; says which.
                retire(Retire) -> Vec<JobId>;
            }
            reads JobReads {
                job(id: JobId) -> Option<Job>;

                /// Those that exist, in no particular order.
                jobs_by_id(ids: &[JobId]) -> Vec<Job>;

                job_text(id: JobId) -> Option<JobText>;

                /// The job that the product made under this idempotency key, as long as it is kept.
                job_by_key(product: &ProductId, key: &str) -> Option<Job>;

                /// Newest first.
                list_jobs(filter: &JobFilter, before: Option<JobId>, limit: usize) -> Vec<Job>;

                /// Every job that [is live](Stage::is_live), by id: what a scheduler's view is filled from.
                live_jobs(after: Option<JobId>, limit: usize) -> Vec<Job>;

                /// The job that this request won and still holds.
                grant(factory: &FactoryId, request: &RequestId) -> Option<Job>;

                /// Jobs with open questions and when the first of each is given up, the next one first.
                asking(limit: usize) -> Vec<(JobId, Timestamp)>;

                runs(job: JobId) -> Vec<Run>;

                /// Terminal jobs that ended before `before` and that no blocked job waits for: what
                /// [`JobStore::retire`] would remove. None of them ever changes again in a way that matters, so what
                /// belongs to them elsewhere can go before they do.
                retirable(before: Timestamp, limit: usize) -> Vec<JobId>;

                /// A point read. A product without jobs is at version 0.
                queue_state(product: &ProductId) -> QueueState;

                queue_states() -> Vec<(ProductId, QueueState)>;
            }
        }
    };
}
jobs!(traits);
pub(super) use jobs;

#[derive(Debug, Clone)]
pub struct Submit {
    pub jobs: Vec<NewJob>,
    pub actor: Actor,
}

/// A job to be made. Its stage follows from its deps, its times from the store's clock.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: JobId,
    pub product: ProductId,
    pub spec: JobSpec,
    /// The manifest with its defaults filled in: what is shown, never what is decided by.
    pub manifest: Value,
    pub body: String,
    /// What the profile that the manifest names tells the engine.
    pub persona: Option<String>,
    /// Tells a repetition from another job under the same idempotency key.
    pub fingerprint: String,
    /// What runs inside its parent makes it: only while that lease holds the parent.
    pub under: Option<Holder>,
    /// How far the tree below its parent may grow.
    pub tree: TreeLimits,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    Created(Job),
    /// The key was seen before; this is the job it made.
    Existing(Job),
}

impl Submitted {
    pub fn job(&self) -> &Job {
        match self {
            Self::Created(job) | Self::Existing(job) => job,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub job: JobId,
    /// What the claimer saw; `None` takes any revision (an accept is guarded by its `dispatch_seq`).
    pub rev: Option<Rev>,
    pub dispatch_seq: Option<DispatchSeq>,
    pub factory: FactoryId,
    pub request: RequestId,
    pub lease: Duration,
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one short-lived value per claim, and most claims are granted")]
pub enum Claimed {
    /// The job, held. Also for a repeated request that had won before.
    Granted(Job),
    Lost(Lost),
}

/// Why a claim got nothing. None of these is an error that a claimer must understand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Somebody was faster, or the job cannot be claimed; the text says which.
    Gone(&'static str),
    NoSeat,
    /// Of what the job uses by number, the factory has too few left.
    InUse,
    KeyBusy,
    /// The product's budget is closed, or has too little left for this job.
    Budget(giga_domain::budget::Closed),
    /// Deregistered, draining, or its token does not cover the job.
    NotAllowed(&'static str),
}

#[derive(Debug, Clone)]
pub struct Hold {
    pub job: JobId,
    pub holder: Holder,
    pub actions: Vec<HolderAction>,
}

#[derive(Debug, Clone)]
pub struct Steer {
    pub job: JobId,
    /// Names this very call: repeating it after a lost reply finds what it did.
    pub request: RequestId,
    /// `Command::Operator`, `Command::Review`, `Command::RequestReview`, `Command::Answer`, `Command::Say` or
    /// `Command::CloseQuestions`.
    pub command: Command,
    /// From `If-Match`: another revision is refused with [`super::StoreError::RevMismatch`].
    pub if_rev: Option<Rev>,
    pub actor: Actor,
}

#[derive(Debug, Clone, Copy)]
pub struct ExpireLeases {
    pub limit: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reaped {
    pub jobs: Vec<JobId>,
    /// When the next lease ends, where one is held: nothing has to be looked at before.
    pub next_expiry: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct Retire {
    pub before: Timestamp,
    pub jobs: Vec<JobId>,
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
    /// Has an open question.
    pub needs_input: bool,
}

impl JobFilter {
    /// The meaning of the filter; a store may answer it by other means but not differently.
    pub fn matches(&self, job: &Job) -> bool {
        let Self { ids, products, stages, priorities, repo, factory, parent, name_contains, needs_input } =
            self;
        let lower = str::to_ascii_lowercase;
        (ids.is_empty() || ids.contains(&job.id))
            && (products.is_empty() || products.contains(&job.product))
            && (stages.is_empty() || stages.contains(&job.stage()))
            && (priorities.is_empty() || priorities.contains(&job.spec.priority))
            && repo.as_ref().is_none_or(|repo| job.spec.repo.as_ref() == Some(repo))
            && factory.as_ref().is_none_or(|id| job.lease().is_some_and(|lease| lease.factory == *id))
            && parent.is_none_or(|parent| job.spec.parent == Some(parent))
            && (!needs_input || job.needs_input())
            && name_contains.as_ref().is_none_or(|part| lower(&job.spec.name).contains(&lower(part)))
    }
}

/// Per product: how often anything changed, and how many jobs stand in each stage. Kept by the writes themselves,
/// so that nobody has to count rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueState {
    pub version: u64,
    pub by_stage: PerStage<u64>,
}

impl QueueState {
    pub fn count(&self, stage: Stage) -> u64 {
        self.by_stage[stage]
    }
}
