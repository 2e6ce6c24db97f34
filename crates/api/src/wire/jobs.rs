//! Jobs and their runs.

use giga_domain as domain;
use giga_domain::{State, Usd};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    DepsMode, FailReason, JobKind, MergeState, Priority, Question, ReviewGate, ReviewNote, RunOutcome, Spend,
    Stage,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: String,
    pub product_id: String,
    pub name: String,
    pub kind: JobKind,
    pub stage: Stage,
    pub priority: Priority,
    /// Raised by every change but a lease renewal; the ETag is made from it.
    pub rev: u64,
    /// The fencing token: every grant raises it.
    pub lease_epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// All of them, in the order in which they are merged, where the job works on several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<String>,
    /// The one that it asks for; the first where it allows several. Absent: any engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// All that it may use, in order of preference, where they are several or have models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EnginePick>,
    pub capabilities: Vec<String>,
    pub deps: Vec<String>,
    pub deps_mode: DepsMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Failed attempts.
    pub attempts: u32,
    /// How often it gave its seat up for a more urgent job.
    #[serde(default)]
    pub evictions: u32,
    pub dispatch_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_factory_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why the last attempt failed, while it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// Who approved it so far, while it is in review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<String>,
    /// What its review takes: the manifest's word, or what was asked for since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<ReviewGate>,
    /// A person has to answer one of `openQuestions`.
    #[serde(default)]
    pub needs_input: bool,
    /// There is something to read in its conversation.
    #[serde(default)]
    pub has_conversation: bool,
    /// Oldest first; at most 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<Question>,
    /// Reviews, oldest first; the newest 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_factory_id: Option<String>,
    /// What the last successful run handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// Since it shipped: what its repository made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    pub created_at: String,
    pub updated_at: String,
    /// Since when it competes for a place.
    pub enqueued_at: String,
    /// While queued: not before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<String>,
    /// The manifest with its defaults filled in. Only where one job is asked for, and in answers to claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The body, byte for byte. Only where one job is asked for, and in answers to claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_md: Option<String>,
    /// What the profile that the manifest names tells the engine before the body, as it was at submit. Only where one
    /// job is asked for, and in answers to claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona_md: Option<String>,
}

/// A commit on a branch that carries the epoch of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    pub lease_epoch: u64,
    pub branch: String,
    pub commit: String,
    /// Where its own commits begin: what is merged is what they change, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the diff of the run does not show, in words; whoever approves has to acknowledge it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Of a job with several repositories: the commit in each that was changed, in the order in which they are merged.
    /// The branch has the same name in all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<RepoCommit>,
}

/// A commit in one of the repositories of a job that has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepoCommit {
    /// As the manifest names it.
    pub repo: String,
    pub commit: String,
    /// Where its own commits begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

impl From<&domain::RepoCommit> for RepoCommit {
    fn from(given: &domain::RepoCommit) -> Self {
        Self { repo: given.repo.clone(), commit: given.commit.clone(), base: given.base.clone() }
    }
}

impl From<RepoCommit> for domain::RepoCommit {
    fn from(given: RepoCommit) -> Self {
        Self { repo: given.repo, commit: given.commit, base: given.base }
    }
}

/// A repository that has its part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedRepo {
    pub repo: String,
    pub commit: String,
    /// The branch.
    pub into: String,
    /// What its owner should know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The way of the result into its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    pub state: MergeState,
    /// The factory that merges it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
    /// How often the repository refused it or could not be reached.
    #[serde(default)]
    pub failures: u32,
    /// How often the job was done again because of it.
    #[serde(default)]
    pub redos: u32,
    /// Of a job with several repositories: what is in already, whatever becomes of the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedRepo>,
    /// From when on it is tried again, where something went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// The commit that waits to be merged by a pull request, or brought it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// What went wrong the last time, in the repository's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Of what was merged: what its owner should know about it, such as what to do in a checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The pull request that shows the result, from when it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PullRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
}

