//! The accounts that engines are signed in with.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AccountState, EngineNotUsed};

/// What a factory says of the login of one of its engines. Times are lengths from now, because clocks differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountReport {
    pub engine: String,
    /// A fingerprint: the same login on another factory has the same. Never the credential.
    pub account: String,
    #[serde(default)]
    pub state: AccountState,
    /// Of one that is out of quota: when it opens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_in_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowReport {
    /// As its provider calls it, such as `five_hour`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub used_percent: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_in_ms: Option<u64>,
}

/// An engine that the job would rather have been run with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassedOver {
    pub engine: String,
    pub reason: EngineNotUsed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_in_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountWindow {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
}

/// An account as the fleet has it: one login, on however many factories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    pub account: String,
    /// Those that use it; as a rule one.
    pub engines: Vec<String>,
    pub state: AccountState,
    /// Of one that is out of quota: when it opens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<AccountWindow>,
    pub factories: Vec<String>,
    /// Queued jobs that could run now if it were open.
    pub waiting: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_jobs: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountList {
    pub accounts: Vec<Account>,
}

/// The login of one engine of a factory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactoryAccount {
    pub engine: String,
    pub account: String,
    pub state: AccountState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}
