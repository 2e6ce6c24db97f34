//! The state of the fleet.

use std::collections::BTreeMap;

use giga_domain::Usd;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AlertCode, Remedy, Severity, Stage};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    /// Rises with every submit and every change of a stage; the ETag is made from it.
    pub version: u64,
    /// Queued jobs.
    pub pending_count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetMetrics {
    pub products: Vec<ProductMetrics>,
    pub factories: FactoryMetrics,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_queued_ms: Option<u64>,
    pub feed_head: u64,
    pub store: StoreMetrics,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductMetrics {
    pub product_id: String,
    pub by_stage: BTreeMap<Stage, u64>,
    /// Of a product that something was ever claimed or set for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<ProductSpending>,
}

/// In dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductSpending {
    /// Ever.
    #[schema(value_type = f64)]
    pub spent_usd: Usd,
    /// Reserved for what is held.
    #[schema(value_type = f64)]
    pub reserved_usd: Usd,
    /// What is left of the tightest limit; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub left_usd: Option<Usd>,
    /// Nothing of it is started.
    pub paused: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactoryMetrics {
    pub live: u64,
    pub stale: u64,
    pub draining: u64,
    pub seats: u32,
    pub seats_used: u32,
    /// 0 to 1; 0 where there are no seats.
    pub utilisation: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreMetrics {
    /// Write transactions since the start of this coordinator.
    pub commits: u64,
    /// Commands that they carried.
    pub commands: u64,
    pub retries: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    pub code: AlertCode,
    pub severity: Severity,
    /// What this kind of alert is called.
    pub title: String,
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Worst first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertList {
    pub alerts: Vec<Alert>,
}

/// How the dispatcher's plans compare with what polling did, for factories in shadow mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// Claims where the plan would have sent the job; counted by the coordinator that leads, since it leads.
    pub agreements: u64,
    /// Claims elsewhere, since this coordinator started.
    pub divergences: u64,
    /// The last of them, newest first, cut to the caller's products.
    pub recent: Vec<Divergence>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    pub job_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    pub routed_to: String,
    pub claimed_by: String,
    /// From the plan to the claim.
    pub lag_ms: u64,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    pub ready: bool,
    /// What is wrong, where something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
