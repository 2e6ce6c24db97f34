//! The history of jobs and of the fleet.

use giga_domain as domain;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{EventType, Stage};

/// A program does not mind events of a newer coordinator.
fn known_or_unknown<'de, D: Deserializer<'de>>(from: D) -> Result<EventType, D::Error> {
    Ok(String::deserialize(from)?.parse().unwrap_or(EventType::Unknown))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The place in the fleet-wide feed; the SSE id of the fleet stream.
    pub pos: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The place in the job's own history, from 1 without gaps; the SSE id of the job's stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    pub at: String,
    /// Also the SSE event name.
    #[serde(rename = "type", deserialize_with = "known_or_unknown")]
    pub kind: EventType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Stage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Stage>,
    pub cause: String,
    /// Such as `factory mac-1`, `token tok-…` or `reaper`.
    pub actor: String,
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Goes into `?after=` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

impl From<&domain::Event> for Event {
    fn from(event: &domain::Event) -> Self {
        Self {
            pos: event.pos.0,
            product_id: event.product.as_ref().map(ToString::to_string),
            job_id: event.job.map(|(id, _)| id.to_string()),
            seq: event.job.map(|(_, seq)| seq.0),
            at: event.at.to_string(),
            kind: event.kind.into(),
            from: event.from.map(Into::into),
            to: event.to.map(Into::into),
            cause: event.cause.clone(),
            actor: event.actor.to_string(),
            data: event.data.clone(),
        }
    }
}
