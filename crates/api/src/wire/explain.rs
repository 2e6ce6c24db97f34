//! Why a job is where it is, and what a submit would do.

use std::collections::BTreeMap;

use giga_domain::Usd;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{BlockerCode, FailReason, RemedyMethod, Role, ScoreTerm};

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
    #[schema(value_type = Option<f64>)]
    pub worst_case_usd: Option<Usd>,
    /// Where its result would be merged, in the words of the factory that would get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges_into: Option<String>,
    /// How it would be tried again; absent for a composite, which runs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    pub explanation: Explanation,
}

/// What is tried again after a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// How often it is tried at most.
    pub attempts: u32,
    /// What is retried because the manifest asks for it.
    pub on: Vec<FailReason>,
    /// What is retried only where the manifest asks for it, and it does not.
    pub not_on: Vec<FailReason>,
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
    pub code: BlockerCode,
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
    pub method: RemedyMethod,
    pub path: String,
    /// JSON; without one the call has no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The least role that may make it.
    pub role: Role,
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
    pub terms: BTreeMap<ScoreTerm, f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// What it does not pass.
    pub filter: BlockerCode,
    pub detail: String,
}
