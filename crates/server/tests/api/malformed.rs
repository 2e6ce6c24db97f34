//! A corpus of requests that are wrong in one way each: refused whole, with the name of what is wrong.

use axum::http::Method;
use serde_json::{Value, json};

use crate::client::Call;
use crate::world::World;

const JOB: &str = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC";

#[tokio::test]
async fn paths_and_queries() {
    let world = World::start().await;
    for (path, needle) in [
        ("/api/fleet/jobs/nonsense", "id: job id `nonsense` is malformed"),
        ("/api/fleet/jobs/01j9zk3v5n8q4w2e6r7t1y0abc", "id: job id"),
        ("/api/fleet/jobs/%FF%FE", "percent-encoded UTF-8"),
        ("/api/fleet/jobs/..%2f..%2fetc", "id: job id"),
        ("/api/fleet/jobs/nonsense/events", "id: job id"),
        ("/api/fleet/jobs/nonsense/events/stream", "id: job id"),
        ("/api/fleet/jobs/nonsense/explain", "id: job id"),
        ("/api/fleet/jobs/nonsense/runs", "id: job id"),
        ("/api/fleet/factories/-rf", "id: factory id"),
        ("/api/fleet/jobs?stage=quued", "stage: `quued` is none of queued, blocked"),
        ("/api/fleet/jobs?stage=", "stage: `` is none of queued, blocked"),
        ("/api/fleet/jobs?stage=queued,,failed", "stage: `` is none of queued, blocked"),
        ("/api/fleet/jobs?priority=urgent", "priority: `urgent` is none of critical, high, normal, low"),
        ("/api/fleet/jobs?factory=a%20b", "factory: factory id"),
        ("/api/fleet/jobs?parent=x", "parent: job id"),
        ("/api/fleet/jobs?id=", "id: job id"),
        ("/api/fleet/jobs?id=01J9ZK3V5N8Q4W2E6R7T1Y0ABC,x", "id: job id `x` is malformed"),
        ("/api/fleet/jobs?limit=0", "limit: it must be from 1 to 500"),
        ("/api/fleet/jobs?limit=501", "limit: it must be from 1 to 500"),
        ("/api/fleet/jobs?limit=-1", "limit: `-1` is not a whole number"),
        ("/api/fleet/jobs?limit=99999999999999999999", "limit: "),
        ("/api/fleet/jobs?limit=", "limit: "),
        ("/api/fleet/jobs?cursor=abc", "cursor: it is malformed"),
        ("/api/fleet/jobs?cursor=j1-abc", "cursor: it is malformed"),
        ("/api/fleet/jobs?cursor=", "cursor: it is malformed"),
        ("/api/fleet/jobs?stge=queued", "stge: unknown query parameter; did you mean `stage`?"),
        ("/api/fleet/jobs?limit=1&limit=2", "limit: the parameter is given twice"),
        ("/api/fleet/jobs?name=a%00b", "name: the parameter may not have control characters"),
        ("/api/fleet/events?after=x", "after: `x` is not a whole number"),
        ("/api/fleet/events?after=+1", "after: "),
        ("/api/fleet/events/stream?after=-3", "after: "),
        ("/api/fleet/events?since=3", "since: unknown query parameter"),
        ("/api/fleet/queue-state?wait=soon", "wait: `soon` is not a duration"),
        ("/api/fleet/queue-state?wait=30", "wait: `30` is not a duration"),
        ("/api/fleet/queue-state?wait=61s", "wait: it may be at most 60s"),
        ("/api/fleet/flags?x=1", "this call takes none"),
    ] {
        world.get(path).token(&world.admin).refused(400, "invalid_request", needle).await;
    }
    let many = format!("/api/fleet/jobs?id={}", vec![JOB; 101].join(","));
    let refused = "id: it may list at most 100; it lists 101";
    world.get(&many).token(&world.admin).refused(400, "invalid_request", refused).await;
    world.get(&format!("/api/fleet/jobs/{JOB}")).token(&world.admin).refused(404, "not_found", JOB).await;
}

