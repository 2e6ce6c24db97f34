//! What a factory sends and fetches beside the life of a job: logs, artifacts, and orders to merge.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MergeBy, MergeOutcome, MergeStrategy, Stage};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendLogAnswer {
    /// How long the log is now: the offset of the next piece.
    pub length: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPiece {
    /// The run that wrote it.
    pub lease_epoch: u64,
    pub offset: u64,
    /// Goes into `?offset=` for the next piece.
    pub next_offset: u64,
    pub total: u64,
    /// The run is over and this is its end.
    pub complete: bool,
    pub text: String,
}

/// A file that a run left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    pub id: String,
    pub job_id: String,
    pub product_id: String,
    /// The run that made it.
    pub lease_epoch: u64,
    pub name: String,
    pub media_type: String,
    /// In bytes.
    pub size: u64,
    pub created_at: String,
}

impl From<&giga_domain::Artifact> for Artifact {
    fn from(artifact: &giga_domain::Artifact) -> Self {
        Self {
            id: artifact.id.to_string(),
            job_id: artifact.job.to_string(),
            product_id: artifact.product.to_string(),
            lease_epoch: artifact.epoch.0,
            name: artifact.name.to_string(),
            media_type: artifact.media_type.clone(),
            size: artifact.size,
            created_at: artifact.created_at.to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactList {
    /// Of all runs, by epoch and name.
    pub artifacts: Vec<Artifact>,
}

/// Whoever has the link has the file, until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactLink {
    pub url: String,
    pub expires_at: String,
}

/// Where jobs are, and nothing else of them: what it takes to clean up after jobs of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageList {
    /// Those that the coordinator knows and the caller's products cover.
    pub jobs: Vec<JobStage>,
    /// How long branches that were not merged are kept after the end of their job.
    pub branch_retention_hours: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStage {
    pub id: String,
    pub stage: Stage,
    /// When it shipped, was cancelled or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

impl From<&domain::Job> for JobStage {
    fn from(job: &domain::Job) -> Self {
        let stage = job.stage();
        let ended_at = stage.is_terminal().then(|| job.updated_at.to_string());
        Self { id: job.id.to_string(), stage: stage.into(), ended_at }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimMergesRequest {
    pub factory_id: String,
}

/// What is merged and checked together, one after the other in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeOrders {
    pub orders: Vec<MergeOrder>,
    /// They are the factory's for so long after the last call about them.
    pub lease_ms: u64,
}

/// The coordinator's word that this commit of this epoch is to be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeOrder {
    pub job_id: String,
    pub lease_epoch: u64,
    pub name: String,
    pub repo: String,
    pub branch: String,
    pub commit: String,
    /// Where its own commits begin: what they change is merged, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Comes back with every call about it.
    pub attempt: u32,
    /// Where to, if not into the repository's own branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// With `pull_request` the commit goes to the branch of its pull request, as it is, and the merge is settled as
    /// `proposed`.
    pub by: MergeBy,
    pub strategy: MergeStrategy,
    /// Of the commit that is made.
    pub message: String,
    /// Of the commit that is made, such as `Ana <ana@example.org>`; the factory itself if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Who approved it.
    #[serde(default)]
    pub reviewers: Vec<String>,
    /// What has to pass on the merged tree: the job's own, and then its product's.
    #[serde(default)]
    pub verify: Vec<String>,
    /// Announced by an earlier holder: this very commit is to be pushed, and nothing else is to be decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<MergeCandidate>,
    /// The other repositories of a job that has several. Its checks see all of them, each in its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideRepo>,
}

/// Another repository of the job, as the checks see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BesideRepo {
    pub repo: String,
    /// What is merged into it after this one; nothing where it has its part already, or needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// A commit that contains the result and passed its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeCandidate {
    pub commit: String,
    /// What the branch was at; nothing in an empty repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// The branch.
    pub into: String,
    /// What is pushed, if that is not the commit itself: the last one of its batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

impl From<MergeCandidate> for domain::job::MergeCandidate {
    fn from(candidate: MergeCandidate) -> Self {
        let MergeCandidate { commit, tip, into, head } = candidate;
        Self { commit, tip, into, head }
    }
}

impl From<domain::job::MergeCandidate> for MergeCandidate {
    fn from(candidate: domain::job::MergeCandidate) -> Self {
        let domain::job::MergeCandidate { commit, tip, into, head } = candidate;
        Self { commit, tip, into, head }
    }
}

/// A merge that the factory took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldMerge {
    pub job_id: String,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewMergesRequest {
    pub factory_id: String,
    pub merges: Vec<HeldMerge>,
}

/// Those that are still its.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewMergesAnswer {
    pub merges: Vec<HeldMerge>,
}

/// All of them or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushMergesRequest {
    pub factory_id: String,
    pub merges: Vec<PushMerge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushMerge {
    pub job_id: String,
    pub attempt: u32,
    pub candidate: MergeCandidate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettleMergeRequest {
    pub factory_id: String,
    pub attempt: u32,
    pub outcome: MergeOutcome,
    /// With `merged`: the commit that brought it in. With `proposed`: the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// With `merged`: the branch that it is in. With `proposed`: the one that it is to be merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// With `merged`: what the owner should know about it, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// With `proposed`: the branch of the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// With `proposed`: host and path of where that branch is, such as `github.com/acme/app`, where it is on a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What went wrong, in the repository's own words or those of the checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
