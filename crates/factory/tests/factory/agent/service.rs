//! A service of agents that work elsewhere: Devin's interface in both versions, and our contract. What its agents do is the
//! test's to say; they have nothing of this factory but the address and the branch in their prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path as UrlPath, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use giga_factory::engines::EnginesConfig;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::world::PATIENCE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Devin1,
    Devin3,
    Contract,
}

/// What one of its agents is asked to do.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) repository: String,
    pub(crate) branch: String,
    pub(crate) message: String,
    /// Counted over all sessions.
    pub(crate) turn: u32,
    pub(crate) scratch: PathBuf,
}

/// How it has ended, or stands.
#[derive(Clone)]
pub(crate) struct Turn {
    finished: bool,
    text: String,
    acus: f64,
}

impl Turn {
    pub(crate) fn finished(text: &str) -> Self {
        Self { finished: true, text: text.to_owned(), acus: 0.0 }
    }

    pub(crate) fn working(text: &str) -> Self {
        Self { finished: false, ..Self::finished(text) }
    }

    /// Since the session began.
    pub(crate) fn acus(mut self, acus: f64) -> Self {
        self.acus = acus;
        self
    }
}

type Behave = Box<dyn Fn(&Task) -> Turn + Send + Sync>;

pub(crate) struct Service {
    pub(crate) dialect: Dialect,
    pub(crate) url: String,
    key: String,
    behave: Behave,
    scratch: TempDir,
    state: Mutex<Sessions>,
    changed: Notify,
}

#[derive(Default)]
struct Sessions {
    /// By number; the name is `s-<number>`.
    all: Vec<Session>,
    heard: Vec<String>,
    prompts: Vec<String>,
    turns: u32,
}

struct Session {
    reference: String,
    messages: Vec<(bool, String)>,
    turn: Option<Turn>,
    stopped: bool,
}

impl Service {
    pub(crate) async fn start(
        dialect: Dialect,
        key: String,
        behave: impl Fn(&Task) -> Turn + Send + Sync + 'static,
    ) -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Arc::new(Self {
            dialect,
            url: format!("http://{}", listener.local_addr().unwrap()),
            key,
            behave: Box::new(behave),
            scratch: tempfile::tempdir().unwrap(),
            state: Mutex::default(),
            changed: Notify::new(),
        });
        let routes = Router::new()
            .route("/sessions", post(create).get(list))
            .route("/sessions/{id}", get(session).delete(stop))
            .route("/sessions/{id}/message", post(message))
            .route("/sessions/{id}/messages", post(message).get(messages))
            .with_state(Arc::clone(&service));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        service
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.state.lock().heard.clone()
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        self.state.lock().prompts.clone()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().all.len()
    }

    pub(crate) async fn until(&self, so: impl Fn(&[String]) -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let changed = self.changed.notified();
                if so(&self.heard()) {
                    return;
                }
                let _ = tokio::time::timeout(Duration::from_secs(1), changed).await;
            }
        });
        assert!(waited.await.is_ok(), "{:?}", self.heard());
    }

    /// For a factory in a process of its own.
    pub(crate) fn write_settings(&self, world: &Path) {
        let settings = json!({
            "disabled": EnginesConfig::default().disabled,
            "devin": {"organization": "org-1", "base-url": self.url, "key-variable": "PATH",
                "poll-interval-ms": 20, "usd-micros-per-acu": 2_000_000, "repositories": ["file:///"]},
        });
        std::fs::write(world.join("engines.json"), settings.to_string()).unwrap();
    }

    fn allows(&self, headers: &HeaderMap) -> bool {
        let given = headers.get("authorization").and_then(|value| value.to_str().ok());
        given == Some(&format!("Bearer {}", self.key))
    }

    fn hear(&self, what: &str) {
        self.state.lock().heard.push(what.to_owned());
        self.changed.notify_waiters();
    }

    /// The agent reads what it was told and does what the test says, in its own time.
    fn told(self: Arc<Self>, number: usize, text: String) {
        let turn = {
            let mut state = self.state.lock();
            state.prompts.push(text.clone());
            state.turns += 1;
            state.turns
        };
        let word = |after: &str| {
            let rest = text.split_once(after).map(|(_, rest)| rest).unwrap_or_default();
            rest.split_whitespace().next().unwrap_or_default().to_owned()
        };
        let scratch = self.scratch.path().join(turn.to_string());
        std::fs::create_dir_all(&scratch).unwrap();
        let (repository, branch) = (word("- repository "), word("  branch "));
        let task = Task { repository, branch, message: text, turn, scratch };
        tokio::task::spawn_blocking(move || {
            let turn = (self.behave)(&task);
            let mut state = self.state.lock();
            let session = &mut state.all[number];
            session.messages.push((true, turn.text.clone()));
            session.turn = Some(turn);
        });
    }

    fn shown(&self, number: usize) -> Value {
        let state = self.state.lock();
        let session = &state.all[number];
        let finished = session.turn.as_ref().is_some_and(|turn| turn.finished);
        let acus = session.turn.as_ref().map_or(0.0, |turn| turn.acus);
        let id = format!("s-{number}");
        match self.dialect {
            Dialect::Devin1 => {
                let messages: Vec<Value> = session.messages.iter().map(Self::message_1).collect();
                let status = if session.stopped {
                    "expired"
                } else if finished {
                    "finished"
                } else {
                    "working"
                };
                json!({"session_id": id, "status": status, "status_enum": status, "messages": messages,
                    "acus_consumed": acus, "pull_request": null, "a_field_of_next_year": {}})
            }
            Dialect::Devin3 => {
                let (status, detail) = match (session.stopped, finished) {
                    (true, _) => ("error", None),
                    (false, true) => ("running", Some("finished")),
                    (false, false) => ("running", Some("working")),
                };
                json!({"session_id": id, "status": status, "status_detail": detail, "acus_consumed": acus,
                    "pull_requests": [], "tags": [session.reference], "url": format!("https://x/{id}"),
                    "org_id": "org-1", "created_at": 1, "updated_at": 2})
            }
            Dialect::Contract => {
                let messages: Vec<Value> = session
                    .messages
                    .iter()
                    .map(|(agents, text)| json!({"from": if *agents { "agent" } else { "user" }, "text": text}))
                    .collect();
                let state = if session.stopped {
                    "failed"
                } else if finished {
                    "finished"
                } else {
                    "working"
                };
                json!({"id": id, "state": state, "messages": messages, "usd": acus * 2.0, "tokens": 7})
            }
        }
    }

    fn message_1((agents, text): &(bool, String)) -> Value {
        let kind = if *agents { "devin_message" } else { "user_message" };
        json!({"type": kind, "message": text, "event_id": "e", "timestamp": "t"})
    }
}

