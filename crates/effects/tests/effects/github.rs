//! GitHub's issues against a server that speaks the same routes and shapes.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{NOW, listen, with};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use giga_domain::{Effect, EffectOutcome, EffectTarget, NewEffect, Timestamp};
use giga_effects::{Config, HttpEffects, TRACKERS, TrackerConfig, TrackerToken};
use giga_ports::{Effects, EffectsError};
use parking_lot::Mutex;
use serde_json::{Value, json};

const TOKEN: &str = "ghp_0123456789abcdef";
const JOB: &str = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC";

/// One repository `acme/app`: issue 12, pull request 13.
#[derive(Default)]
struct Hub {
    labels: Vec<String>,
    closed: bool,
    /// Id, author, body.
    comments: Vec<(u64, String, String)>,
    made: u64,
    calls: Vec<String>,
    /// Answered instead of the next call to a path that ends so.
    instead: Option<(&'static str, Response)>,
    /// Somebody else's comment, written in the moment before the next one is made.
    race: Option<(u64, String, String)>,
    /// Carried out, and then answered with a broken connection's stand-in.
    lose_next_reply: bool,
}

type Shared = Arc<Mutex<Hub>>;

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "message": "Not Found", "status": "404" }))).into_response()
}

async fn gate(State(hub): State<Shared>, headers: HeaderMap, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let lose = {
        let mut hub = hub.lock();
        hub.calls.push(format!("{} {path}", request.method()));
        if headers.get("authorization").is_none_or(|value| value != &format!("Bearer {TOKEN}")) {
            return (StatusCode::UNAUTHORIZED, Json(json!({ "message": "Bad credentials" }))).into_response();
        }
        if hub.instead.as_ref().is_some_and(|(end, _)| path.ends_with(end)) {
            return hub.instead.take().unwrap().1;
        }
        request.method() == "POST" && std::mem::take(&mut hub.lose_next_reply)
    };
    let answer = next.run(request).await;
    if lose { (StatusCode::BAD_GATEWAY, "upstream went away").into_response() } else { answer }
}

async fn issue(State(hub): State<Shared>, Path(number): Path<u64>) -> Response {
    let hub = hub.lock();
    let labels: Vec<Value> =
        hub.labels.iter().map(|name| json!({ "id": 1, "name": name, "color": "ededed" })).collect();
    match number {
        12 => Json(json!({
            "id": 1, "number": 12, "title": "Greeting is wrong", "body": "It says helo.\n", "labels": labels,
            "state": if hub.closed { "closed" } else { "open" }, "user": { "login": "ana" },
            "html_url": "https://evil.example/acme/app/issues/12",
        }))
        .into_response(),
        13 => Json(json!({
            "number": 13, "title": "A pull request", "body": null, "state": "open", "labels": [],
            "pull_request": { "url": "https://api.github.com/repos/acme/app/pulls/13" },
        }))
        .into_response(),
        _ => not_found(),
    }
}

async fn patch_issue(State(hub): State<Shared>, Json(body): Json<Value>) -> Json<Value> {
    hub.lock().closed = body["state"] == "closed";
    Json(json!({ "number": 12 }))
}

#[derive(serde::Deserialize)]
struct Paging {
    per_page: usize,
    page: usize,
}

async fn comments(State(hub): State<Shared>, Query(paging): Query<Paging>) -> Json<Value> {
    let hub = hub.lock();
    let page = hub.comments.iter().skip((paging.page - 1) * paging.per_page).take(paging.per_page);
    let shown = page.map(|(id, login, body)| json!({ "id": id, "user": { "login": login }, "body": body }));
    Json(shown.collect())
}

async fn comment(State(hub): State<Shared>, Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut hub = hub.lock();
    let race = hub.race.take();
    hub.comments.extend(race);
    hub.made += 1;
    let id = 1_000 + hub.made;
    hub.comments.push((id, "giga-bot".to_owned(), body["body"].as_str().unwrap().to_owned()));
    (StatusCode::CREATED, Json(json!({ "id": id })))
}

async fn edit(State(hub): State<Shared>, Path(id): Path<u64>, Json(body): Json<Value>) -> Response {
    let mut hub = hub.lock();
    match hub.comments.iter_mut().find(|(known, ..)| *known == id) {
        Some((_, login, _)) if login != "giga-bot" => StatusCode::FORBIDDEN.into_response(),
        Some((.., text)) => {
            body["body"].as_str().unwrap().clone_into(text);
            Json(json!({ "id": id })).into_response()
        }
        None => not_found(),
    }
}

async fn remove(State(hub): State<Shared>, Path(id): Path<u64>) -> StatusCode {
    hub.lock().comments.retain(|(known, ..)| *known != id);
    StatusCode::NO_CONTENT
}

