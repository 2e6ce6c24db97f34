//! What a run needs of a service that does the work elsewhere, and the HTTP that all of them have in common.
//!
//! Never decides what a session means for the run, and never shows the key: errors carry the status and what the service
//! answered, not what we sent.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FailReason, Usd};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::engines::engine::{EngineFailure, RemoteRepository, Secret, Usage};

/// For one call.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most that is read of one answer.
const ANSWER_BYTES: usize = 16 << 20;
/// A limit that lasts longer is no moment to wait for: the account is used up.
const SHORT_WAIT: Duration = Duration::from_mins(5);

#[async_trait]
pub(super) trait Api: fmt::Debug + Send + Sync {
    /// A call that is made again, because its answer was lost, gives the same session.
    async fn create(&self, wanted: &NewSession<'_>) -> Result<Created, EngineFailure>;

    /// `seen` are the messages that were read before: only newer ones are in the answer.
    async fn session(&self, id: &str, seen: &mut Seen) -> Result<Session, EngineFailure>;

    async fn message(&self, id: &str, text: &str) -> Result<(), EngineFailure>;

    /// For good: it costs nothing any more.
    async fn stop(&self, id: &str) -> Result<(), EngineFailure>;

    /// Whether the key is taken.
    async fn check(&self) -> Result<(), EngineFailure>;

    /// Whether a session that has nothing more to do looks like one that waits for an answer.
    fn waits_when_done(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct NewSession<'a> {
    pub(super) prompt: &'a str,
    /// Names the run.
    pub(super) reference: &'a str,
    pub(super) repositories: &'a [RemoteRepository],
    pub(super) most_usd: Option<Usd>,
    pub(super) most_tokens: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Created {
    pub(super) id: String,
    /// Where people can look at it.
    pub(super) url: Option<String>,
}

/// How far the messages of a session were read.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) count: usize,
    pub(super) cursor: Option<String>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) state: State,
    pub(super) messages: Vec<Message>,
    pub(super) pull_request: Option<String>,
    /// Since the session began.
    pub(super) used: Option<Usage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Working,
    /// For an answer of a person.
    Waiting,
    Finished,
    /// It cannot be gone on with.
    Failed(EngineFailure),
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) from: String,
    pub(super) text: String,
    /// Said by the agent, and not by us or another person.
    pub(super) is_agents: bool,
}

/// It becomes part of a path.
pub(super) fn is_session(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 200
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    service: String,
    base: String,
    key: Option<Secret>,
}

impl Http {
    /// `service` as people know it.
    pub(super) fn new(service: &str, base: &str, key: Option<Secret>) -> Result<Self, EngineFailure> {
        // What an answer names is never gone to with the key.
        let client = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
        let client = client.build().map_err(|error| {
            EngineFailure::lasting(FailReason::Infrastructure, format!("no HTTP client: {error}"))
        })?;
        Ok(Self { client, service: service.to_owned(), base: base.trim_end_matches('/').to_owned(), key })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, EngineFailure> {
        self.read(self.request(Method::GET, path)).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, EngineFailure> {
        self.read(self.request(Method::POST, path).json(body)).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), EngineFailure> {
        self.send(self.request(Method::DELETE, path)).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, EngineFailure> {
        let body = self.send(request).await?;
        // Some answers are empty.
        let body = if body.trim_ascii().is_empty() { b"null" } else { body.as_slice() };
        serde_json::from_slice(body).map_err(|error| {
            let detail = format!("the answer of {} could not be read: {error}", self.service);
            EngineFailure::passing(FailReason::Infrastructure, detail)
        })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, EngineFailure> {
        let unreachable = |error: reqwest::Error| {
            let detail = format!("{} could not be reached: {}", self.service, error.without_url());
            EngineFailure::passing(FailReason::Infrastructure, detail)
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let wait = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > ANSWER_BYTES {
                let detail = format!("an answer of {} is longer than {ANSWER_BYTES} bytes", self.service);
                return Err(EngineFailure::passing(FailReason::Infrastructure, detail));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(body);
        }
        Err(self.refused(status, wait.map(Duration::from_secs), &String::from_utf8_lossy(&body)))
    }

    fn refused(&self, status: StatusCode, wait: Option<Duration>, body: &str) -> EngineFailure {
        let said: String = body.chars().filter(|c| !c.is_control()).take(300).collect();
        let detail = format!("{} answered {status}: {said}", self.service);
        let failure = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                EngineFailure::passing(FailReason::SignedOut, detail)
            }
            StatusCode::PAYMENT_REQUIRED => EngineFailure::passing(FailReason::OutOfQuota, detail),
            StatusCode::TOO_MANY_REQUESTS if wait > Some(SHORT_WAIT) => {
                EngineFailure::passing(FailReason::OutOfQuota, detail)
            }
            StatusCode::TOO_MANY_REQUESTS => EngineFailure::passing(FailReason::Infrastructure, detail),
            _ if status.is_server_error() => EngineFailure::passing(FailReason::Infrastructure, detail),
            _ => EngineFailure::lasting(FailReason::Crash, detail),
        };
        EngineFailure { resets_in: wait, ..failure }
    }
}
