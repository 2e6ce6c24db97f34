//! Devin's HTTP interface: version 3 where an organization is named, version 1 with the older keys.
//!
//! Everything in an answer is optional but the names of sessions: the service adds to it with every release.

use async_trait::async_trait;
use giga_domain::{FailReason, Usd};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, Created, Http, Message, NewSession, Seen, Session, State};
use crate::engines::config::DevinConfig;
use crate::engines::engine::{EngineFailure, Secret, Usage};

const SERVICE: &str = "Devin";
/// Messages that are read with one call.
const PAGE: usize = 200;
/// Pages that are read in one go; the rest comes with the next look.
const PAGES: usize = 20;

#[derive(Debug)]
pub(super) struct Devin {
    http: Http,
    version: Version,
    usd_per_acu: Option<Usd>,
    most_acus: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Three,
}

impl Devin {
    pub(super) fn new(config: &DevinConfig, key: Secret) -> Result<Self, EngineFailure> {
        let version = if config.organization.is_some() { Version::Three } else { Version::One };
        let http = Http::new(SERVICE, &config.address(), Some(key))?;
        Ok(Self { http, version, usd_per_acu: config.usd_per_acu, most_acus: config.max_acus })
    }

    /// In the service's own unit of work.
    fn cap(&self, usd: Option<Usd>) -> Option<u64> {
        let by_price = match (usd, self.usd_per_acu) {
            (Some(cap), Some(price)) if !price.is_zero() => {
                Some((cap.micros() / price.micros()).max(1).unsigned_abs())
            }
            _ => None,
        };
        by_price.into_iter().chain(self.most_acus).min()
    }

    fn usage(&self, acus: Option<f64>) -> Option<Usage> {
        let acus = acus.filter(|acus| acus.is_finite() && *acus >= 0.0)?;
        let cost = Usd::from_f64(acus * self.usd_per_acu?.as_f64()).unwrap_or(Usd::MAX);
        Some(Usage { tokens: 0, cost: Some(cost) })
    }

    /// A session whose name was lost with the answer.
    async fn find(&self, tag: &str) -> Result<Option<Created>, EngineFailure> {
        let found: Page<SessionAnswer> = self.http.get(&format!("/sessions?first=1&tags={tag}")).await?;
        let newest = found.items.into_iter().find(|session| session.tags.iter().any(|known| known == tag));
        Ok(newest.and_then(|session| Some(Created { id: session.session_id?, url: session.url })))
    }

    async fn new_messages(&self, id: &str, seen: &mut Seen) -> Result<Vec<Message>, EngineFailure> {
        let mut new = Vec::new();
        for _ in 0..PAGES {
            let after = seen.cursor.as_deref().filter(|cursor| is_cursor(cursor));
            let after = after.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
            let path = format!("/sessions/{id}/messages?first={PAGE}{after}");
            let page: Page<MessageAnswer> = self.http.get(&path).await?;
            // Without a cursor to go on from, the same page comes again.
            let known = if after.is_empty() { seen.count } else { 0 };
            let fresh = page.items.into_iter().skip(known).map(MessageAnswer::read).collect::<Vec<_>>();
            seen.count += fresh.len();
            new.extend(fresh);
            if page.end_cursor.is_some() {
                seen.cursor = page.end_cursor;
            }
            if !page.has_more {
                break;
            }
        }
        Ok(new)
    }
}

#[async_trait]
impl Api for Devin {
    async fn create(&self, wanted: &NewSession<'_>) -> Result<Created, EngineFailure> {
        let mut body = json!({ "prompt": wanted.prompt, "tags": [wanted.reference] });
        match self.version {
            // By the prompt, which names the run.
            Version::One => body["idempotent"] = true.into(),
            Version::Three => {
                if let Some(created) = self.find(wanted.reference).await? {
                    return Ok(created);
                }
                let urls = wanted.repositories.iter().map(|repository| Value::from(repository.url.clone()));
                if !wanted.repositories.is_empty() {
                    body["repos"] = urls.collect();
                }
            }
        }
        if let Some(most) = self.cap(wanted.most_usd) {
            body["max_acu_limit"] = most.into();
        }
        let created: SessionAnswer = self.http.post("/sessions", &body).await?;
        Ok(Created { id: created.session_id.unwrap_or_default(), url: created.url })
    }

