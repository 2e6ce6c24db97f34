//! How tools reach the API: as somebody, who is known to whoever implements this.

use std::fmt;

use async_trait::async_trait;
use giga_api::client::{Client, ClientError, RawCall};
use giga_api::wire::Problem;
use serde_json::Value;

#[async_trait]
pub trait Api: Send + Sync + fmt::Debug {
    /// The bytes of the answer, where the call was not refused.
    async fn call(&self, call: RawCall) -> Result<Vec<u8>, CallError>;
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// Nobody answered, or with something that is no answer.
    #[error("{0}")]
    Unanswered(String),
}

#[async_trait]
impl Api for Client {
    async fn call(&self, call: RawCall) -> Result<Vec<u8>, CallError> {
        self.raw(&call).await.map_err(|error| match error {
            ClientError::Problem(problem) => CallError::Refused(problem),
            other => CallError::Unanswered(other.to_string()),
        })
    }
}

/// For answers that are JSON.
pub(crate) async fn ask(api: &dyn Api, call: RawCall) -> Result<Value, CallError> {
    let bytes = api.call(call).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| CallError::Unanswered(format!("the coordinator's answer cannot be read: {error}")))
}
