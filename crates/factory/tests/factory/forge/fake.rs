//! The part of GitHub's API that the forge needs, with trouble on order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use giga_factory::forge::{GitHub, PullRequest, RestApi};
use giga_factory::workspace::{CommitId, GitUrl};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What happens to a call that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Done, but the answer never arrives.
    LostReply,
    /// Done, but the answer says otherwise.
    DoneWith(u16),
    /// Not done.
    NotDone(u16),
}

#[derive(Debug, Default)]
pub(crate) struct Hub {
    pub(crate) pulls: Vec<Value>,
    pub(crate) trouble: VecDeque<Trouble>,
    pub(crate) changes: usize,
}

pub(crate) type Shared = Arc<Mutex<Hub>>;

pub(crate) const TOKEN: &str = "token-of-a-test";

pub(crate) async fn start() -> (Shared, GitHub) {
    start_for(TOKEN).await
}

/// Signed in with this token, which may be the wrong one.
pub(crate) async fn start_for(token: &str) -> (Shared, GitHub) {
    let hub = Shared::default();
    let app = Router::new()
        .route("/repos/{owner}/{name}/pulls", get(list).post(open))
        .route("/repos/{owner}/{name}/pulls/{number}", get(show).patch(close))
        .route("/repos/{owner}/{name}/pulls/{number}/merge", put(merge))
        .layer(from_fn_with_state(Arc::clone(&hub), misbehave))
        .with_state(Arc::clone(&hub));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let api = RestApi::new("github.com", &base, token).unwrap();
    (hub, GitHub::new(api).with_retry_wait(Duration::from_millis(1)))
}

pub(crate) fn request() -> PullRequest {
    PullRequest {
        repo: repo(),
        head: "giga/job/01J9ZK3V5N8Q4W2E6R7T1Y0ABC/2".to_owned(),
        base: "main".to_owned(),
        title: "Fix the greeting".to_owned(),
        body: "What was done.".to_owned(),
        key: "01J9ZK3V5N8Q4W2E6R7T1Y0ABC:2:pr".parse().unwrap(),
    }
}

pub(crate) fn repo() -> GitUrl {
    GitUrl::parse("git@github.com:org/app.git").unwrap()
}

pub(crate) fn commit() -> CommitId {
    "a".repeat(40).parse().unwrap()
}

async fn misbehave(State(hub): State<Shared>, request: Request, next: Next) -> Response {
    let header = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
    if header != Some(format!("Bearer {TOKEN}")) {
        return (StatusCode::UNAUTHORIZED, Json(json!({"message": "Bad credentials"}))).into_response();
    }
    if request.method() == "GET" {
        return next.run(request).await;
    }
    let trouble = hub.lock().trouble.pop_front();
    let failure = |status: u16| {
        let status = StatusCode::from_u16(status).unwrap();
        (status, Json(json!({"message": "trouble"}))).into_response()
    };
    if let Some(Trouble::NotDone(status)) = trouble {
        return failure(status);
    }
    let answer = next.run(request).await;
    hub.lock().changes += 1;
    match trouble {
        // A body that breaks off closes the connection before the answer is whole.
        Some(Trouble::LostReply) => {
            let broken = futures::stream::iter([Err::<String, _>(std::io::Error::other("lost"))]);
            Response::new(axum::body::Body::from_stream(broken))
        }
        Some(Trouble::DoneWith(status)) => failure(status),
        _ => answer,
    }
}

#[derive(serde::Deserialize)]
struct Filter {
    head: String,
    state: String,
}

async fn list(State(hub): State<Shared>, Query(filter): Query<Filter>) -> Json<Value> {
    assert_eq!(filter.state, "all", "closed ones count, too");
    let hub = hub.lock();
    let of_head = |pull: &&Value| pull["head"]["label"] == filter.head.as_str();
    Json(hub.pulls.iter().filter(of_head).cloned().collect())
}

async fn open(
    State(hub): State<Shared>,
    Path((owner, _)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Response {
    let mut hub = hub.lock();
    let label = format!("{owner}:{}", body["head"].as_str().unwrap());
    if hub.pulls.iter().any(|pull| pull["head"]["label"] == label.as_str() && pull["state"] == "open") {
        let errors = json!([{"message": "A pull request already exists"}]);
        let answer = json!({"message": "Validation Failed", "errors": errors});
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(answer)).into_response();
    }
    let number = hub.pulls.len() as u64 + 1;
    let pull = json!({
        "number": number,
        "html_url": format!("https://github.com/org/app/pull/{number}"),
        "state": "open",
        "merged": false,
        "title": body["title"],
        "body": body["body"],
        "head": {"ref": body["head"], "label": label},
        "base": {"ref": body["base"]},
    });
    hub.pulls.push(pull.clone());
    (StatusCode::CREATED, Json(pull)).into_response()
}

type At = Path<(String, String, usize)>;

async fn show(State(hub): State<Shared>, Path((_, _, number)): At) -> Response {
    match hub.lock().pulls.get(number - 1) {
        Some(pull) => Json(pull.clone()).into_response(),
        None => (StatusCode::NOT_FOUND, Json(json!({"message": "Not Found"}))).into_response(),
    }
}

async fn close(State(hub): State<Shared>, Path((_, _, number)): At, Json(body): Json<Value>) -> Json<Value> {
    let mut hub = hub.lock();
    hub.pulls[number - 1]["state"] = body["state"].clone();
    Json(hub.pulls[number - 1].clone())
}

async fn merge(State(hub): State<Shared>, Path((_, _, number)): At, Json(body): Json<Value>) -> Response {
    let mut hub = hub.lock();
    let pull = &mut hub.pulls[number - 1];
    if body["sha"] != commit().as_str() {
        let answer = json!({"message": "Head branch was modified. Review and try the merge again."});
        return (StatusCode::CONFLICT, Json(answer)).into_response();
    }
    if pull["state"] != "open" {
        let answer = json!({"message": "Pull Request is not mergeable"});
        return (StatusCode::METHOD_NOT_ALLOWED, Json(answer)).into_response();
    }
    let merged = "b".repeat(40);
    pull["merged"] = true.into();
    pull["state"] = "closed".into();
    pull["merge_commit_sha"] = merged.clone().into();
    Json(json!({"merged": true, "sha": merged})).into_response()
}
