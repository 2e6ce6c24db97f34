//! Jobs that hang on others: many in one submit, children of a job, and how a whole tree stands.

use std::collections::BTreeMap;

use giga_domain::Usd;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{DepsMode, Failure, Job, JobKind, Stage};

/// One job of many: a manifest with its body, or both as one Markdown document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BatchItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub manifest: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_md: Option<String>,
    /// The same as `idempotencyKey` in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Front matter and body, instead of `manifest` and `bodyMd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
}

/// Made together, all or none. `deps` may name jobs beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BatchRequest {
    pub jobs: Vec<BatchItem>,
}

/// Made together, all or none, in the product of their parent. `deps` may name children beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildrenRequest {
    pub children: Vec<BatchItem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchAnswer {
    /// In the order of the request.
    pub jobs: Vec<BatchedJob>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchedJob {
    pub job: Job,
    /// False where its key was seen before.
    pub created: bool,
    /// Could any factory of today's fleet ever run it?
    pub routable: bool,
    pub warnings: Vec<String>,
}

/// A job and all below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dag {
    pub root_id: String,
    /// Of the whole tree.
    pub progress: DagProgress,
    /// Parents before their children.
    pub jobs: Vec<DagJob>,
    /// What jobs of the tree wait for outside of it.
    pub outside: Vec<DagDep>,
    /// There are more jobs than are shown.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagJob {
    pub id: String,
    pub name: String,
    pub kind: JobKind,
    pub stage: Stage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// 0 for the job that was asked about.
    pub depth: usize,
    pub deps: Vec<String>,
    pub deps_mode: DepsMode,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Of it and all below it; left out where not all of these are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<DagProgress>,
}

/// How the jobs that do the work stand; composites only stand for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagProgress {
    pub total: u64,
    pub shipped: u64,
    /// Rounded down, so 100 means all.
    pub percent: u64,
    /// What runs have cost so far, in dollars.
    #[schema(value_type = f64)]
    pub spent_usd: Usd,
    /// Only stages that are not empty.
    pub by_stage: BTreeMap<Stage, u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagDep {
    pub id: String,
    pub name: String,
    pub stage: Stage,
}
