//! The few calls of Devin's HTTP interface that a run needs.
//!
//! Never decides what an answer means for the run, and never shows the key: errors carry the status and what the
//! service answered, not what we sent.

use std::time::Duration;

use giga_domain::FailReason;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engines::engine::{EngineFailure, Secret};

/// For one call.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    key: Secret,
}

#[derive(Debug, Deserialize)]
pub(super) struct Created {
    pub(super) session_id: String,
    #[serde(default)]
    pub(super) url: Option<String>,
}

/// Everything is optional but the status: the interface says of itself that it may change.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    pub(super) status_enum: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) pull_request: Option<PullRequest>,
    pub(super) acus_consumed: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PullRequest {
    pub(super) url: String,
}

impl Client {
    pub(super) fn new(base: &str, key: Secret) -> Result<Self, EngineFailure> {
        let http = reqwest::Client::builder().timeout(PATIENCE).build().map_err(|error| {
            EngineFailure::lasting(FailReason::Infrastructure, format!("no HTTP client: {error}"))
        })?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), key })
    }

    /// `idempotent` lets the service recognise a call that is made again because its answer was lost.
    pub(super) async fn create(
        &self,
        prompt: &str,
        most_acus: Option<u64>,
    ) -> Result<Created, EngineFailure> {
        let mut body = json!({ "prompt": prompt, "idempotent": true });
        if let Some(most) = most_acus {
            body["max_acu_limit"] = most.into();
        }
        let answer = self.send(self.request(Method::POST, "/sessions").json(&body)).await?;
        serde_json::from_value(answer).map_err(|error| unreadable(&error))
    }

    pub(super) async fn session(&self, id: &str) -> Result<Session, EngineFailure> {
        let answer = self.send(self.request(Method::GET, &format!("/sessions/{id}"))).await?;
        serde_json::from_value(answer).map_err(|error| unreadable(&error))
    }

    pub(super) async fn message(&self, id: &str, message: &str) -> Result<(), EngineFailure> {
        let path = format!("/sessions/{id}/message");
        self.send(self.request(Method::POST, &path).json(&json!({ "message": message }))).await.map(drop)
    }

    pub(super) async fn terminate(&self, id: &str) -> Result<(), EngineFailure> {
        self.send(self.request(Method::DELETE, &format!("/sessions/{id}"))).await.map(drop)
    }

    /// Whether the key is taken.
    pub(super) async fn check(&self) -> Result<(), EngineFailure> {
        self.send(self.request(Method::GET, "/sessions?limit=1")).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(self.key.expose())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, EngineFailure> {
        let unreachable = |error: reqwest::Error| {
            let detail = format!("Devin could not be reached: {}", error.without_url());
            EngineFailure::passing(FailReason::Infrastructure, detail)
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.text().await.map_err(unreachable)?;
        if !status.is_success() {
            return Err(refused(status, &body));
        }
        // Some answers are empty.
        if body.trim().is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_str(&body).map_err(|error| unreadable(&error))
        }
    }
}

fn refused(status: StatusCode, body: &str) -> EngineFailure {
    let detail = format!("Devin answered {status}: {}", body.chars().take(300).collect::<String>());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            EngineFailure::lasting(FailReason::NoEngine, detail)
        }
        StatusCode::TOO_MANY_REQUESTS => EngineFailure::passing(FailReason::Infrastructure, detail),
        _ if status.is_server_error() => EngineFailure::passing(FailReason::Infrastructure, detail),
        StatusCode::PAYMENT_REQUIRED => EngineFailure::lasting(FailReason::BudgetExceeded, detail),
        _ => EngineFailure::lasting(FailReason::Crash, detail),
    }
}

fn unreadable(error: &serde_json::Error) -> EngineFailure {
    EngineFailure::passing(FailReason::Infrastructure, format!("Devin's answer could not be read: {error}"))
}
