//! A job as everything but the cold storage sees it: an immutable [`JobSpec`] and a [`State`] with its payload.
//!
//! The verbatim body and the manifest snapshot stand apart (see `manifest`), so that what claims touch stays small.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::merge::{
    ConflictPolicy, Merge, MergeBy, MergeCandidate, MergeFeedback, MergeSettings, MergeState, MergeStrategy,
    MergedRepo, OpenRequest, PullRequest,
};
use crate::word::words;
use crate::{
    AskPolicy, CapabilitySet, Conversation, DispatchSeq, Epoch, EventSeq, FactoryId, JobId, Permissions,
    ProductId, Question, RepoCommit, RequestId, Rev, Spend, Stage, State, Timestamp, Usd, Verdict, backoff,
};

words! {
    "priority",
    /// Ordered: `Critical` sorts first.
    #[derive(Default)]
    pub enum Priority {
        Critical,
        High,
        #[default]
        Normal,
        Low,
    }
}

impl Priority {
    /// 0 for critical up to 3 for low.
    pub const fn rank(self) -> u8 {
        self as u8
    }

    pub fn from_rank(rank: u8) -> Option<Self> {
        Self::ALL.get(usize::from(rank)).copied()
    }
}

words! {
    "job kind",
    #[derive(Default)]
    pub enum JobKind {
        /// Runs an engine on a factory.
        #[default]
        Agent,
        /// Groups its children.
        Composite,
    }
}

words! {
    "deps mode",
    #[derive(Default)]
    pub enum DepsMode {
        #[default]
        All,
        Any,
    }
}

words! {
    "failure policy",
    /// What becomes of a composite when one of its children fails.
    #[derive(Default)]
    pub enum FailurePolicy {
        /// It fails at once, and the children that have not ended are cancelled.
        #[default]
        FailFast,
        /// The others go on; it fails when all have ended.
        Continue,
    }
}

words! {
    "ship mode",
    #[derive(Default)]
    pub enum ShipMode {
        #[default]
        Manual,
        Auto,
    }
}

/// What one run of the job may use up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetCaps {
    #[serde(
        rename = "usdMicros",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::usd::as_micros::option"
    )]
    pub usd: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
}

/// `max` retries after the first attempt; the wait doubles each time, from `backoff_ms` up to an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    pub max: u32,
    pub backoff_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max: 3, backoff_ms: 30_000 }
    }
}

impl RetryPolicy {
    const LONGEST: Duration = Duration::from_hours(1);

    /// The wait after `attempts` used-up attempts.
    pub fn backoff(&self, attempts: u32) -> Duration {
        backoff::doubling(Duration::from_millis(self.backoff_ms), attempts, Self::LONGEST)
    }

    /// How often it is tried at most.
    pub const fn attempts(&self) -> u32 {
        self.max.saturating_add(1)
    }

    pub fn exhausted(&self, attempts: u32) -> bool {
        attempts > self.max
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewGate {
    pub quorum: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
}

impl ReviewGate {
    /// Whether somebody could pass it who could not pass the other: fewer have to agree, or others may.
    pub fn is_weaker_than(&self, other: &Self) -> bool {
        let named = !other.reviewers.is_empty();
        let strangers =
            self.reviewers.is_empty() || self.reviewers.iter().any(|r| !other.reviewers.contains(r));
        self.quorum < other.quorum || (other.quorum > 0 && named && strangers)
    }

    /// For messages.
    pub fn who(&self) -> String {
        if self.reviewers.is_empty() { "anyone".to_owned() } else { self.reviewers.join(", ") }
    }
}

/// At most `limit` jobs of the product with this key are held at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Concurrency {
    pub key: String,
    pub limit: u32,
}

/// What the job asks for; never changes after submit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    pub name: String,
    #[serde(default)]
    pub kind: JobKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Those that the job works on beside `repo`, in the order in which they are merged after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_repos: Vec<String>,
    /// `None` means any engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// All that a factory must have, `engine:<engine>` included. The repo is matched apart from these,
    /// because a factory that lacks it may be able to clone it.
    #[serde(default)]
    pub capabilities: CapabilitySet,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deps: Vec<JobId>,
    #[serde(default)]
    pub deps_mode: DepsMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<JobId>,
    /// Of a composite.
    #[serde(default)]
    pub on_failure: FailurePolicy,
    #[serde(default)]
    pub on_conflict: ConflictPolicy,
    /// The branch that the work starts from, where that is not the target; in every repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The branch that the result goes into, where that is not the repository's own; in every repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "MergeSettings::is_unsaid")]
    pub merge: MergeSettings,
    #[serde(default)]
    pub budget: BudgetCaps,
    #[serde(default)]
    pub retry: RetryPolicy,
    /// What is retried besides what always is; see [`FailReason::RETRIED_ON_REQUEST`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<FailReason>,
    #[serde(default)]
    pub review: ReviewGate,
    #[serde(default)]
    pub ship: ShipMode,
    /// What its engine may do without asking. `None`: what the factory's settings for the engine say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    #[serde(default, skip_serializing_if = "AskPolicy::is_unsaid")]
    pub ask: AskPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

impl JobSpec {
    /// Every repository that it works on, in the order in which they are merged.
    pub fn repos(&self) -> impl Iterator<Item = &str> {
        self.repo.iter().chain(&self.more_repos).map(String::as_str)
    }
}

/// The single right to write to a job until `expires_at`, judged by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub factory: FactoryId,
    pub request: RequestId,
    pub granted_at: Timestamp,
    pub expires_at: Timestamp,
    /// What is reserved from the product's budget while it lasts: the job's cap, or what it spent where that is more.
    #[serde(rename = "reservedUsdMicros", default, with = "crate::usd::as_micros")]
    pub reserved: Usd,
    /// What the holder has reported of its run so far.
    #[serde(default)]
    pub spent: Spend,
    /// The holder is asked to save its work and let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict: Option<Evict>,
}

