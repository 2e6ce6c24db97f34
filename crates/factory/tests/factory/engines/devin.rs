//! A run against a small server that speaks as much of Devin's interface as a run needs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use giga_domain::{FailReason, Usd};
use giga_factory::engines::{EngineOutcome, Preflight};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::engines::kit::{Bench, Ran};

const KEY: &str = "key-of-devin";

#[derive(Default)]
struct Server {
    /// What the session answers, one after the other; the last for ever.
    answers: Mutex<VecDeque<Answer>>,
    /// Calls of one kind that fail before one succeeds.
    refusals: Mutex<VecDeque<StatusCode>>,
    heard: Mutex<Vec<String>>,
}

#[derive(Clone)]
enum Answer {
    Session(Value),
    Status(StatusCode),
}

type Shared = State<Arc<Server>>;

impl Server {
    fn hear(&self, what: String) {
        self.heard.lock().push(what);
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().clone()
    }
}

fn allowed(headers: &HeaderMap) -> bool {
    headers.get("authorization").is_some_and(|value| value == &format!("Bearer {KEY}"))
}

async fn create(State(server): Shared, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !allowed(&headers) {
        return (StatusCode::UNAUTHORIZED, "who are you").into_response();
    }
    server.hear(format!("create {body}"));
    if let Some(refusal) = server.refusals.lock().pop_front() {
        return refusal.into_response();
    }
    Json(json!({"session_id": "devin-1", "url": "https://app.devin.ai/sessions/1", "is_new_session": true}))
        .into_response()
}