#[tokio::test]
async fn headers() {
    let world = World::start().await;
    let get = |path: &str| world.get(path).token(&world.admin);
    for (path, name, value) in [
        ("/api/fleet/jobs", "x-product-id", "not good"),
        ("/api/fleet/jobs", "x-product-id", ""),
        ("/api/fleet/jobs", "x-product-id", "../etc"),
        ("/api/fleet/events/stream", "last-event-id", "abc"),
        ("/api/fleet/events/stream", "last-event-id", "-1"),
        ("/api/fleet/queue-state", "if-none-match", "unquoted"),
    ] {
        get(path).header(name, value).refused(400, "invalid_request", name).await;
    }
    let twice = get("/api/fleet/jobs").header("x-product-id", "a").header("x-product-id", "b");
    twice.refused(400, "invalid_request", "given twice").await;
    let key = world.post("/api/fleet/jobs").token(&world.admin).header("idempotency-key", &"k".repeat(201));
    key.markdown("---\nname: a\n---\n").refused(400, "invalid_request", "idempotency-key").await;
}

#[tokio::test]
async fn credentials() {
    let world = World::start().await;
    let get = || world.get("/api/fleet/jobs");
    let missing = get().refused(401, "unauthenticated", "needs a token").await;
    assert_eq!(missing.header("www-authenticate"), "Bearer realm=\"gigafactory\"");
    for value in ["Bearer", "Basic YTpi", "giga_user_x", &world.admin] {
        get().header("authorization", value).refused(401, "unauthenticated", "malformed").await;
    }
    let cut = &world.admin[..world.admin.len() - 1];
    for text in ["x", "giga_user_", cut, &format!("{}x", world.admin), "giga_user_é"] {
        get().token(text).refused(401, "unauthenticated", "").await;
    }
    get().token(cut).refused(401, "unauthenticated", "cut off when pasted").await;
    let unknown = giga_domain::token::TokenSecret::from_random("user", [9; 32]);
    get().token(unknown.reveal()).refused(401, "unauthenticated", "unknown, revoked or expired").await;
    get().token(&world.admin).token(&world.admin).refused(401, "unauthenticated", "exactly one").await;
    get().header("authorization", &format!("bearer {}", world.admin)).gives(200).await;
}

