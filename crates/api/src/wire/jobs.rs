//! Jobs, runs, events, and what holders say.

use giga_domain as domain;
use giga_domain::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{ReviewGate, ReviewNote, Spend, dollars};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: String,
    pub product_id: String,
    pub name: String,
    pub kind: String,
    pub stage: String,
    pub priority: String,
    /// Raised by every change but a lease renewal; the ETag is made from it.
    pub rev: u64,
    /// The fencing token: every grant raises it.
    pub lease_epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    pub capabilities: Vec<String>,
    pub deps: Vec<String>,
    pub deps_mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Attempts used up.
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
    /// Who approved it so far, while it is in review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<String>,
    /// What its review takes: the manifest's word, or what was asked for since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<ReviewGate>,
    /// What reviewers said, oldest first; the newest 20.
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
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// `waiting`, `merging`, `merged`, `conflict` or `failed`.
    pub state: String,
    /// The merge commit, once it is merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<&domain::Merge> for Merge {
    fn from(merge: &domain::Merge) -> Self {
        let (state, commit, detail) = match merge {
            domain::Merge::Waiting { .. } => ("waiting", None, None),
            domain::Merge::Taken { factory, .. } => ("merging", None, Some(format!("by {factory}"))),
            domain::Merge::Done { commit } => ("merged", Some(commit.clone()), None),
            domain::Merge::Conflict { detail } => ("conflict", None, Some(detail.clone())),
            domain::Merge::Failed { detail } => ("failed", None, Some(detail.clone())),
        };
        Self { state: state.to_owned(), commit, detail }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub factory_id: String,
    pub granted_at: String,
    pub expires_at: String,
    /// What is set aside of the product's budget while it lasts: the job's cap, or what it spent where that is more.
    #[serde(default)]
    pub reserved_usd: f64,
    /// What the holder told of its run so far.
    #[serde(default)]
    pub spent_usd: f64,
    #[serde(default)]
    pub spent_tokens: u64,
}

/// Where interrupted work can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// The host that has the ref when it was not pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<&domain::Checkpoint> for Checkpoint {
    fn from(checkpoint: &domain::Checkpoint) -> Self {
        Self {
            wip_ref: checkpoint.wip_ref.clone(),
            commit: checkpoint.commit.clone(),
            session_id: checkpoint.session_id.clone(),
            session_spend: checkpoint
                .session_spend
                .map(|spend| Spend { usd: dollars(spend.usd_micros), tokens: spend.tokens }),
            factory_id: checkpoint.factory.as_ref().map(ToString::to_string),
            note: checkpoint.note.clone(),
        }
    }
}

impl From<&domain::Failure> for Failure {
    fn from(failure: &domain::Failure) -> Self {
        Self { reason: failure.reason.as_str().to_owned(), detail: failure.detail.clone() }
    }
}

