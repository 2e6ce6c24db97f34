//! Worker hosts.

use giga_domain::Usd;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Factory {
    pub id: String,
    /// `active` or `draining`.
    pub state: String,
    /// Heard of within its heartbeat deadline.
    pub live: bool,
    pub health: String,
    /// What it may be given: advertised, cut to its token's scope.
    pub capabilities: Vec<String>,
    /// What it said it has.
    pub advertised: Vec<String>,
    /// Empty: every product.
    pub products: Vec<String>,
    pub repos: Vec<FactoryRepo>,
    pub can_clone: bool,
    pub seat_limit: u32,
    pub seats_used: u32,
    pub load: f64,
    /// How jobs should reach it: `poll`, `shadow`, `stream`, `broker` or `self_select`.
    pub delivery: String,
    /// How they do, as it last said.
    pub actual_delivery: String,
    pub running: Vec<String>,
    pub enrolled_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactoryRepo {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FactoryList {
    pub factories: Vec<Factory>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnrollRequest {
    pub factory_id: String,
    /// Empty or absent: every product.
    #[serde(default)]
    pub products: Vec<String>,
    /// Empty or absent: every capability.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnrollAnswer {
    pub factory: Factory,
    /// Shown once.
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeartbeatRequest {
    pub factory_id: String,
    pub capabilities: Vec<String>,
    /// Names, or names with the time of last use.
    #[serde(default)]
    pub repos: Vec<RepoEntry>,
    pub seat_limit: u32,
    #[serde(default)]
    pub load: f64,
    /// `ok`, `degraded` or `down`.
    #[serde(default = "ok")]
    pub health: String,
    /// It can clone what it lacks.
    #[serde(default)]
    pub can_clone: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub cost_usd_per_hour: Option<Usd>,
    /// How jobs reach it now, which may be less than what it was asked to do: `poll` while its stream is down. Absent
    /// counts as `poll`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
}

fn ok() -> String {
    "ok".to_owned()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RepoEntry {
    Name(String),
    Used(FactoryRepo),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatAnswer {
    pub heartbeat_interval_ms: u64,
    pub stale_after_ms: u64,
    /// How jobs should reach it: `poll`, `shadow`, `stream`, `broker` or `self_select`.
    pub delivery: String,
    pub directives: Vec<String>,
}

/// An empty body drains; `{"undo": true}` lets it take jobs again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainRequest {
    #[serde(default)]
    pub undo: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneRequest {
    /// Such as `24h`.
    pub idle: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PruneAnswer {
    pub pruned: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotateAnswer {
    /// Shown once. The old one works until the grace is over.
    pub token: String,
    pub old_valid_for_ms: u64,
}
