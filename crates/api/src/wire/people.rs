//! People: how they sign in, and what they did.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::EventType;

/// How somebody without a token gets one here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInOffer {
    /// False: only with a token that somebody created.
    pub offered: bool,
    /// What the identity provider is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where a browser goes to begin; `?to=` names the page to come back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_path: Option<String>,
}

/// What to show, and what to poll with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSignIn {
    /// For polling; nobody else should see it.
    pub device_code: String,
    /// To be typed at the address.
    pub user_code: String,
    pub verification_uri: String,
    /// The same with the code in it, where the provider has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_uri_complete: Option<String>,
    pub expires_in_s: u64,
    /// To be waited before each poll; 5 more after each `slow_down`.
    pub interval_s: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PollSignInRequest {
    pub device_code: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignInState {
    /// Nobody has typed the code yet.
    Pending,
    /// The same, and polls come too often.
    SlowDown,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PollSignInAnswer {
    pub state: SignInState,
    /// Where `state` is `done`: shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// One thing that somebody did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The place in the fleet-wide feed.
    pub pos: u64,
    pub at: String,
    /// Who: the label of a token, a factory, or a part of the coordinator.
    pub actor: String,
    /// The same as events have it: `token tok-…`, `factory mac-1`, `reaper`.
    pub actor_id: String,
    #[serde(rename = "type")]
    pub kind: EventType,
    /// What, in a line.
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// Goes into `?before=` for what is older; absent on the last page. A page may be short, or empty, and still have a next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

impl AuditEntry {
    pub fn new(event: &domain::Event, actor: String) -> Self {
        Self {
            pos: event.pos.0,
            at: event.at.to_string(),
            actor,
            actor_id: event.actor.to_string(),
            kind: event.kind.into(),
            cause: event.cause.clone(),
            product_id: event.product.as_ref().map(ToString::to_string),
            job_id: event.job.map(|(id, _)| id.to_string()),
            data: event.data.clone(),
        }
    }
}