/// The word that serde writes for a plain enum.
fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
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
            kind: word(&spec.kind),
            stage: job.stage().as_str().to_owned(),
            priority: spec.priority.as_str().to_owned(),
            rev: job.rev.0,
            lease_epoch: job.epoch.0,
            repo: spec.repo.clone(),
            engine: spec.engine.clone(),
            capabilities: spec.capabilities.iter().map(ToString::to_string).collect(),
            deps: spec.deps.iter().map(ToString::to_string).collect(),
            deps_mode: word(&spec.deps_mode),
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
                reserved_usd: dollars(lease.reserved_usd_micros),
                spent_usd: dollars(lease.spent.usd_micros),
                spent_tokens: lease.spent.tokens,
            }),
            checkpoint: job.checkpoint.as_ref().map(Into::into),
            failure: job.failure().map(Into::into),
            approvals,
            gate: Some(job.gate()).filter(|gate| gate.quorum > 0).map(Into::into),
            reviews: Vec::new(),
            idempotency_key: spec.idempotency_key.clone(),
            last_factory_id: job.last_factory.as_ref().map(ToString::to_string),
            result: job.result.as_ref().map(|result| JobResult {
                lease_epoch: result.epoch.0,
                branch: result.branch.clone(),
                commit: result.commit.clone(),
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanAnswer {
    /// Could any factory of today's fleet ever run it?
    pub routable: bool,
    /// None could, and the flag `strict` refuses such jobs: submitting it would answer `unroutable`.
    #[serde(default)]
    pub refused: bool,
    pub warnings: Vec<String>,
    /// The job's own cap times the attempts that its retry policy allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_case_usd: Option<f64>,
    pub explanation: Explanation,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimRequest {
    pub factory_id: String,
    /// Repeating it after a lost reply returns the same grant.
    pub request_id: String,
    /// The first of these that can be had, and no others; for a factory that chooses for itself. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job_ids: Vec<String>,
    /// With `jobIds`: up to so many of them at once. The answer is then `{grants}`, which may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// What a claim with `max` was granted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimManyAnswer {
    pub grants: Vec<ClaimAnswer>,
}

/// What POST /api/fleet/claim answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "it stands in the document and is never kept")]
pub enum ClaimOutcome {
    One(ClaimAnswer),
    Many(ClaimManyAnswer),
}

/// A queued job as a factory sees it that picks by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    pub job_id: String,
    pub product_id: String,
    pub priority: String,
    /// All that a factory must have, `engine:<engine>` included.
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
}

/// Best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CandidateList {
    pub candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcceptRequest {
    pub job_id: String,
    pub factory_id: String,
    pub dispatch_seq: u64,
    pub request_id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimAnswer {
    pub job: Job,
    pub lease_epoch: u64,
    pub expires_at: String,
    /// For what runs inside the job: good for this job alone, and as long as this epoch holds it.
    #[serde(default)]
    pub job_token: String,
}

/// A holder's write: `stage` is `building` to start, or `review`, `testing` or `shipped` to report success (the gates
/// decide which of them it becomes).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchRequest {
    pub lease_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// Success, with what the run used and made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportRequest {
    pub lease_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RunReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where people can look at it, on a forge that has such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_added: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_removed: Option<u32>,
    /// What the manifest's `verify` commands said, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// One `verify` command and what it said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Check {
    pub command: String,
    pub passed: bool,
    #[serde(default)]
    pub wall_ms: u64,
    /// The end of its output, 4 KiB at most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewRequest {
    pub lease_epoch: u64,
    /// What the run has used up so far, all told; only ever grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewAnswer {
    pub expires_at: String,
    /// `cancel`, `preempt`, `drain`.
    pub directives: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRequest {
    pub lease_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// What the run has used up, all told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailRequest {
    pub job_id: String,
    pub lease_epoch: u64,
    /// `verify_failed`, `budget_exceeded`, `timeout`, `crash`, `capability_mismatch`, `no_engine`, `infrastructure`.
    pub reason: String,
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// What the run has used up, all told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    pub assigned_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// `running`, `succeeded`, `failed`, `expired`, `released`, `preempted`, `cancelled`.
    pub outcome: String,
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
            pull_request: report.pull_request.clone(),
            tokens: report.tokens,
            cost_usd: report.cost_usd_micros.map(dollars),
            files_changed: report.files_changed,
            lines_added: report.lines_added,
            lines_removed: report.lines_removed,
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
        let (outcome, failure) = match &run.outcome {
            domain::RunOutcome::Running => ("running", None),
            domain::RunOutcome::Succeeded => ("succeeded", None),
            domain::RunOutcome::Failed { failure } => ("failed", Some(failure.into())),
            domain::RunOutcome::Expired => ("expired", None),
            domain::RunOutcome::Released => ("released", None),
            domain::RunOutcome::Preempted => ("preempted", None),
            domain::RunOutcome::Cancelled => ("cancelled", None),
        };
        Self {
            job_id: run.job.to_string(),
            lease_epoch: run.epoch.0,
            factory_id: run.factory.to_string(),
            engine: run.engine.clone(),
            assigned_at: run.assigned_at.to_string(),
            started_at: run.started_at.map(|at| at.to_string()),
            ended_at: run.ended_at.map(|at| at.to_string()),
            outcome: outcome.to_owned(),
            failure,
            report: (&run.report).into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The place in the fleet-wide feed; the SSE id of the fleet stream.
    pub pos: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The place in the job's own history, from 1 without gaps; the SSE id of the job's stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    pub at: String,
    /// Such as `job.assigned`; also the SSE event name.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub cause: String,
    /// Such as `factory mac-1`, `token tok-…` or `reaper`.
    pub actor: String,
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Goes into `?after=` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

impl From<&domain::Event> for Event {
    fn from(event: &domain::Event) -> Self {
        Self {
            pos: event.pos.0,
            product_id: event.product.as_ref().map(ToString::to_string),
            job_id: event.job.map(|(id, _)| id.to_string()),
            seq: event.job.map(|(_, seq)| seq.0),
            at: event.at.to_string(),
            kind: event.kind.as_str().to_owned(),
            from: event.from.map(|s| s.as_str().to_owned()),
            to: event.to.map(|s| s.as_str().to_owned()),
            cause: event.cause.clone(),
            actor: event.actor.to_string(),
            data: event.data.clone(),
        }
    }
}

/// Why the job is where it is, and the smallest change that would move it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub summary: String,
    pub blockers: Vec<Blocker>,
    pub remedies: Vec<Remedy>,
    pub factories: Vec<FactoryVerdict>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    pub message: String,
    /// A command line that does it, where one exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The call that does exactly the same, where the command is complete as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<RemedyCall>,
}

/// A call of this API that anybody with the right may make as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyCall {
    /// `POST` or `PUT`.
    pub method: String,
    pub path: String,
    /// JSON; without one the call has no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The least role that may make it: `operator` or `admin`.
    pub role: String,
    /// It changes something for everybody, so that only a token for every product will do.
    pub every_product: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactoryVerdict {
    pub factory_id: String,
    pub feasible: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<Rejection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Each term's contribution to the score, by its name.
    #[serde(default)]
    pub terms: std::collections::BTreeMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    pub filter: String,
    pub detail: String,
}
