//! One execution attempt of a job. A run is named by its job and epoch: a grant is a run.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{Epoch, FactoryId, Failure, JobId, ProductId, Timestamp, Usd};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunOutcome {
    Running,
    Succeeded,
    Failed { failure: Failure },
    Expired,
    Released,
    Preempted,
    Cancelled,
}

/// What the holder tells of a finished run. Everything is optional: an engine may not know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where its own commits begin. What is merged is what they change, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the diff that people review does not show, in words: it is cut, or has binary files.
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
    #[serde(
        rename = "costUsdMicros",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::usd::as_micros::option"
    )]
    pub cost: Option<Usd>,
    /// Nobody measured the cost: the engine did not say, and it may be all that was reserved.
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

/// A commit in one of the repositories of a job that has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RepoCommit {
    /// As the manifest names it.
    pub repo: String,
    pub commit: String,
    /// Where its own commits begin. What is merged is what they change, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// One `verify` command and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Check {
    pub command: String,
    pub passed: bool,
    pub wall_ms: u64,
    /// The end of its output, [`crate::limits::CHECK_OUTPUT_BYTES`] at most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub job: JobId,
    pub product: ProductId,
    pub epoch: Epoch,
    pub factory: FactoryId,
    /// What runs it, once its holder has said so; before that, what it asks for where that is one.
    pub engine: Option<String>,
    pub model: Option<String>,
    pub assigned_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub outcome: RunOutcome,
    pub report: RunReport,
}