async fn add_labels(State(hub): State<Shared>, Json(body): Json<Value>) -> Json<Value> {
    let added = body["labels"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    hub.lock().labels.extend(added);
    Json(json!([]))
}

async fn remove_label(State(hub): State<Shared>, Path(name): Path<String>) -> Response {
    let mut hub = hub.lock();
    let before = hub.labels.len();
    hub.labels.retain(|label| *label != name);
    if hub.labels.len() == before { not_found() } else { Json(json!([])).into_response() }
}

async fn hub() -> (String, Shared) {
    let hub = Shared::default();
    let app = Router::new()
        // As for the token of an app.
        .route("/user", get(async || StatusCode::FORBIDDEN))
        .route("/repos/acme/app/issues/{number}", get(issue).patch(patch_issue))
        .route("/repos/acme/app/issues/12/comments", get(comments).post(comment))
        .route("/repos/acme/app/issues/comments/{id}", axum::routing::patch(edit).delete(remove))
        .route("/repos/acme/app/issues/12/labels", post(add_labels))
        .route("/repos/acme/app/issues/12/labels/{name}", delete(remove_label))
        .fallback(async || not_found())
        .layer(axum::middleware::from_fn_with_state(hub.clone(), gate))
        .with_state(hub.clone());
    (listen(app).await, hub)
}

fn bridge(api: &str, token: &str, close_on_ship: bool) -> HttpEffects {
    let tracker = TrackerConfig {
        kind: &TRACKERS[0],
        api: api.to_owned(),
        token: TrackerToken(token.to_owned()),
        close_on_ship,
        repos: Vec::new(),
    };
    with(Config { trackers: vec![tracker], ..Config::default() })
}

fn status_effect(seq: u64, to: &str) -> Effect {
    let new = NewEffect {
        id: format!("tracker:{JOB}:{seq}").parse().unwrap(),
        product: None,
        target: EffectTarget::Tracker { tracker: "github".to_owned(), item: "acme/app#12".to_owned() },
        job: None,
        payload: json!({
            "jobId": JOB, "name": "fix", "to": to, "seq": seq, "at": "2026-11-15T00:00:00.000Z", "cause": "because",
        }),
    };
    Effect::new(new, Timestamp::ZERO)
}

async fn echo(world: &HttpEffects, seq: u64, to: &str) -> EffectOutcome {
    world.deliver(&status_effect(seq, to), None).await
}

fn delivered(outcome: &EffectOutcome) -> bool {
    matches!(outcome, EffectOutcome::Delivered { .. })
}

#[tokio::test]
async fn an_issue_is_looked_up_and_a_pull_request_is_not_one() {
    let (api, _) = hub().await;
    let world = bridge(&api, TOKEN, false);
    assert_eq!(world.trackers(), ["github"]);
    for text in ["Acme/App#12".to_owned(), format!("{api}/acme/app/issues/12")] {
        let item = world.item("github", &text).await.unwrap();
        assert_eq!((item.item.as_str(), item.title.as_str()), ("acme/app#12", "Greeting is wrong"));
        assert_eq!(item.body, "It says helo.\n");
        assert_eq!(item.url, format!("{api}/acme/app/issues/12"), "never an address that the answer names");
    }
    for (item, reason) in
        [("acme/app#13", "pull request"), ("acme/app#99", "does not exist"), ("acme/gone#1", "exist")]
    {
        match world.item("github", item).await {
            Err(EffectsError::NoSuchItem { reason: message, .. }) => {
                assert!(message.contains(reason), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(world.item("github", "acme/../app#1").await, Err(EffectsError::Malformed(_))));
    let unknown = world.item("gitlab", "acme/app#12").await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no tracker `gitlab` here; there is github");
}

#[tokio::test]
async fn one_comment_tells_where_the_job_stands() {
    let (api, hub) = hub().await;
    let world = bridge(&api, TOKEN, true);
    hub.lock().labels = vec!["bug".to_owned(), "giga:odd".to_owned()];
    hub.lock().comments = (0..250).map(|n| (n, "ana".to_owned(), format!("comment {n}"))).collect();
    for (seq, stage) in [(1, "queued"), (2, "assigned"), (3, "building"), (3, "building"), (5, "shipped")] {
        assert!(delivered(&echo(&world, seq, stage).await), "{stage}");
        let hub = hub.lock();
        assert_eq!(hub.comments.len(), 251, "one and no more");
        assert!(hub.comments[250].2.contains(&format!("**{stage}**")), "{:?}", hub.comments[250]);
        assert_eq!(hub.labels, ["bug", "giga:odd", &format!("giga:{stage}")]);
        assert_eq!(hub.closed, stage == "shipped");
    }
    assert!(delivered(&echo(&world, 4, "review").await), "late, and of no use any more");
    let hub = hub.lock();
    assert!(hub.comments[250].2.contains("**shipped**") && hub.labels.contains(&"giga:shipped".to_owned()));
}

#[tokio::test]
async fn a_lost_reply_makes_no_second_comment() {
    let (api, hub) = hub().await;
    let world = bridge(&api, TOKEN, false);
    hub.lock().lose_next_reply = true;
    assert!(matches!(echo(&world, 1, "queued").await, EffectOutcome::Failed { .. }));
    assert_eq!(hub.lock().made, 1, "it was made all the same");
    assert!(delivered(&echo(&world, 1, "queued").await));
    assert_eq!(hub.lock().made, 1);
}

#[tokio::test]
async fn comments_of_others_are_left_alone_and_doubles_of_ours_go() {
    let (api, hub) = hub().await;
    let world = bridge(&api, TOKEN, false);
    // As this coordinator writes them.
    let mut written = Vec::new();
    for seq in [1, 2] {
        assert!(delivered(&echo(&world, seq, "queued").await));
        written.push(hub.lock().comments.pop().unwrap().2);
    }
    let forged = written[1].replace("seq:2", "seq:999");
    let plain = format!("<!-- giga:job:{JOB} seq:999 -->\nhaha");
    let of = |id: u64, who: &str, text: &str| (id, who.to_owned(), text.to_owned());
    hub.lock().comments = vec![
        of(1, "mallory", &forged),
        of(2, "giga-bot", &written[0]),
        of(3, "giga-bot", &written[1]),
        of(4, "giga-bot", "another matter"),
        of(5, "mallory", &plain),
    ];
    assert!(delivered(&echo(&world, 3, "building").await));
    {
        let mut hub = hub.lock();
        assert_eq!(hub.comments.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), [1, 3, 4, 5]);
        assert_eq!((&hub.comments[0].2, &hub.comments[3].2), (&forged, &plain));
        assert!(hub.comments[1].2.contains("**building**"));
        // Whoever copies one of ours says nothing new, and is not in the way.
        let copy = hub.comments[1].2.clone();
        hub.comments.push(of(6, "mallory", &copy));
    }
    assert!(delivered(&echo(&world, 4, "review").await));
    assert!(hub.lock().comments[1].2.contains("**review**"));
    // Another fleet with the same token knows none of them for its own.
    let other = bridge(&api, TOKEN, false).with_marker_key([7; 32]);
    let before = hub.lock().made;
    assert!(delivered(&echo(&other, 5, "shipped").await));
    assert_eq!(hub.lock().made, before + 1);
}

#[tokio::test]
async fn two_that_wrote_at_once_leave_one_comment() {
    let (api, hub) = hub().await;
    let world = bridge(&api, TOKEN, false);
    assert!(delivered(&echo(&world, 1, "queued").await));
    let other = hub.lock().comments.pop().unwrap();
    hub.lock().race = Some(other);
    assert!(delivered(&echo(&world, 1, "queued").await));
    let hub = hub.lock();
    assert_eq!((hub.comments.len(), hub.race.is_none()), (1, true), "{:?}", hub.comments);
}

#[tokio::test]
async fn what_is_forbidden_for_one_item_is_about_that_item() {
    let (api, hub) = hub().await;
    let world = bridge(&api, TOKEN, false);
    let answer =
        (StatusCode::FORBIDDEN, Json(json!({ "message": "Resource not accessible by integration" })));
    hub.lock().instead = Some(("/issues/12", answer.into_response()));
    match echo(&world, 1, "queued").await {
        EffectOutcome::Refused { detail } => assert!(detail.contains("not accessible"), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rate_limits_are_obeyed() {
    let (api, hub) = hub().await;
    let world = bridge(&api, TOKEN, false);
    let body = || Json(json!({ "message": "API rate limit exceeded" }));
    let reset = (NOW + 600).to_string();
    let primary = [("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset)];
    let secondary = [("retry-after", "60")];
    for (answer, expected) in [
        ((StatusCode::FORBIDDEN, primary, body()).into_response(), Some(601)),
        ((StatusCode::TOO_MANY_REQUESTS, secondary, body()).into_response(), Some(60)),
        ((StatusCode::FORBIDDEN, body()).into_response(), Some(60)),
    ] {
        hub.lock().instead = Some(("/issues/12", answer));
        match echo(&world, 1, "queued").await {
            EffectOutcome::Failed { detail, after } => {
                assert_eq!(after, expected.map(Duration::from_secs));
                assert!(detail.contains("rate limit"), "{detail}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(hub.lock().made, 0);
}

#[tokio::test]
async fn what_went_wrong_is_told_without_the_token() {
    let (api, hub) = hub().await;
    let wrong = bridge(&api, "ghp_wrong_token", false);
    let failed = echo(&wrong, 1, "queued").await;
    assert!(
        matches!(&failed, EffectOutcome::Failed { detail, .. } if detail.contains("Bad credentials")),
        "{failed:?}"
    );
    let error = wrong.item("github", "acme/app#12").await.unwrap_err();
    assert!(!format!("{failed:?} {error} {error:?} {wrong:?}").contains("ghp_wrong"));

    let world = bridge(&api, TOKEN, false);
    let moved = (StatusCode::MOVED_PERMANENTLY, [("location", format!("{api}/user"))]).into_response();
    hub.lock().instead = Some(("/issues/12", moved));
    hub.lock().calls.clear();
    assert!(matches!(echo(&world, 1, "queued").await, EffectOutcome::Refused { .. }));
    assert_eq!(hub.lock().calls, ["GET /repos/acme/app/issues/12"], "the token went nowhere else");

    hub.lock().instead = Some(("/issues/12", (StatusCode::OK, "garbage").into_response()));
    assert!(matches!(echo(&world, 1, "queued").await, EffectOutcome::Failed { .. }));
}
