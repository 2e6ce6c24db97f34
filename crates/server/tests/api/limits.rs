//! Bodies that are too large, whether or not they say so first, and fields past their limits.

use axum::http::Method;
use giga_domain::limits;
use giga_server::ServerOptions;
use serde_json::{Value, json};

use crate::world::World;

fn manifest_of(bytes: usize) -> String {
    let head = "---\nname: big\n---\n";
    format!("{head}{}", "x".repeat(bytes - head.len()))
}

#[tokio::test]
async fn a_manifest_may_have_one_mebibyte_and_not_a_byte_more() {
    let world = World::start().await;
    let submit = |text: &str| world.post("/api/fleet/jobs").token(&world.admin).markdown(text);
    submit(&manifest_of(limits::MANIFEST_BYTES)).gives(201).await;
    let head = world.feed().await.len();
    submit(&manifest_of(limits::MANIFEST_BYTES + 1)).refused(413, "payload_too_large", "1048576 bytes").await;
    submit(&manifest_of(8 * limits::MANIFEST_BYTES)).refused(413, "payload_too_large", "").await;
    assert_eq!(world.feed().await.len(), head);
}

#[tokio::test]
async fn a_body_of_unannounced_length_is_measured_as_it_comes() {
    let world = World::start().await;
    let text = manifest_of(3 * limits::MANIFEST_BYTES).into_bytes();
    let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
        text.chunks(64 * 1024).map(|c| Ok(c.to_vec())).collect();
    let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
    let call = world.post("/api/fleet/jobs").token(&world.admin).body("text/markdown", body);
    call.refused(413, "payload_too_large", "").await;
    world.post("/api/fleet/jobs").token(&world.admin).markdown("---\nname: small\n---\n").gives(201).await;
}

#[tokio::test]
async fn other_bodies_have_their_own_limit() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let body = json!({"factoryId": "f-1", "requestId": "r".repeat(limits::REQUEST_BYTES)});
    world.post("/api/fleet/claim").token(&token).json(body).refused(413, "payload_too_large", "262144").await;
}

#[tokio::test]
async fn whoever_says_nothing_or_half_a_head_is_let_go() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let head_timeout = std::time::Duration::from_millis(30);
    let world = World::start_with(ServerOptions { head_timeout, ..ServerOptions::default() }).await;
    let address = world.url.strip_prefix("http://").unwrap();
    for said in ["", "GET /healthz HTTP/1.1\r\nhost: x\r\nslow: "] {
        let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
        connection.write_all(said.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_given_up() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let body_timeout = std::time::Duration::from_millis(30);
    let world = World::start_with(ServerOptions { body_timeout, ..ServerOptions::default() }).await;
    let address = world.url.strip_prefix("http://").unwrap();
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /api/fleet/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: text/markdown\r\n\
         content-length: 1000\r\n\r\n---\nname: a\n",
        world.admin
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("request_timeout"), "{answer}");
}

