//! Errors as problem+json (RFC 9457) with a stable `code`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ProblemCode, Stage};

/// Content type `application/problem+json`. Programs decide by `code`; `detail` is for people.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A short name of the kind of problem, the same for every occurrence.
    pub title: String,
    pub status: u16,
    pub code: ProblemCode,
    /// What happened this time, and what would be right.
    pub detail: String,
    /// The fields that were wrong, where the request was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// With `fenced`: the epoch that holds the job now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_epoch: Option<u64>,
    /// With `fenced` and `illegal_transition`: where the job stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// With `too_many_requests` and `unavailable`: when to try again, like the header Retry-After.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// With `idempotency_conflict`: the job that the key made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldError {
    pub field: String,
    /// In a Markdown manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
}
