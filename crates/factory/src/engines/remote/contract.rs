//! The small contract by which any other agent elsewhere is spoken to; docs/engines-remote.md is its text.

use async_trait::async_trait;
use giga_domain::{FailReason, Usd};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, Created, Http, Message, NewSession, Seen, Session, State};
use crate::engines::engine::{EngineFailure, Secret, Usage};

#[derive(Debug)]
pub(super) struct Contract {
    http: Http,
}

impl Contract {
    pub(super) fn new(name: &str, base_url: &str, key: Option<Secret>) -> Result<Self, EngineFailure> {
        Ok(Self { http: Http::new(name, base_url, key)? })
    }
}

#[async_trait]
impl Api for Contract {
    async fn create(&self, wanted: &NewSession<'_>) -> Result<Created, EngineFailure> {
        let repositories = wanted.repositories.iter();
        let repositories: Value = repositories
            .map(|repository| json!({ "url": repository.url, "branch": repository.branch }))
            .collect();
        let body = json!({
            "prompt": wanted.prompt,
            "idempotencyKey": wanted.reference,
            "repositories": repositories,
            "maxUsd": wanted.most_usd.map(Usd::as_f64),
            "maxTokens": wanted.most_tokens,
        });
        let created: CreatedAnswer = self.http.post("/sessions", &body).await?;
        Ok(Created { id: created.id, url: created.url })
    }

    async fn session(&self, id: &str, seen: &mut Seen) -> Result<Session, EngineFailure> {
        let session: SessionAnswer = self.http.get(&format!("/sessions/{id}")).await?;
        let new = session.messages.into_iter().skip(seen.count);
        let messages: Vec<Message> = new
            .map(|message| Message {
                is_agents: message.from == "agent",
                from: message.from,
                text: message.text,
            })
            .collect();
        seen.count += messages.len();
        let cost = session.usd.and_then(Usd::from_f64).filter(|usd| !usd.is_negative());
        let used = (session.usd.is_some() || session.tokens.is_some())
            .then(|| Usage { tokens: session.tokens.unwrap_or(0), cost });
        let state = match session.state {
            StateAnswer::Working => State::Working,
            StateAnswer::Waiting => State::Waiting,
            StateAnswer::Finished => State::Finished,
            StateAnswer::Failed => State::Failed(failure(session.reason.as_deref(), session.detail)),
        };
        Ok(Session { state, messages, pull_request: None, used })
    }

    async fn message(&self, id: &str, text: &str) -> Result<(), EngineFailure> {
        self.http.post::<Value>(&format!("/sessions/{id}/messages"), &json!({ "text": text })).await.map(drop)
    }

    async fn stop(&self, id: &str) -> Result<(), EngineFailure> {
        self.http.delete(&format!("/sessions/{id}")).await
    }

    async fn check(&self) -> Result<(), EngineFailure> {
        self.http.get::<Value>("/sessions").await.map(drop)
    }
}

/// In the words that reports of this fleet use; whatever else is said is a crash.
fn failure(reason: Option<&str>, detail: Option<String>) -> EngineFailure {
    let detail = detail.unwrap_or_else(|| "the session failed and does not say why".to_owned());
    match reason.and_then(|reason| reason.parse().ok()) {
        Some(reason @ (FailReason::Infrastructure | FailReason::OutOfQuota | FailReason::SignedOut)) => {
            EngineFailure::passing(reason, detail)
        }
        Some(
            reason @ (FailReason::Refused
            | FailReason::ContextTooLong
            | FailReason::BudgetExceeded
            | FailReason::Timeout),
        ) => EngineFailure::lasting(reason, detail),
        _ => EngineFailure::lasting(FailReason::Crash, detail),
    }
}

#[derive(Debug, Deserialize)]
struct CreatedAnswer {
    id: String,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct SessionAnswer {
    state: StateAnswer,
    #[serde(default)]
    messages: Vec<MessageAnswer>,
    /// Since the session began.
    #[serde(default)]
    usd: Option<f64>,
    #[serde(default)]
    tokens: Option<u64>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    detail: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateAnswer {
    Working,
    Waiting,
    Finished,
    Failed,
}

#[derive(Debug, Deserialize)]
struct MessageAnswer {
    from: String,
    text: String,
}