type Shared = State<Arc<Service>>;

fn number(id: &str) -> usize {
    id.strip_prefix("s-").unwrap().parse().unwrap()
}

async fn create(State(service): Shared, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !service.allows(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    service.hear("create");
    let reference = body["tags"][0].as_str().or(body["idempotencyKey"].as_str()).unwrap().to_owned();
    let number = {
        let mut state = service.state.lock();
        state.all.push(Session { reference, messages: Vec::new(), turn: None, stopped: false });
        state.all.len() - 1
    };
    service.clone().told(number, body["prompt"].as_str().unwrap().to_owned());
    let id = format!("s-{number}");
    Json(json!({"id": id, "session_id": id, "url": "https://x"})).into_response()
}

async fn list(State(service): Shared, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    if !service.allows(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let query = query.unwrap_or_default();
    let wanted = query.split("tags=").nth(1).unwrap_or_default().to_owned();
    let matching: Vec<usize> = {
        let state = service.state.lock();
        (0..state.all.len()).filter(|number| state.all[*number].reference == wanted).collect()
    };
    let items: Vec<Value> = matching.into_iter().map(|number| service.shown(number)).collect();
    Json(json!({"items": items, "has_next_page": false})).into_response()
}

async fn session(State(service): Shared, UrlPath(id): UrlPath<String>) -> Json<Value> {
    Json(service.shown(number(&id)))
}

/// Two at a time, so that pages are turned.
async fn messages(
    State(service): Shared,
    UrlPath(id): UrlPath<String>,
    RawQuery(query): RawQuery,
) -> Json<Value> {
    let query = query.unwrap_or_default();
    let after: usize = query.split("after=c").nth(1).map_or(0, |rest| rest.parse().unwrap());
    let state = service.state.lock();
    let all = &state.all[number(&id)].messages;
    let items: Vec<Value> = all
        .iter()
        .skip(after)
        .take(2)
        .map(|(agents, text)| json!({"source": if *agents { "devin" } else { "user" }, "message": text}))
        .collect();
    let end = after + items.len();
    Json(json!({"items": items, "end_cursor": format!("c{end}"), "has_next_page": end < all.len()}))
}

async fn message(
    State(service): Shared,
    UrlPath(id): UrlPath<String>,
    Json(body): Json<Value>,
) -> Json<Value> {
    service.hear("message");
    let text = body["message"].as_str().or(body["text"].as_str()).unwrap().to_owned();
    let number = number(&id);
    {
        let mut state = service.state.lock();
        let session = &mut state.all[number];
        session.messages.push((false, text.clone()));
        session.turn = None;
    }
    service.clone().told(number, text);
    Json(json!({}))
}

async fn stop(State(service): Shared, UrlPath(id): UrlPath<String>) -> StatusCode {
    service.state.lock().all[number(&id)].stopped = true;
    service.hear("stop");
    StatusCode::OK
}