async fn list(headers: HeaderMap) -> Response {
    if allowed(&headers) {
        Json(json!({"sessions": []})).into_response()
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

async fn session(State(server): Shared, Path(id): Path<String>) -> Response {
    assert_eq!(id, "devin-1");
    let mut answers = server.answers.lock();
    let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
    match answer.unwrap() {
        Answer::Session(session) => Json(session).into_response(),
        Answer::Status(status) => status.into_response(),
    }
}

async fn message(State(server): Shared, Json(body): Json<Value>) -> Json<Value> {
    server.hear(format!("message {}", body["message"].as_str().unwrap_or_default()));
    Json(json!({"detail": "sent"}))
}

async fn terminate(State(server): Shared) -> StatusCode {
    server.hear("terminate".to_owned());
    StatusCode::OK
}

fn status(status: &str, messages: &[&str], acus: f64) -> Answer {
    let messages: Vec<Value> =
        messages.iter().map(|text| json!({"type": "devin_message", "message": text})).collect();
    Answer::Session(json!({"session_id": "devin-1", "status": status, "status_enum": status,
        "messages": messages, "acus_consumed": acus, "a_field_of_next_year": {}}))
}

fn with_pull_request(answer: Answer) -> Answer {
    let Answer::Session(mut session) = answer else { return answer };
    session["pull_request"] = json!({"url": "https://forge/pr/1"});
    Answer::Session(session)
}

async fn serve(answers: Vec<Answer>, refusals: &[StatusCode]) -> (Arc<Server>, String) {
    let server = Arc::new(Server {
        answers: Mutex::new(answers.into()),
        refusals: Mutex::new(refusals.to_vec().into()),
        ..Server::default()
    });
    let routes = Router::new()
        .route("/v1/sessions", post(create).get(list))
        .route("/v1/sessions/{id}", get(session).delete(terminate))
        .route("/v1/sessions/{id}/message", post(message))
        .with_state(Arc::clone(&server));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (server, format!("http://{address}/v1/"))
}

fn bench(base_url: &str) -> Bench {
    let mut bench = Bench::new("devin", &[]).configured(|config| {
        config.devin.base_url = Some(base_url.to_owned());
        config.devin.poll_interval_ms = 5;
        config.devin.usd_per_acu = Some(Usd::from_dollars(2));
    });
    bench.host.push(("DEVIN_API_KEY".into(), KEY.into()));
    bench
}

async fn run(answers: Vec<Answer>) -> (Arc<Server>, Ran) {
    let (server, url) = serve(answers, &[]).await;
    (server, bench(&url).run().await)
}

#[tokio::test]
async fn a_session_to_its_end() {
    let (server, ran) = run(vec![
        status("working", &["I begin."], 0.5),
        Answer::Status(StatusCode::BAD_GATEWAY),
        status("working", &["I begin.", &format!("my key is {KEY}\nand more")], 1.0),
        with_pull_request(status("finished", &["I begin.", "x", "Done."], 1.25)),
    ])
    .await;
    ran.succeeded();
    assert_eq!(ran.report.session_id.as_deref(), Some("devin-1"));
    assert_eq!(ran.report.summary.as_deref(), Some("Done.\npull request: https://forge/pr/1"));
    assert_eq!(ran.report.usage.cost, Some(Usd::from_micros(2_500_000)));
    let lines = ran.lines();
    let expected =
        ["I begin.", "my key is [redacted]", "and more", "Done."].map(|line| format!("devin: {line}"));
    assert_eq!(lines, expected);
    let [heard] = server.heard().try_into().unwrap();
    let body: Value = serde_json::from_str(heard.strip_prefix("create ").unwrap()).unwrap();
    assert_eq!(body["idempotent"], true);
    let reference = body["tags"][0].as_str().unwrap();
    assert!(reference.starts_with("giga-test-"), "{body}");
    assert_eq!(
        body["prompt"],
        format!("Fix the greeting.\n\nReference: {reference}\n"),
        "one that no other run has"
    );
}

#[tokio::test]
async fn a_resumed_session_gets_a_message_and_is_not_counted_twice() {
    let (server, url) = serve(vec![status("finished", &[], 3.0)], &[]).await;
    let ran = bench(&url)
        .with(|request| {
            request.resume = Some("devin-1".into());
            request.usage_before.cost = Some(Usd::from_dollars(4));
        })
        .run()
        .await;
    ran.succeeded();
    assert_eq!(ran.report.usage.cost, Some(Usd::from_dollars(2)));
    let heard = server.heard();
    assert!(heard.len() == 1 && heard[0].starts_with("message Fix the greeting."), "{heard:?}");
}

#[tokio::test]
async fn a_session_that_is_over_is_not_resumed() {
    let (server, url) = serve(vec![status("expired", &[], 3.0), status("finished", &[], 1.0)], &[]).await;
    let ran = bench(&url)
        .with(|request| {
            request.resume = Some("devin-1".into());
            request.usage_before.cost = Some(Usd::from_dollars(6));
        })
        .run()
        .await;
    ran.succeeded();
    assert_eq!(ran.report.usage.cost, Some(Usd::from_dollars(2)), "it counts from its own beginning");
    assert!(server.heard()[0].starts_with("create "), "{:?}", server.heard());
}

#[tokio::test]
async fn a_question_is_answered_twice_and_then_is_a_failure() {
    let (server, ran) = run(vec![status("blocked", &["Which colour?"], 0.0)]).await;
    ran.failed(FailReason::Crash, false);
    assert!(ran.failure().detail.contains("Which colour?"));
    let heard = server.heard();
    assert!(heard[1].starts_with("message If the task is finished"), "{heard:?}");
    assert_eq!(heard.iter().filter(|what| what.starts_with("message Nobody")).count(), 2);
    assert_eq!(heard.last().unwrap(), "terminate", "it would go on waiting");
    let (_, ran) = run(vec![
        status("blocked", &["It is all there."], 0.0),
        status("blocked", &["It is all there.", "Done."], 0.0),
    ])
    .await;
    ran.succeeded();
    let (_, ran) = run(vec![with_pull_request(status("blocked", &["Please review."], 0.0))]).await;
    ran.succeeded();
}

#[tokio::test]
async fn stopping_terminates_the_session() {
    let (server, url) = serve(vec![status("working", &["up"], 0.0)], &[]).await;
    let ran = bench(&url).stop_at("devin: up").await;
    assert_eq!(ran.report.outcome, EngineOutcome::Stopped);
    assert!(!ran.report.metered, "it was at work and not counted yet");
    assert_eq!(server.heard().last().unwrap(), "terminate");
    let (_, url) = serve(vec![status("working", &["up"], 1.0)], &[]).await;
    assert!(bench(&url).stop_at("devin: up").await.report.metered);
    let (_, url) = serve(vec![status("finished", &[], 0.0)], &[]).await;
    assert!(bench(&url).run().await.report.metered);
}

#[tokio::test]
async fn watchdogs_and_budgets_terminate_the_session() {
    type Change = fn(&mut giga_factory::engines::EngineRequest);
    let cases: [(Change, FailReason, bool); 4] = [
        (|request| request.watchdog.idle = Duration::from_millis(50), FailReason::Timeout, true),
        (|request| request.watchdog.wall = Duration::from_millis(50), FailReason::Timeout, false),
        (|request| request.budget.wall_ms = Some(50), FailReason::BudgetExceeded, false),
        (|request| request.budget.usd = Some(Usd::from_dollars(19)), FailReason::BudgetExceeded, false),
    ];
    for (change, reason, retryable) in cases {
        let (server, url) = serve(vec![status("working", &[], 10.0)], &[]).await;
        let ran = bench(&url).with(change).run().await;
        ran.failed(reason, retryable);
        assert_eq!(server.heard().last().unwrap(), "terminate");
    }
    let (server, url) = serve(vec![status("finished", &[], 1.0)], &[]).await;
    let ran = bench(&url).with(|request| request.budget.usd = Some(Usd::from_dollars(19))).run().await;
    ran.succeeded();
    assert!(server.heard()[0].contains(r#""max_acu_limit":9"#), "{:?}", server.heard());
}

#[tokio::test]
async fn refusals() {
    let (_, url) = serve(vec![status("finished", &[], 0.0)], &[StatusCode::TOO_MANY_REQUESTS; 2]).await;
    bench(&url).run().await.succeeded();
    let (server, url) = serve(vec![status("finished", &[], 0.0)], &[StatusCode::BAD_GATEWAY; 9]).await;
    bench(&url).run().await.failed(FailReason::Infrastructure, true);
    assert_eq!(server.heard().len(), 3);
    let (_, ran) = run(vec![status("expired", &[], 0.0)]).await;
    ran.failed(FailReason::Infrastructure, true);
    let (_, url) = serve(vec![], &[]).await;
    let mut wrong = bench(&url);
    wrong.host.retain(|(name, _)| name != "DEVIN_API_KEY");
    wrong.host.push(("DEVIN_API_KEY".into(), "wrong".into()));
    wrong.run().await.failed(FailReason::SignedOut, true);
    let mut none = bench(&url);
    none.host.retain(|(name, _)| name != "DEVIN_API_KEY");
    none.run().await.failed(FailReason::SignedOut, true);
}

#[tokio::test]
async fn preflights() {
    let (_, url) = serve(vec![], &[]).await;
    assert_eq!(bench(&url).engine().preflight().await, Preflight::Ready { version: None });
    let mut wrong = bench(&url);
    wrong.host.retain(|(name, _)| name != "DEVIN_API_KEY");
    assert!(matches!(wrong.engine().preflight().await, Preflight::NotSignedIn { .. }));
    wrong.host.push(("DEVIN_API_KEY".into(), "wrong".into()));
    assert!(matches!(wrong.engine().preflight().await, Preflight::NotSignedIn { .. }));
    let nobody = bench("http://127.0.0.1:9/v1");
    assert!(matches!(nobody.engine().preflight().await, Preflight::Broken { .. }));
}
