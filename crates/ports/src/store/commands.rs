//! What the store is asked to do, and what it answers.

use std::time::Duration;

use giga_domain::factory::FactoryScope;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Artifact, ArtifactId, ArtifactName, Command, DispatchSeq, FactoryId, Holder, HolderAction, Job,
    JobId, JobSpec, MergeOutcome, ProductId, RequestId, Rev, Timestamp,
};
use serde_json::Value;

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
    /// Somebody was faster, or the job is not to be had; the text says which.
    Gone(&'static str),
    NoSeat,
    KeyBusy,
    /// The product's budget is closed, or has too little left for this job.
    Budget(giga_domain::budget::Closed),
    /// Deregistered, draining, or its token does not cover the job.
    NotAllowed(&'static str),
}

#[derive(Debug, Clone)]
pub struct HolderWrite {
    pub job: JobId,
    pub holder: Holder,
    pub actions: Vec<HolderAction>,
}

#[derive(Debug, Clone)]
pub struct SteerWrite {
    pub job: JobId,
    /// Names this very call: repeating it after a lost reply finds what it did.
    pub request: RequestId,
    /// `Command::Operator`, `Command::Review` or `Command::RequestReview`.
    pub command: Command,
    /// From `If-Match`: another revision is refused with [`super::StoreError::RevMismatch`].
    pub if_rev: Option<Rev>,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct SettleMerge {
    pub job: JobId,
    pub factory: FactoryId,
    pub attempt: u32,
    pub outcome: MergeOutcome,
}

/// A file that the holder's run leaves behind. Its bytes are in place already, under this id.
#[derive(Debug, Clone)]
pub struct PutArtifact {
    pub id: ArtifactId,
    pub job: JobId,
    pub holder: Holder,
    /// Who wrote it: the holder itself, or what runs inside the job.
    pub actor: Actor,
    pub name: ArtifactName,
    pub media_type: String,
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPut {
    pub artifact: Artifact,
    /// What had the name until now; nothing points to its bytes any more.
    pub replaced: Option<Artifact>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reaped {
    pub jobs: Vec<JobId>,
    /// When the next lease ends, where one is held: nothing has to be looked at before.
    pub next_expiry: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconsidered {
    /// Those that moved.
    pub moved: Vec<JobId>,
    /// How many reasons to look were seen to, those of jobs that did not move included.
    pub looked_at: usize,
    /// There may be more to look at: at once, or, where nothing was looked at, somebody else has it and may yet fail.
    pub more: bool,
}

#[derive(Debug, Clone)]
pub struct NewFactory {
    pub id: FactoryId,
    pub scope: FactoryScope,
    pub token: TokenRecord,
}

/// A placement that the dispatcher wants to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOffer {
    pub job: JobId,
    /// What the dispatcher saw.
    pub rev: Rev,
    pub factory: FactoryId,
}

/// Where the dispatcher would have sent a job that another factory claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub job: JobId,
    pub routed_to: FactoryId,
    pub claimed_by: FactoryId,
    /// From the plan to the claim.
    pub lag_ms: u64,
}
