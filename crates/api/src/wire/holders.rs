//! Claims, and what holders say of the jobs that they hold.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AccountReport, Checkpoint, Directive, FailReason, Job, PassedOver, Priority, RunReport, Spend, Stage,
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
    pub priority: Priority,
    /// All that a factory must have, `engine:<engine>` included.
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Those that it works on beside `repo`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_repos: Vec<String>,
}

/// Best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CandidateList {
    pub candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
#[serde(rename_all = "camelCase")]
pub struct PatchRequest {
    pub lease_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// With `building`: the engine that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// With `engine`: the model, as far as it is known by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// With `engine`: those that the job prefers to it, and why they do not run it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

/// Success, with what the run used and made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportRequest {
    pub lease_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RunReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewRequest {
    pub lease_epoch: u64,
    /// What the run has used so far, in total; only ever grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewAnswer {
    pub expires_at: String,
    #[serde(deserialize_with = "super::factories::known")]
    pub directives: Vec<Directive>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRequest {
    pub lease_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// What the run has used, in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// The engine did not say what it used: `spend` is what the run may have cost at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spend_assumed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailRequest {
    pub job_id: String,
    pub lease_epoch: u64,
    pub reason: FailReason,
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// What the run has used, in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// The accounts of the factory's engines as they are now. Left out: as its last heartbeat said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Vec<AccountReport>>,
    /// The engine did not say what it used: `spend` is what the run may have cost at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spend_assumed: bool,
}
