//! Messages of the Model Context Protocol, as far as the API itself looks at them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A JSON-RPC 2.0 message of the Model Context Protocol, such as `tools/list`; what is in it is the protocol's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpMessage {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// A number or a text; absent in a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub id: Option<Value>,
    /// Such as `initialize`, `tools/list` or `tools/call`; absent in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub params: Option<Value>,
    /// Of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub result: Option<Value>,
    /// Of an answer that is a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub error: Option<Value>,
}