/// Each is one field past its limit in an otherwise good request.
#[tokio::test]
async fn fields_past_their_limits_are_named() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let job_path = format!("/api/fleet/jobs/{}", job.id);
    let epoch = job.epoch.0;
    let long = |n: usize| "x".repeat(n);
    let many = |n: usize, word: &str| -> Vec<String> { (0..n).map(|i| format!("{word}{i}")).collect() };
    let beat = |change: Value| {
        let mut body = json!({"factoryId": "f-1", "capabilities": [], "seatLimit": 1});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        ("/api/fleet/factories/heartbeat".to_owned(), body)
    };
    let fail = |detail: String| {
        let body = json!({"jobId": job.id.to_string(), "leaseEpoch": epoch, "reason": "crash", "retryable": true, "detail": detail});
        ("/api/fleet/fail".to_owned(), body)
    };
    let report =
        |report: Value| (format!("{job_path}/report"), json!({"leaseEpoch": epoch, "report": report}));
    let release = |note: String| {
        (format!("{job_path}/lease/release"), json!({"leaseEpoch": epoch, "checkpoint": {"note": note}}))
    };
    let spend =
        |spend: Value| (format!("{job_path}/lease/renew"), json!({"leaseEpoch": epoch, "spend": spend}));
    let before = (world.job(job.id).await, world.feed().await.len());
    for ((path, body), field) in [
        (beat(json!({"seatLimit": 0})), "seatLimit"),
        (beat(json!({"seatLimit": limits::SEATS + 1})), "seatLimit"),
        (beat(json!({"load": -1.0})), "load"),
        (beat(json!({"health": "great"})), "health"),
        (beat(json!({"capabilities": many(limits::CAPABILITIES + 1, "cap")})), "capabilities"),
        (beat(json!({"capabilities": ["os:linux", "not good"]})), "capabilities[1]"),
        (beat(json!({"repos": many(limits::FACTORY_REPOS + 1, "repo")})), "repos"),
        (beat(json!({"repos": [{"name": "a", "lastUsedAt": "yesterday"}]})), "repos[0].lastUsedAt"),
        (
            beat(json!({"repos": [{"name": "a", "mergesInto": long(limits::NOTE_CHARS + 1)}]})),
            "repos[0].mergesInto",
        ),
        (beat(json!({"costUsdPerHour": -1})), "costUsdPerHour"),
        (fail(long(limits::REASON_CHARS + 1)), "detail"),
        (fail("a\u{0}b".to_owned()), "detail"),
        (report(json!({"summary": long(limits::REASON_CHARS + 1)})), "report.summary"),
        (report(json!({"costUsd": -0.5})), "report.costUsd"),
        (report(json!({"tokens": u64::MAX})), "report.tokens"),
        (release(long(limits::CHECKPOINT_BYTES + 1)), "checkpoint"),
        (
            report(
                json!({"checks": vec![json!({"command": "x", "passed": true}); limits::VERIFY_COMMANDS + 1]}),
            ),
            "report.checks",
        ),
        (spend(json!({"usd": -0.5})), "spend.usd"),
        (spend(json!({"tokens": u64::MAX})), "spend.tokens"),
        (spend(json!({"cents": 1})), "spend.cents"),
    ] {
        let reply = world.post(&path).token(&token).json(body).refused(400, "invalid_request", field).await;
        assert_eq!(reply.json()["errors"][0]["field"], field);
    }
    let reason = json!({"reason": long(limits::REASON_CHARS + 1)});
    let act = world.post(&format!("{job_path}/actions/cancel")).token(&world.admin).json(reason);
    act.refused(400, "invalid_request", "reason: it may have at most 4000 characters").await;
    assert_eq!((world.job(job.id).await, world.feed().await.len()), before);
}

#[tokio::test]
async fn a_holder_is_told_what_to_use_for_other_stages() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    for (stage, instead) in [
        ("failed", "POST /api/fleet/fail"),
        ("dead_letter", "POST /api/fleet/fail"),
        ("queued", "/lease/release"),
        ("cancelled", "/actions/cancel"),
        ("assigned", "/api/fleet/claim"),
        ("blocked", "deps"),
        ("buildin", "did you mean `building`?"),
    ] {
        let patch =
            world.call(Method::PATCH, &path).token(&token).json(json!({"leaseEpoch": 1, "stage": stage}));
        patch.refused(400, "invalid_request", instead).await;
    }
    let empty = world.call(Method::PATCH, &path).token(&token).json(json!({"leaseEpoch": 1}));
    empty.refused(400, "invalid_request", "changes nothing").await;
    for reason in ["lease_expired", "rejected", "crashed"] {
        let body = json!({"jobId": job.id.to_string(), "leaseEpoch": 1, "reason": reason, "retryable": true});
        let reply = world.post("/api/fleet/fail").token(&token).json(body);
        reply.refused(400, "invalid_request", "verify_failed").await;
    }
    assert_eq!(world.job(job.id).await, job);
}