/// A holder that has not let go by the deadline loses the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evict {
    /// Who needs the seat. `None`: nobody; the product's budget is paused, and running work is to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_job: Option<JobId>,
    pub deadline: Timestamp,
}

impl Evict {
    pub const fn new(for_job: Option<JobId>, deadline: Timestamp) -> Self {
        Self { for_job, deadline }
    }
}

impl Lease {
    /// When somebody has to look at it: it ends, or its holder was to let go.
    pub fn due(&self) -> Timestamp {
        self.evict.map_or(self.expires_at, |evict| evict.deadline.min(self.expires_at))
    }
}

/// The factory that the scheduler chose for a queued job; others leave the job alone until the deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    pub factory: FactoryId,
    pub pickup_deadline: Timestamp,
    /// Those that it was offered to before and that let their deadline pass, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
}

/// A factory that did not pick the job up in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missed {
    pub factory: FactoryId,
    pub pickup_deadline: Timestamp,
}

impl Target {
    /// How many are remembered.
    const MOST_MISSED: usize = 16;
    /// For so many pickup spans a factory is left out at least.
    const LEFT_OUT_FOR: usize = 3;

    pub fn new(factory: FactoryId, pickup_deadline: Timestamp) -> Self {
        Self { factory, pickup_deadline, missed: Vec::new() }
    }

    /// Who is left out after its deadline, and until when, where `span` is what factories have for picking up. The more
    /// have missed it, the longer each is left out: everybody else comes first, however many are silent.
    pub fn left_out(&self, span: Duration) -> impl Iterator<Item = (&FactoryId, Timestamp)> {
        let spans = Self::LEFT_OUT_FOR.max(self.missed.len() + 2);
        let pause = span.saturating_mul(u32::try_from(spans).unwrap_or(u32::MAX));
        let before = self.missed.iter().map(|missed| (&missed.factory, missed.pickup_deadline));
        before
            .chain([(&self.factory, self.pickup_deadline)])
            .map(move |(factory, deadline)| (factory, deadline.plus(pause)))
    }

    /// What the next offer has to remember: everybody who is still left out.
    pub(crate) fn missed_by(&self, now: Timestamp, span: Duration) -> Vec<Missed> {
        let own = Missed { factory: self.factory.clone(), pickup_deadline: self.pickup_deadline };
        // Whoever was asked again since counts once, by its last deadline.
        let before = self.missed.iter().filter(|missed| missed.factory != self.factory).cloned();
        let left_out = self.left_out(span).filter(|(_, until)| *until > now);
        let left_out: Vec<&FactoryId> = left_out.map(|(factory, _)| factory).collect();
        let over = (self.pickup_deadline <= now).then_some(own);
        let mut missed: Vec<Missed> =
            before.chain(over).filter(|missed| left_out.contains(&&missed.factory)).collect();
        missed.drain(..missed.len().saturating_sub(Self::MOST_MISSED));
        missed
    }
}

/// Where interrupted work can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checkpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wip_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What the session has used up since it began: some engines count from there, also in a later run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_spend: Option<Spend>,
    /// Of a job with several repositories: what was saved in each, under the same ref.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<RepoCommit>,
    /// The host that has the ref when it was not pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory: Option<FactoryId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

