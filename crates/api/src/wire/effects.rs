//! Webhooks, the outbox, and the bridge to trackers.

use giga_domain as domain;
use giga_domain::EffectTarget;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{EffectState, EventType};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddWebhookRequest {
    /// Where messages are sent, by POST: https, and no private address unless the coordinator's settings allow it.
    pub url: String,
    /// Of which product; absent: the token's one product, or every product and the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    /// Such as `job.shipped`; empty or absent: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<EventType>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddWebhookAnswer {
    pub webhook: Webhook,
    /// What messages are signed with, as Standard Webhooks writes it: `whsec_…`. Shown once.
    pub secret: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: String,
    /// Absent: of every product, and of the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    pub url: String,
    /// Empty: all of them.
    pub types: Vec<EventType>,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
}

/// A message to a webhook, tracker or forge, and its delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// Sent with it, the same at every attempt.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The webhook that it is sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// The tracker that it is sent to, and the item that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracker: Option<String>,
    /// The forge that it is sent to; `item` is the repository there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The event's type, for webhooks.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub state: EffectState,
    /// When it is tried next, while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    pub attempts: u32,
    /// What came of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectPage {
    pub effects: Vec<Effect>,
    /// Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IngestRequest {
    /// A tracker that is set up, such as `github`.
    pub tracker: String,
    /// Such as `acme/app#12`, or the address of the issue.
    pub item: String,
    /// As in a submit; the item's title is the name where this has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// Put before the item's own text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body_md: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EchoRequest {
    pub job_id: String,
}

impl From<&domain::Webhook> for Webhook {
    fn from(webhook: &domain::Webhook) -> Self {
        Self {
            id: webhook.id.to_string(),
            product_id: webhook.product.as_ref().map(ToString::to_string),
            url: webhook.url.clone(),
            types: webhook.kinds.iter().map(|kind| (*kind).into()).collect(),
            created_at: webhook.created_at.to_string(),
        }
    }
}

impl From<&domain::Effect> for Effect {
    fn from(effect: &domain::Effect) -> Self {
        let (webhook_id, tracker, forge, item) = match &effect.target {
            EffectTarget::Webhook(id) => (Some(id.to_string()), None, None, None),
            EffectTarget::Tracker { tracker, item } => {
                (None, Some(tracker.clone()), None, Some(item.clone()))
            }
            EffectTarget::Forge { forge, repo } => (None, None, Some(forge.clone()), Some(repo.clone())),
        };
        let due_at = match effect.state {
            domain::EffectState::Pending { due } => Some(due.to_string()),
            domain::EffectState::Delivered | domain::EffectState::Dead => None,
        };
        Self {
            id: effect.id.to_string(),
            product_id: effect.product.as_ref().map(ToString::to_string),
            job_id: effect.job.map(|id| id.to_string()),
            webhook_id,
            tracker,
            forge,
            item,
            kind: effect.payload.get("type").and_then(Value::as_str).map(str::to_owned),
            state: effect.state.name().into(),
            due_at,
            attempts: effect.attempts,
            detail: effect.detail.clone(),
            created_at: effect.created_at.to_string(),
            updated_at: effect.updated_at.to_string(),
        }
    }
}
