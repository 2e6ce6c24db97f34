//! Webhooks and the tracker bridge with real receivers: one that misbehaves, and one that speaks GitHub's API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Json, Router};
use giga_domain::SigningKey;
use giga_effects::signature;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::{Home, giga, manifest, run};

const LONG: Duration = Duration::from_mins(2);
const JOBS: usize = 40;

async fn listen(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    base
}

/// What a receiver does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Fine,
    Hangs,
    Fails,
    Redirects,
}

/// A receiver that checks what it gets and is in a bad mood now and then.
struct Receiver {
    secret: Mutex<Option<SigningKey>>,
    moods: Mutex<Vec<Mood>>,
    canary: String,
    seen: mpsc::UnboundedSender<(String, Mood)>,
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, at) = (text("webhook-id"), text("webhook-timestamp"));
    let secret = receiver.secret.lock().clone().unwrap();
    assert_eq!(text("webhook-signature"), signature(&secret, &id, at.parse().unwrap(), &body));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["id"], id.as_str());
    let mood = receiver.moods.lock().pop().unwrap_or(Mood::Fine);
    receiver.seen.send((id, mood)).unwrap();
    match mood {
        Mood::Fine => StatusCode::NO_CONTENT.into_response(),
        Mood::Fails => (StatusCode::INTERNAL_SERVER_ERROR, "oh").into_response(),
        Mood::Hangs => std::future::pending().await,
        Mood::Redirects => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", receiver.canary.clone())]).into_response()
        }
    }
}