words! {
    "reason",
    pub enum FailReason {
        VerifyFailed,
        BudgetExceeded,
        Timeout,
        Crash,
        CapabilityMismatch,
        NoEngine,
        /// The engine's account is signed out, or its key is refused.
        SignedOut,
        /// The engine's account has used up a window of its provider; it opens again.
        OutOfQuota,
        /// The model declined to do it.
        Refused,
        /// The conversation is longer than the model can read.
        ContextTooLong,
        /// One that it names is not there any more, or its result contains one.
        Secret,
        Infrastructure,
        LeaseExpired,
        /// Nobody answered its question in time, and it has no default.
        Unanswered,
        Rejected,
        /// A job that it waits for will never ship.
        DependencyFailed,
        /// Of a composite: a child failed.
        ChildFailed,
        /// Its result and the branch that it goes into changed the same lines.
        MergeConflict,
        /// Its result passed alone, and failed together with what had been merged before it.
        MergeChecksFailed,
        /// The repository refused the merge, or could not be reached for a long time.
        MergeRefused,
        /// Somebody closed its pull request without merging it.
        RequestClosed,
    }
}

impl FailReason {
    /// What a manifest may add to what is retried (`retry: {on: […]}`). Each of them would often only fail again, so nobody
    /// is charged for it unasked.
    pub const RETRIED_ON_REQUEST: [Self; 3] = [Self::VerifyFailed, Self::Timeout, Self::Crash];

    /// It says something about the machine and nothing about the job: there it would fail every time.
    pub const fn is_of_the_machine(self) -> bool {
        matches!(self, Self::NoEngine | Self::SignedOut | Self::CapabilityMismatch)
    }

    /// The work is done and its result is there; only its branch does not have it.
    pub const fn is_of_a_merge(self) -> bool {
        matches!(
            self,
            Self::MergeConflict | Self::MergeChecksFailed | Self::MergeRefused | Self::RequestClosed
        )
    }

    /// What people read for it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::VerifyFailed => "verification failed",
            Self::BudgetExceeded => "budget exceeded",
            Self::Timeout => "timed out",
            Self::Crash => "crashed",
            Self::CapabilityMismatch => "capability mismatch",
            Self::NoEngine => "no engine",
            Self::SignedOut => "engine signed out",
            Self::OutOfQuota => "out of quota",
            Self::Refused => "refused by the model",
            Self::ContextTooLong => "context too long",
            Self::Secret => "secret problem",
            Self::Infrastructure => "infrastructure problem",
            Self::LeaseExpired => "lease expired",
            Self::Unanswered => "question not answered",
            Self::Rejected => "rejected",
            Self::DependencyFailed => "dependency failed",
            Self::ChildFailed => "child failed",
            Self::MergeConflict => "merge conflict",
            Self::MergeChecksFailed => "checks failed on the merged tree",
            Self::MergeRefused => "merge refused",
            Self::RequestClosed => "pull request closed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub reason: FailReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Why the last attempt came to nothing, for as long as the job is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setback {
    pub failure: Failure,
    /// Factories that cannot run it at all. They do not get it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<FactoryId>,
}

/// How the last holder's lease ended. A repeated call of that holder is recognised by it and answered the
/// same way again, so that a lost reply is never mistaken for a lost lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseEnd {
    pub epoch: Epoch,
    pub how: LeaseEndHow,
    /// Of a cancelled run that was charged more than it had reported: until its holder reports what it really cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<Assumed>,
}

/// What a run was charged while nobody knew what it had cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assumed {
    #[serde(rename = "chargedUsdMicros", with = "crate::usd::as_micros")]
    pub charged: Usd,
    pub charged_at: Timestamp,
    /// What its holder had reported by then.
    #[serde(rename = "told")]
    pub reported: Spend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaseEndHow {
    Reported,
    Failed,
    Released,
    Cancelled,
}

/// What a successful run handed over: a commit on a branch that carries its epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    pub epoch: Epoch,
    pub branch: String,
    pub commit: String,
    /// Where its own commits begin. What is merged is what they change, and nothing else. Unknown of older ones, and none in an empty
    /// repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the diff that people review does not show, in words: it is cut, or has binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Of a job with several repositories: the commit in each that was changed, in the order in which they are merged.
    /// The branch has the same name in all of them, and `commit` is the first of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<RepoCommit>,
}

