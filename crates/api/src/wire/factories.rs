//! Worker hosts.

use giga_domain::Usd;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{AccountReport, Delivery, Directive, FactoryAccount, FactoryState, Health};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Factory {
    pub id: String,
    pub state: FactoryState,
    /// Seen within its heartbeat deadline.
    pub live: bool,
    pub health: Health,
    /// Why it is degraded or down, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_reason: Option<String>,
    /// What it may be given: advertised, cut to its token's scope.
    pub capabilities: Vec<String>,
    /// What it reported.
    pub advertised: Vec<String>,
    /// Empty: every product.
    pub products: Vec<String>,
    pub repos: Vec<FactoryRepo>,
    pub can_clone: bool,
    /// What it may clone: prefixes of URLs. Empty with `canClone`: it did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clones: Vec<String>,
    /// The machine that it runs on, as far as it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub seat_limit: u32,
    pub seats_used: u32,
    pub load: f64,
    /// How jobs should reach it.
    pub delivery: Delivery,
    /// Their health, as it last reported.
    pub actual_delivery: Delivery,
    pub running: Vec<String>,
    /// The logins of its engines, each as open as the fleet knows it to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<FactoryAccount>,
    pub enrolled_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactoryRepo {
    pub name: String,
    /// Where it comes from: scheme, host and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Where results are merged, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges_into: Option<String>,
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

/// A factory that leaves for good says which it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaveRequest {
    pub factory_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaveAnswer {
    /// The factory is forgotten and its tokens have ended. Otherwise it holds something still and is draining.
    pub left: bool,
    /// Jobs and merges that it holds.
    pub holds: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnrollAnswer {
    pub factory: Factory,
    /// Shown once.
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatRequest {
    pub factory_id: String,
    pub capabilities: Vec<String>,
    /// Names, or names with the time of last use.
    #[serde(default)]
    pub repos: Vec<RepoEntry>,
    pub seat_limit: u32,
    #[serde(default)]
    pub load: f64,
    #[serde(default)]
    pub health: Health,
    /// Why it is degraded or down: what it is short of, what keeps failing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_reason: Option<String>,
    /// It can clone what it lacks.
    #[serde(default)]
    pub can_clone: bool,
    /// What it may clone: prefixes of URLs, as scheme, host and path. Empty with `canClone`: anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clones: Vec<String>,
    /// Which process this is. While one is heard from, another one under the same name is refused (`factory_in_use`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<FactoryInstance>,
    /// Replace the process that has the name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_over: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub cost_usd_per_hour: Option<Usd>,
    /// How jobs reach it now, which may be less than what it was asked to do: `poll` while its stream is down. Absent
    /// counts as `poll`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The logins of its engines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountReport>,
}

/// A process that speaks for a factory. A restart is the same one: the id goes with the folder that it works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactoryInstance {
    pub id: String,
    pub host: String,
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
    /// How jobs should reach it.
    #[serde(deserialize_with = "known_or_poll")]
    pub delivery: Delivery,
    #[serde(deserialize_with = "known")]
    pub directives: Vec<Directive>,
}

/// A factory polls where a newer coordinator wishes for a way that it does not know.
fn known_or_poll<'de, D: Deserializer<'de>>(from: D) -> Result<Delivery, D::Error> {
    Ok(String::deserialize(from)?.parse().unwrap_or(Delivery::Poll))
}

/// A factory does not mind what a newer coordinator says beside what it knows.
pub(super) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Directive>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    Ok(words.iter().filter_map(|word| word.parse().ok()).collect())
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
