//! Which capabilities the fleet has, and who asks for them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapabilityList {
    pub capabilities: Vec<CapabilityUse>,
}

/// One capability: who has it, who uses it, and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityUse {
    pub capability: String,
    /// Those that have it, by id.
    pub factories: Vec<CapabilityHolder>,
    /// How many there are in the fleet; missing where a factory that has it gave no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// Jobs that run and asked for it.
    pub running: u64,
    /// Jobs that wait and ask for it, whatever else they wait for.
    pub queued: u64,
    /// Since when the first of them waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_enqueued_at: Option<String>,
    /// Who asks for it, by product; none of those that the caller may not see.
    pub products: Vec<CapabilityDemand>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityHolder {
    pub factory_id: String,
    /// It is heard of and takes jobs.
    pub available: bool,
    /// How many it has, where it gave a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// How many of them its jobs use.
    pub used: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityDemand {
    pub product_id: String,
    pub running: u64,
    pub queued: u64,
}