/// A repository, and the commit that goes into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merging<'a> {
    pub repo: &'a str,
    pub commit: &'a str,
    pub base: Option<&'a str>,
}

/// A review, kept for the next run and for whoever asks later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewNote {
    pub reviewer: String,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    pub at: Timestamp,
    /// Of the run that was judged.
    pub epoch: Epoch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    pub product: ProductId,
    pub spec: JobSpec,
    pub state: State,
    pub rev: Rev,
    pub epoch: Epoch,
    pub last_event: EventSeq,
    /// Failed attempts. Releases and preemptions do not count.
    pub attempts: u32,
    /// How often it gave its seat up for a more urgent job.
    pub evictions: u32,
    pub dispatch_seq: DispatchSeq,
    pub checkpoint: Option<Checkpoint>,
    pub lease_end: Option<LeaseEnd>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Since when the job competes for a place. A requeue keeps it, so that interrupted work keeps its turn.
    pub enqueued_at: Timestamp,
    /// Where it last ran: warmth for the scheduler.
    pub last_factory: Option<FactoryId>,
    /// The last call of an operator or reviewer that changed it: the same one again is answered and does nothing.
    pub last_steer: Option<RequestId>,
    /// While it is tried again.
    pub setback: Option<Setback>,
    /// Of the last successful run.
    pub result: Option<JobResult>,
    /// Since it shipped.
    pub merge: Option<Merge>,
    /// Asked for after submit; stands above the manifest's.
    pub gate: Option<ReviewGate>,
    /// The newest [`crate::limits::REVIEW_NOTES`].
    pub reviews: Vec<ReviewNote>,
    /// What it and people say to each other; `None` of most.
    pub conversation: Option<Box<Conversation>>,
}

impl Job {
    /// As it is when it is made.
    pub fn new(id: JobId, product: ProductId, spec: JobSpec, state: State, now: Timestamp) -> Self {
        Self {
            id,
            product,
            spec,
            state,
            rev: Rev(1),
            epoch: Epoch::ZERO,
            last_event: EventSeq(1),
            attempts: 0,
            evictions: 0,
            dispatch_seq: DispatchSeq::ZERO,
            checkpoint: None,
            lease_end: None,
            created_at: now,
            updated_at: now,
            enqueued_at: now,
            last_factory: None,
            last_steer: None,
            setback: None,
            result: None,
            merge: None,
            gate: None,
            reviews: Vec::new(),
            conversation: None,
        }
    }

    /// What people have to answer.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.conversation.iter().flat_map(|conversation| conversation.open())
    }

    /// It waits for a person, or will as soon as it has nothing else to do.
    pub fn needs_input(&self) -> bool {
        self.open_questions().next().is_some()
    }

    /// What a review of it takes.
    pub fn gate(&self) -> &ReviewGate {
        self.gate.as_ref().unwrap_or(&self.spec.review)
    }

    pub const fn stage(&self) -> Stage {
        self.state.stage()
    }

    pub const fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Assigned { lease } | State::Building { lease } => Some(lease),
            _ => None,
        }
    }

    pub const fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed { failure } | State::DeadLetter { failure } => Some(failure),
            _ => None,
        }
    }

    /// What is to be merged, or was the last to be.
    pub fn merging(&self) -> Option<Merging<'_>> {
        let result = self.result.as_ref()?;
        if result.repos.is_empty() {
            let (repo, base) = (self.spec.repo.as_deref()?, result.base.as_deref());
            return Some(Merging { repo, commit: &result.commit, base });
        }
        let part = self.merge.as_ref().map_or(0, |merge| merge.part);
        let RepoCommit { repo, commit, base } = result.repos.get(part)?;
        Some(Merging { repo, commit, base: base.as_deref() })
    }

    /// Those that cannot run it at all.
    pub fn unfit(&self) -> &[FactoryId] {
        self.setback.as_ref().map(|setback| setback.unfit.as_slice()).unwrap_or_default()
    }

    pub const fn target(&self) -> Option<&Target> {
        match &self.state {
            State::Queued { target, .. } => target.as_ref(),
            _ => None,
        }
    }
}

/// The name that a repository goes by: of a git URL the last segment of the path without `.git`, else the text itself.
/// Whoever asks whether a factory has a job's repository asks by this name.
pub fn repo_name(repo: &str) -> &str {
    let is_url = repo.contains("://") || repo.contains(':');
    if !is_url {
        return repo;
    }
    let path = repo.trim_end_matches('/');
    let last = path.rsplit(['/', ':']).next().unwrap_or(path);
    last.strip_suffix(".git").unwrap_or(last)
}