    async fn session(&self, id: &str, seen: &mut Seen) -> Result<Session, EngineFailure> {
        let session: SessionAnswer = self.http.get(&format!("/sessions/{id}")).await?;
        let state = match self.version {
            Version::One => session.state_1(),
            Version::Three => session.state_3(),
        };
        let messages = match self.version {
            Version::One => {
                let new: Vec<_> =
                    session.messages.into_iter().skip(seen.count).map(MessageAnswer::read).collect();
                seen.count += new.len();
                new
            }
            Version::Three => self.new_messages(id, seen).await?,
        };
        let mut requests = session.pull_request.into_iter().chain(session.pull_requests);
        Ok(Session {
            state,
            messages,
            pull_request: requests.find_map(|request| request.url.or(request.pr_url)),
            used: self.usage(session.acus_consumed),
        })
    }

    async fn message(&self, id: &str, text: &str) -> Result<(), EngineFailure> {
        let name = if self.version == Version::One { "message" } else { "messages" };
        let sent: Value =
            self.http.post(&format!("/sessions/{id}/{name}"), &json!({ "message": text })).await?;
        drop(sent);
        Ok(())
    }

    async fn stop(&self, id: &str) -> Result<(), EngineFailure> {
        self.http.delete(&format!("/sessions/{id}")).await
    }

    async fn check(&self) -> Result<(), EngineFailure> {
        let most = if self.version == Version::One { "limit" } else { "first" };
        self.http.get::<Value>(&format!("/sessions?{most}=1")).await.map(drop)
    }

    fn waits_when_done(&self) -> bool {
        self.version == Version::One
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionAnswer {
    session_id: Option<String>,
    url: Option<String>,
    tags: Vec<String>,
    /// Version 1.
    status_enum: Option<String>,
    messages: Vec<MessageAnswer>,
    pull_request: Option<PullRequest>,
    /// Version 3.
    status: Option<String>,
    status_detail: Option<String>,
    pull_requests: Vec<PullRequest>,
    acus_consumed: Option<f64>,
}

impl SessionAnswer {
    fn state_1(&self) -> State {
        match self.status_enum.as_deref() {
            Some("finished") => State::Finished,
            Some("blocked") => State::Waiting,
            Some("expired") => {
                let detail = "the session expired before it was finished";
                State::Failed(EngineFailure::passing(FailReason::Infrastructure, detail))
            }
            _ => State::Working,
        }
    }

    fn state_3(&self) -> State {
        let detail = self.status_detail.as_deref().unwrap_or_default();
        let failed = |reason, why: &str| {
            let words = if detail.is_empty() { why.to_owned() } else { format!("{why} ({detail})") };
            State::Failed(EngineFailure::passing(reason, words))
        };
        match (self.status.as_deref(), detail) {
            (Some("running"), "finished") | (Some("exit"), _) => State::Finished,
            (Some("running"), "waiting_for_user" | "waiting_for_approval")
            | (Some("suspended"), "inactivity") => State::Waiting,
            (Some("suspended"), "usage_limit_exceeded") => State::Failed(EngineFailure::lasting(
                FailReason::BudgetExceeded,
                "the session reached its limit of compute units",
            )),
            (Some("suspended"), "user_request") => {
                State::Failed(EngineFailure::lasting(FailReason::Crash, "somebody put the session to sleep"))
            }
            (Some("suspended"), "error") | (Some("error"), _) => {
                failed(FailReason::Infrastructure, "the session ended with an error")
            }
            // Credits, quotas, payment, limits of the organization.
            (Some("suspended"), _) => failed(FailReason::OutOfQuota, "the account may not go on"),
            _ => State::Working,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageAnswer {
    message: String,
    /// Version 1.
    #[serde(rename = "type")]
    kind: String,
    /// Version 3.
    source: String,
}

impl MessageAnswer {
    fn read(self) -> Message {
        let is_agents = self.kind == "devin_message" || self.source == "devin";
        let from = if is_agents { "devin".to_owned() } else { [self.source, self.kind].concat() };
        Message { from, text: self.message, is_agents }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PullRequest {
    url: Option<String>,
    pr_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Page<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    #[serde(default)]
    end_cursor: Option<String>,
    #[serde(default, rename = "has_next_page")]
    has_more: bool,
}

/// It becomes part of a query.
fn is_cursor(cursor: &str) -> bool {
    !cursor.is_empty()
        && cursor.len() <= 500
        && cursor.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~'))
}
