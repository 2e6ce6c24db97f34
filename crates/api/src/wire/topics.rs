//! Topics and their jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Priority, TopicJobState};

/// A pause: no job behind it is handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicPause {
    pub since: String,
    /// Who closed it.
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topic {
    pub product_id: String,
    pub name: String,
    pub by_state: BTreeMap<TopicJobState, u64>,
    /// Its own gate, where that is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<TopicPause>,
    /// Workers that are connected to the coordinator that answers.
    pub workers: u64,
    /// Jobs that this coordinator sent and that are not settled.
    pub in_flight: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicList {
    /// The gate in front of all topics, where that is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<TopicPause>,
    pub topics: Vec<Topic>,
}

/// The gate in front of all topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicGate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<TopicPause>,
}

/// How often a topic job is tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TopicRetry {
    /// Tries after the first, 0 to 1000; 5 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// The first wait, such as `30s`; doubles each time, up to an hour. `1s` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewTopicJob {
    /// Any JSON, at most 256 KiB; its bytes reach the handler as they were sent.
    #[schema(value_type = Value)]
    pub payload: Box<RawValue>,
    /// `normal` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    /// Unique within the topic for as long as the job is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<TopicRetry>,
}

/// One job, or `jobs` with several of them: all are stored or none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnqueueRequest {
    /// Any JSON, at most 256 KiB; its bytes reach the handler as they were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub payload: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<TopicRetry>,
    /// 1 to 1000, instead of all the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<NewTopicJob>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueuedTopicJob {
    pub id: String,
    /// The key was seen before; this is the job that it made.
    pub existing: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueAnswer {
    /// In the order of the request.
    pub jobs: Vec<EnqueuedTopicJob>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicJob {
    pub id: String,
    pub product_id: String,
    pub topic: String,
    pub state: TopicJobState,
    pub priority: Priority,
    /// Failed attempts.
    pub attempts: u32,
    /// Tries after the first.
    pub retry_max: u32,
    pub retry_backoff_ms: u64,
    pub lease_epoch: u64,
    pub created_at: String,
    /// Of a scheduled job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Until when, without a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was done or died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Of the last failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Where the payload is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Where it is anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicJobPage {
    pub jobs: Vec<TopicJob>,
    /// There are more; send it back as `cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryDeadRequest {
    /// Which, 1 to 1000; all dead jobs of the topic, at most 10000, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetryDeadAnswer {
    /// Those that are ready again.
    pub retried: Vec<String>,
}