impl From<&domain::Merge> for Merge {
    fn from(merge: &domain::Merge) -> Self {
        let domain::Merge { attempt: _, failures, redos, part: _, merged, request, state } = merge;
        let opened = request.as_ref().and_then(|request| request.opened.clone());
        let mut wire = Self {
            state: MergeState::Waiting,
            factory_id: merge.holder().map(ToString::to_string),
            failures: *failures,
            redos: *redos,
            merged: merged
                .iter()
                .map(|domain::job::MergedRepo { repo, commit, into, note }| MergedRepo {
                    repo: repo.clone(),
                    commit: commit.clone(),
                    into: into.clone(),
                    note: note.clone(),
                })
                .collect(),
            retry_at: None,
            commit: None,
            into: None,
            detail: None,
            note: None,
            request: opened.map(|opened| PullRequest { number: opened.number, url: opened.url }),
        };
        match state {
            domain::MergeState::Waiting { due, detail } => {
                wire.retry_at = detail.is_some().then(|| due.to_string());
                wire.detail.clone_from(detail);
            }
            domain::MergeState::Taken { .. } => wire.state = MergeState::Merging,
            // Its commit is not said before it is in.
            domain::MergeState::Pushing { candidate, .. } => {
                wire.state = MergeState::Pushing;
                wire.into = Some(candidate.into.clone());
            }
            domain::MergeState::Proposed { commit, into } => {
                wire.state = MergeState::Proposed;
                wire.commit = Some(commit.clone());
                wire.into = Some(into.clone());
            }
            domain::MergeState::Done { commit, into, note } => {
                wire.state = MergeState::Merged;
                wire.commit = Some(commit.clone());
                wire.into.clone_from(into);
                wire.note.clone_from(note);
            }
            domain::MergeState::SentBack { detail } => {
                wire.state = MergeState::SentBack;
                wire.detail = Some(detail.clone());
            }
        }
        wire
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub factory_id: String,
    pub granted_at: String,
    pub expires_at: String,
    /// What is reserved from the product's budget while it lasts: the job's cap, or what it spent where that is more.
    #[serde(default)]
    #[schema(value_type = f64)]
    pub reserved_usd: Usd,
    /// What the holder has reported of its run so far.
    #[serde(default)]
    #[schema(value_type = f64)]
    pub spent_usd: Usd,
    #[serde(default)]
    pub spent_tokens: u64,
}

/// An engine that a job may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnginePick {
    pub name: String,
    /// Instead of the one that the factory's operator chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl From<&domain::EnginePick> for EnginePick {
    fn from(pick: &domain::EnginePick) -> Self {
        Self { name: pick.name.clone(), model: pick.model.clone() }
    }
}

/// Where interrupted work can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wip_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whose session it is: no other engine can go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_engine: Option<String>,
    /// What the session has used up since it began: some engines count from there, also in a later run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_spend: Option<Spend>,
    /// Of a job with several repositories: what was saved in each, under the same ref.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<RepoCommit>,
    /// The host that has the ref when it was not pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub reason: FailReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<&domain::Checkpoint> for Checkpoint {
    fn from(checkpoint: &domain::Checkpoint) -> Self {
        Self {
            wip_ref: checkpoint.wip_ref.clone(),
            commit: checkpoint.commit.clone(),
            session_id: checkpoint.session_id.clone(),
            session_engine: checkpoint.session_engine.clone(),
            session_spend: checkpoint
                .session_spend
                .map(|spend| Spend { usd: spend.usd, tokens: spend.tokens }),
            repos: checkpoint.repos.iter().map(Into::into).collect(),
            factory_id: checkpoint.factory.as_ref().map(ToString::to_string),
            note: checkpoint.note.clone(),
        }
    }
}

impl Failure {
    /// For people: how its process ended, or its reason; then what else is known.
    pub fn words(&self) -> String {
        domain::exit::words(self.reason.into(), self.detail.as_deref())
    }
}

impl From<&domain::Failure> for Failure {
    fn from(failure: &domain::Failure) -> Self {
        Self { reason: failure.reason.into(), detail: failure.detail.clone() }
    }
}