/// `whsec_…` as bytes.
fn secret_of(text: &str) -> SigningKey {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.strip_prefix("whsec_").unwrap().trim_end_matches('=').bytes();
    let bits = digits.map(|c| LETTERS.iter().position(|letter| *letter == c).unwrap());
    let (mut bytes, mut held, mut count) = (Vec::new(), 0usize, 0);
    for six in bits {
        held = held << 6 | six;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count) as u8);
            held &= (1 << count) - 1;
        }
    }
    SigningKey(bytes.try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_although_the_coordinator_is_killed_and_the_receiver_misbehaves() {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let canary = any(async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        StatusCode::OK
    });
    let canary = listen(Router::new().fallback(canary)).await;
    let (seen, mut heard) = mpsc::unbounded_channel();
    // From the last to the first.
    let moods =
        vec![Mood::Redirects, Mood::Fine, Mood::Fails, Mood::Hangs, Mood::Fine, Mood::Fine, Mood::Fine];
    let receiver = Arc::new(Receiver { secret: Mutex::default(), moods: Mutex::new(moods), canary, seen });
    let url = listen(Router::new().route("/hook", post(receive)).with_state(receiver.clone())).await;

    let home = Home::new();
    let refused_home = Home::new();
    let strict = refused_home.start();
    let refused = refused_home.giga(&["webhook", "add", &format!("{url}/hook")]).fails(1);
    assert!(refused.contains("effects-allow"), "{refused}");
    drop(strict);

    let allow = ["--effects-allow", "127.0.0.0/8"];
    let server = home.start_with(&allow);
    let args = ["webhook", "add", &format!("{url}/hook"), "--types", "job.submitted", "-o", "json"];
    let added: Value = serde_json::from_str(&home.giga(&args).ok()).unwrap();
    *receiver.secret.lock() = Some(secret_of(added["secret"].as_str().unwrap()));
    let hook = added["webhook"]["id"].as_str().unwrap().to_owned();
    assert!(!home.giga(&["webhook", "list", "-o", "json"]).ok().contains("whsec"), "shown once");

    for number in 0..JOBS {
        let file = home.write(&format!("job-{number}.md"), manifest(&format!("job-{number}"), ""));
        home.giga(&["job", "submit", file.to_str().unwrap()]).ok();
    }
    let mut arrived: BTreeMap<String, Vec<Mood>> = BTreeMap::new();
    let mut server = Some(server);
    while arrived.values().filter(|moods| moods.contains(&Mood::Fine)).count() < JOBS {
        let (id, mood) =
            tokio::time::timeout(LONG, heard.recv()).await.expect("nothing comes any more").unwrap();
        arrived.entry(id).or_default().push(mood);
        if mood == Mood::Hangs {
            server.take().unwrap().kill9();
            server = Some(home.start_with(&allow));
        }
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0, "a redirect was followed");
    let events: Value =
        serde_json::from_str(&home.giga(&["events", "--after", "0", "-o", "json"]).ok()).unwrap();
    let events = events["events"].as_array().unwrap();
    let submitted = events.iter().filter(|event| event["type"] == "job.submitted");
    let expected: BTreeSet<String> = submitted.map(|event| format!("wh:{hook}:{}", event["pos"])).collect();
    assert_eq!(arrived.keys().cloned().collect::<BTreeSet<_>>(), expected, "no other key");
    let again = arrived.values().filter(|moods| moods.len() > 1).count();
    assert!(again >= 3, "the three that went wrong came again: {arrived:?}");

    let list: Value =
        serde_json::from_str(&home.giga(&["effects", "list", "--limit", "1000", "-o", "json"]).ok()).unwrap();
    assert_eq!(list["effects"].as_array().unwrap().len(), JOBS);
    home.giga(&["webhook", "remove", &hook]).ok();
    home.giga(&["webhook", "test", &hook]).fails(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_says_what_came_of_it() {
    let home = Home::new();
    let _server = home.start_with(&["--effects-allow", "127.0.0.1"]);
    let app = Router::new()
        .route("/fine", any(async || StatusCode::OK))
        .route("/gone", any(async || (StatusCode::GONE, "closed shop")));
    let url = listen(app).await;
    let add = |path: &str| {
        home.giga(&["webhook", "add", &format!("{url}{path}"), "--types", "job.shipped", "-o", "name"])
            .ok()
            .trim()
            .to_owned()
    };
    let (fine, gone) = (add("/fine"), add("/gone"));
    assert_eq!(home.giga(&["webhook", "test", &fine]).ok().trim(), "delivered: 200 OK");
    let error = home.giga(&["webhook", "test", &gone]).fails(1);
    assert!(error.contains("closed shop"), "{error}");
    let dead = home.giga(&["effects", "list", "--state", "dead", "-o", "name"]).ok();
    assert!(dead.trim().starts_with(&format!("wh:{gone}:test-")), "{dead}");
    let retried = home.giga(&["effects", "retry", dead.trim(), "-o", "json"]).ok();
    assert!(retried.contains("\"pending\""), "{retried}");
    home.giga(&["effects", "retry", "wh:nobody:1"]).fails(3);
    let error = home.giga(&["webhook", "add", "https://example.com/#x"]).fails(1);
    assert!(error.contains("fragment"), "{error}");
    let error = home.giga(&["webhook", "add", &url, "--types", "job.shiped"]).fails(2);
    assert!(error.contains("'job.shipped'"), "{error}");
}

/// As much of GitHub as one issue needs.
struct Hub {
    issue: Mutex<Value>,
    comments: Mutex<Vec<Value>>,
    seen: mpsc::UnboundedSender<String>,
}

async fn hub(State(hub): State<Arc<Hub>>, request: Request) -> Response {
    let token = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
    if token.as_deref() != Some("Bearer ghp_secret_of_the_bridge") {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "message": "Bad credentials" }))).into_response();
    }
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let comments = "/repos/acme/app/issues/12/comments";
    match (method.as_str(), path.as_str()) {
        ("GET", "/user") => Json(json!({ "login": "bot" })).into_response(),
        ("GET", "/repos/acme/app/issues/12") => Json(hub.issue.lock().clone()).into_response(),
        ("PATCH", "/repos/acme/app/issues/12") => {
            hub.issue.lock()["state"] = body["state"].clone();
            hub.seen.send(format!("issue {}", body["state"].as_str().unwrap())).unwrap();
            Json(json!({})).into_response()
        }
        ("GET", path) if path == comments => Json(hub.comments.lock().clone()).into_response(),
        ("POST", path) if path == comments => {
            let comment = json!({ "id": 7, "user": { "login": "bot" }, "body": body["body"] });
            hub.comments.lock().push(comment.clone());
            hub.seen.send(format!("new {}", body["body"].as_str().unwrap())).unwrap();
            (StatusCode::CREATED, Json(comment)).into_response()
        }
        ("PATCH", "/repos/acme/app/issues/comments/7") => {
            hub.comments.lock()[0]["body"] = body["body"].clone();
            hub.seen.send(format!("edit {}", body["body"].as_str().unwrap())).unwrap();
            Json(json!({})).into_response()
        }
        ("POST", "/repos/acme/app/issues/12/labels") => {
            let label = json!({ "name": body["labels"][0] });
            hub.issue.lock()["labels"].as_array_mut().unwrap().push(label);
            Json(json!([])).into_response()
        }
        ("DELETE", path) if path.starts_with("/repos/acme/app/issues/12/labels/") => {
            let name = path.rsplit('/').next().unwrap();
            hub.issue.lock()["labels"].as_array_mut().unwrap().retain(|label| label["name"] != name);
            Json(json!([])).into_response()
        }
        _ => (StatusCode::NOT_FOUND, Json(json!({ "message": "Not Found" }))).into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issue_becomes_one_job_and_is_told_where_it_stands() {
    let (seen, mut heard) = mpsc::unbounded_channel();
    let issue =
        json!({ "number": 12, "title": "Say hello", "body": "It says helo.", "state": "open", "labels": [] });
    let state = Arc::new(Hub { issue: Mutex::new(issue), comments: Mutex::default(), seen });
    let api = listen(Router::new().fallback(hub).with_state(state.clone())).await;
    let home = Home::new();
    let token = home.write("github.token", "ghp_secret_of_the_bridge\n");
    let token = token.to_str().unwrap();
    let args = ["--github-api", &api, "--github-token-file", token, "--tracker-close-on-ship"];
    let _server = home.start_with(&args);

    let file = home.write("extra.md", "---\nproduct: demo\nship: manual\n---\nBe brief.\n");
    let ingest =
        || home.giga(&["tracker", "ingest", "github", "Acme/App#12", "--manifest", file.to_str().unwrap()]);
    let job = ingest().ok().trim().to_owned();
    state.issue.lock()["title"] = json!("Something else by now");
    assert_eq!(ingest().ok().trim(), job);
    let shown: Value = serde_json::from_str(&home.giga(&["job", "show", &job, "-o", "json"]).ok()).unwrap();
    assert_eq!((&shown["name"], &shown["productId"]), (&json!("Say hello"), &json!("demo")));
    let body = shown["bodyMd"].as_str().unwrap();
    assert!(body.starts_with("Be brief.\n") && body.contains(&format!("{api}/acme/app/issues/12")), "{body}");

    let mut until = async |what: &str| loop {
        let text: String =
            tokio::time::timeout(LONG, heard.recv()).await.expect("GitHub was not told").unwrap();
        if text.contains(what) {
            return text;
        }
    };
    assert!(until("**queued**").await.starts_with("new <!-- giga:job:"));
    home.giga(&["job", "cancel", &job]).ok();
    assert!(until("**cancelled**").await.starts_with("edit "), "one comment");
    assert_eq!(state.comments.lock().len(), 1);
    home.giga(&["tracker", "echo", &job]).ok();
    home.giga(&["tracker", "ingest", "github", "acme/app#99"]).fails(3);
    let error = home.giga(&["tracker", "ingest", "gitlab", "acme/app#1"]).fails(1);
    assert!(error.contains("there is github"), "{error}");

    let manifest = home.write("own.md", "---\nname: own\nidempotencyKey: tracker:github:acme/app#13\n---\n");
    let error = home.giga(&["job", "submit", manifest.to_str().unwrap()]).fails(1);
    assert!(error.contains("tracker:"), "{error}");
    let log = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    assert!(!log.contains("ghp_secret"), "{log}");
    let shown =
        run(giga(home.path()).env("GIGA_GITHUB_TOKEN", "ghp_secret_too").args(["config", "show"])).ok();
    assert!(shown.contains("github-token") && !shown.contains("ghp_secret"), "{shown}");
}

#[test]
fn a_project_may_not_choose_what_is_reached() {
    let home = Home::new();
    home.write("giga.toml", "effects-allow = [\"127.0.0.0/8\"]\n");
    let error = home.giga(&["serve", "--listen", "127.0.0.1:0"]).fails(2);
    assert!(error.contains("may not set `effects-allow`"), "{error}");
}