#[tokio::test]
async fn manifests() {
    let world = World::start().await;
    let submit = || world.post("/api/fleet/jobs").token(&world.admin);
    let reply = submit().markdown("---\nname: a\npriorty: high\nkind: robot\n---\n").send().await;
    assert_eq!((reply.status, &reply.json()["code"]), (400, &json!("invalid_manifest")));
    let errors = reply.json()["errors"].clone();
    assert_eq!((&errors[0]["field"], &errors[0]["line"]), (&json!("priorty"), &json!(3)));
    assert_eq!(errors[1]["field"], "kind", "every problem is told");
    for text in ["", "no front matter", "---\nname: a\n", "---\n- a\n---\n", "---\nname: [\n---\n"] {
        submit().markdown(text).refused(400, "invalid_manifest", "").await;
    }
    submit().body("text/markdown", vec![0xff, 0xfe]).refused(400, "invalid_manifest", "UTF-8").await;
    let dep = format!("---\nname: a\ndeps: [{JOB}]\n---\n");
    submit().markdown(&dep).refused(400, "invalid_manifest", JOB).await;
    submit()
        .markdown("---\nname: a\ndeps: [other-job]\n---\n")
        .refused(400, "invalid_request", "deps[0]")
        .await;
    for (body, needle) in [
        (json!({"manifest": {"nam": "a"}}), "did you mean"),
        (json!({"manifest": 7}), "must be a JSON object"),
    ] {
        submit().json(body).refused(400, "invalid_manifest", needle).await;
    }
    submit().json(json!({"manifst": {}})).refused(400, "invalid_request", "did you mean `manifest`?").await;
    submit()
        .json(json!({"manifest": {"name": "a"}, "bodyMd": 7}))
        .refused(400, "invalid_request", "bodyMd")
        .await;
    for (content_type, body) in [
        ("application/yaml", "name: a"),
        ("text/plain", "---\nname: a\n---\n"),
        ("text/markdown; charset=latin1", "---\nname: a\n---\n"),
        ("", "x"),
    ] {
        submit().body(content_type, body).refused(415, "unsupported_media_type", "").await;
    }
    submit().body("Text/Markdown; charset=UTF-8", "---\nname: a\n---\n").gives(201).await;
    assert_eq!(
        world
            .coordinator
            .reads()
            .list_jobs(&giga_ports::store::JobFilter::default(), None, 9)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn bodies() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let job_path = format!("/api/fleet/jobs/{}", job.id);
    let before = world.feed().await;
    let holder: [(&str, Value, &str); 9] = [
        ("/api/fleet/claim", json!({"factoryId": "f-1"}), "requestId: it is missing"),
        ("/api/fleet/claim", json!({"factoryId": "f-1", "requestId": "a b"}), "requestId: request id"),
        ("/api/fleet/claim", json!([]), "body: it must be an object"),
        ("/api/fleet/claim", json!(null), "body: "),
        (
            "/api/fleet/accept",
            json!({"jobId": "x", "factoryId": "f-1", "dispatchSeq": 1, "requestId": "r"}),
            "jobId: job id",
        ),
        (
            "/api/fleet/accept",
            json!({"jobId": JOB, "factoryId": "f-1", "dispatchSeq": 1.5, "requestId": "r"}),
            "dispatchSeq: it must be a whole number",
        ),
        (
            "/api/fleet/fail",
            json!({"jobId": JOB, "leaseEpoch": 1, "reason": "crash"}),
            "retryable: it is missing",
        ),
        (
            "/api/fleet/factories/heartbeat",
            json!({"factoryId": "f-1", "capabilities": "all", "seatLimit": 1}),
            "capabilities: it must be a list",
        ),
        (
            "/api/fleet/factories/heartbeat",
            json!({"factoryId": "f-1", "capabilities": [], "seatLimit": 4_294_967_296_u64}),
            "seatLimit: ",
        ),
    ];
    for (path, body, needle) in holder {
        world.post(path).token(&token).json(body).refused(400, "invalid_request", needle).await;
    }
    let patch = |body| world.call(Method::PATCH, &job_path).token(&token).json(body);
    patch(json!({"stage": "building"})).refused(400, "invalid_request", "leaseEpoch: it is missing").await;
    patch(json!({"leaseEpoch": 1, "checkpoint": {"factoryId": "-"}}))
        .refused(400, "invalid_request", "checkpoint.factoryId")
        .await;

    let admin: [(Method, &str, Value, &str); 9] = [
        (Method::POST, "/api/fleet/factories/enroll", json!({"factoryId": "../x"}), "factoryId: factory id"),
        (
            Method::POST,
            "/api/fleet/factories/enroll",
            json!({"factoryId": "f", "products": ["a b"]}),
            "products[0]: product id",
        ),
        (
            Method::POST,
            "/api/fleet/factories/prune",
            json!({"idle": "long"}),
            "idle: `long` is not a duration",
        ),
        (Method::POST, "/api/fleet/factories/prune", json!({"idle": "0s"}), "idle: it must be at least 1s"),
        (Method::POST, "/api/fleet/factories/prune", json!({}), "idle: it is missing"),
        (Method::POST, "/api/fleet/tokens", json!({"role": "root"}), "role: `root` is none of worker"),
        (Method::POST, "/api/fleet/tokens", json!({"role": "viewer", "label": "a\nb"}), "label: "),
        (
            Method::PUT,
            "/api/fleet/flags/lease_ms",
            json!({"value": "soon"}),
            "value: flag `lease_ms` cannot be",
        ),
        (Method::PUT, "/api/fleet/flags/lease_ms", json!({"values": 1}), "values: unknown field"),
    ];
    for (method, path, body, needle) in admin {
        world.call(method, path).token(&world.admin).json(body).refused(400, "invalid_request", needle).await;
    }
    let flag =
        world.call(Method::PUT, "/api/fleet/flags/stict").token(&world.admin).json(json!({"value": true}));
    flag.refused(404, "not_found", "did you mean `strict`?").await;
    let act = world.post(&format!("{job_path}/actions/shipp")).token(&world.admin);
    act.refused(400, "invalid_request", "did you mean `ship`?").await;

    let raw = |content_type: &str, body: &'static str| -> Call {
        world.post("/api/fleet/claim").token(&token).body(content_type, body)
    };
    for body in ["", "{", "{\"factoryId\":}", "nonsense", "{}{}", "\u{feff}{}"] {
        raw("application/json", body).refused(400, "invalid_request", "").await;
    }
    raw("text/plain", "{}").refused(415, "unsupported_media_type", "application/json").await;
    world.post("/api/fleet/claim").token(&token).refused(415, "unsupported_media_type", "missing").await;
    assert_eq!(world.feed().await, before, "nothing of all this changed anything");
}