impl From<&domain::Job> for Job {
    fn from(job: &domain::Job) -> Self {
        let spec = &job.spec;
        let (ready_at, approvals) = match &job.state {
            State::Queued { ready_at, .. } => (Some(ready_at.to_string()), Vec::new()),
            State::Review { approvals } => (None, approvals.clone()),
            _ => (None, Vec::new()),
        };
        Self {
            id: job.id.to_string(),
            product_id: job.product.to_string(),
            name: spec.name.clone(),
            kind: spec.kind.into(),
            stage: job.stage().into(),
            priority: spec.priority.into(),
            rev: job.rev.0,
            lease_epoch: job.epoch.0,
            repo: spec.repo.clone(),
            repos: if spec.more_repos.is_empty() {
                Vec::new()
            } else {
                spec.repos().map(str::to_owned).collect()
            },
            engine: spec.engine.first().map(|first| first.name.clone()),
            engines: if spec.engine.needs_choice() {
                spec.engine.picks().iter().map(Into::into).collect()
            } else {
                Vec::new()
            },
            capabilities: spec.capabilities.tokens().collect(),
            deps: spec.deps.iter().map(ToString::to_string).collect(),
            deps_mode: spec.deps_mode.into(),
            parent_id: spec.parent.map(|id| id.to_string()),
            topic: spec.topic.clone(),
            attempts: job.attempts,
            evictions: job.evictions,
            dispatch_seq: job.dispatch_seq.0,
            target_factory_id: job.target().map(|t| t.factory.to_string()),
            lease: job.lease().map(|lease| Lease {
                factory_id: lease.factory.to_string(),
                granted_at: lease.granted_at.to_string(),
                expires_at: lease.expires_at.to_string(),
                reserved_usd: lease.reserved,
                spent_usd: lease.spent.usd,
                spent_tokens: lease.spent.tokens,
            }),
            checkpoint: job.checkpoint.as_ref().map(Into::into),
            failure: job.failure().map(Into::into),
            last_failure: job.setback.as_ref().map(|setback| (&setback.failure).into()),
            approvals,
            gate: Some(job.gate()).filter(|gate| gate.quorum > 0).map(Into::into),
            needs_input: job.needs_input(),
            has_conversation: job.conversation.is_some(),
            open_questions: job.open_questions().map(Into::into).collect(),
            reviews: Vec::new(),
            idempotency_key: spec.idempotency_key.clone(),
            last_factory_id: job.last_factory.as_ref().map(ToString::to_string),
            result: job.result.as_ref().map(|result| JobResult {
                lease_epoch: result.epoch.0,
                branch: result.branch.clone(),
                commit: result.commit.clone(),
                base: result.base.clone(),
                unseen: result.unseen.clone(),
                repos: result.repos.iter().map(Into::into).collect(),
            }),
            merge: job.merge.as_ref().map(Into::into),
            created_at: job.created_at.to_string(),
            updated_at: job.updated_at.to_string(),
            enqueued_at: job.enqueued_at.to_string(),
            ready_at,
            manifest: None,
            body_md: None,
            persona_md: None,
        }
    }
}

/// The JSON form of a submit; a Markdown manifest as `text/markdown` is the other one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitRequest {
    #[schema(value_type = Object)]
    pub manifest: Value,
    #[serde(default)]
    pub body_md: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmitAnswer {
    pub job: Job,
    /// Could any factory of today's fleet ever run it?
    pub routable: bool,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPage {
    pub jobs: Vec<Job>,
    /// Goes into `?cursor=` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where its own commits begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the diff does not show, in words: it is cut, or has binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Where people can look at it, on a forge that has such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
    /// The model that worked on it, as the engine named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub cost_usd: Option<Usd>,
    /// Nobody measured `costUsd`: the engine did not say what it used, and all that was reserved counts as spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_assumed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_added: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_removed: Option<u32>,
    /// Of a job with several repositories: the commit in each that was changed. The branch has the same name in all of
    /// them, and `commit` is the first of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<RepoCommit>,
    /// The results of the manifest's `verify` commands, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// One `verify` command and its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub command: String,
    pub passed: bool,
    #[serde(default)]
    pub wall_ms: u64,
    /// The end of its output, 4 KiB at most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The body of an action; an empty body is fine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub job_id: String,
    pub lease_epoch: u64,
    pub factory_id: String,
    /// What runs it; before its holder says so, what it asks for where that is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// As far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub assigned_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    pub outcome: RunOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    pub report: RunReport,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    pub runs: Vec<Run>,
}

impl From<&domain::RunReport> for RunReport {
    fn from(report: &domain::RunReport) -> Self {
        Self {
            summary: report.summary.clone(),
            branch: report.branch.clone(),
            commit: report.commit.clone(),
            base: report.base.clone(),
            unseen: report.unseen.clone(),
            pull_request: report.pull_request.clone(),
            model: report.model.clone(),
            tokens: report.tokens,
            cost_usd: report.cost,
            cost_assumed: report.cost_assumed,
            files_changed: report.files_changed,
            lines_added: report.lines_added,
            lines_removed: report.lines_removed,
            repos: report.repos.iter().map(Into::into).collect(),
            checks: report.checks.iter().map(Into::into).collect(),
        }
    }
}

impl From<&domain::Check> for Check {
    fn from(check: &domain::Check) -> Self {
        Self {
            command: check.command.clone(),
            passed: check.passed,
            wall_ms: check.wall_ms,
            output: check.output.clone(),
        }
    }
}

impl From<&domain::Run> for Run {
    fn from(run: &domain::Run) -> Self {
        let failure = match &run.outcome {
            domain::RunOutcome::Failed { failure } => Some(failure.into()),
            _ => None,
        };
        Self {
            job_id: run.job.to_string(),
            lease_epoch: run.epoch.0,
            factory_id: run.factory.to_string(),
            engine: run.engine.clone(),
            model: run.report.model.clone().or_else(|| run.model.clone()),
            assigned_at: run.assigned_at.to_string(),
            started_at: run.started_at.map(|at| at.to_string()),
            ended_at: run.ended_at.map(|at| at.to_string()),
            outcome: (&run.outcome).into(),
            failure,
            report: (&run.report).into(),
        }
    }
}
