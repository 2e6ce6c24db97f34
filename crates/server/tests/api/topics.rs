//! Topics over REST.

use giga_domain::token::Role;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_job_is_enqueued_listed_and_shown_with_its_payload_as_it_came() {
    let world = World::start().await;
    let token = &world.token(Role::Submitter, &["alpha"]).await;
    let raw = r#"{"payload": {"id": 12345678901234567890123, "x":1.0}, "priority": "high",
                  "retry": {"max": 2, "backoff": "10s"}, "idempotencyKey": "k"}"#;
    let enqueue = || {
        world
            .post("/api/fleet/topics/mail/jobs")
            .token(token)
            .body("application/json", raw.as_bytes().to_vec())
    };
    let made = enqueue().gives(201).await.json();
    let id = made["jobs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(made["jobs"][0]["existing"], false);
    assert_eq!(enqueue().gives(200).await.json()["jobs"][0], json!({"id": id, "existing": true}));
    let path = format!("/api/fleet/topics/mail/jobs/{id}");
    let shown = world.get(&path).token(token).gives(200).await;
    assert!(shown.text.contains(r#""payload":{"id": 12345678901234567890123, "x":1.0}"#), "{}", shown.text);
    let job = shown.json();
    assert_eq!(
        (&job["state"], &job["priority"], &job["retryMax"]),
        (&json!("ready"), &json!("high"), &json!(2))
    );
    assert_eq!((&job["retryBackoffMs"], &job["productId"]), (&json!(10_000), &json!("alpha")));
    let listed = world.get("/api/fleet/topics/mail/jobs?state=ready").token(token).gives(200).await.json();
    assert_eq!(listed["jobs"][0]["id"], json!(id));
    let dead = world.get("/api/fleet/topics/mail/jobs").token(token).gives(200).await.json();
    assert_eq!(dead["jobs"], json!([]), "the dead, where nothing is said");
    let other = format!("/api/fleet/topics/sms/jobs/{id}");
    world.get(&other).token(token).refused(404, "not_found", &id).await;
    let stranger = &world.token(Role::Admin, &["beta"]).await;
    world.get(&path).token(stranger).refused(404, "not_found", &id).await;
    let conflict = json!({"payload": 1, "idempotencyKey": "k"});
    let conflict = world.post("/api/fleet/topics/mail/jobs").token(token).json(conflict);
    conflict.refused(409, "idempotency_conflict", &id).await;
}

#[tokio::test]
async fn several_are_stored_together_and_listed_page_by_page() {
    let world = World::start().await;
    let token = &world.admin;
    let jobs: Vec<_> = (0..5).map(|n| json!({"payload": n, "runAt": "2027-01-01T00:00:00Z"})).collect();
    let enqueue = world.post("/api/fleet/topics/mail/jobs").token(token).json(json!({"jobs": jobs}));
    assert_eq!(enqueue.gives(201).await.json()["jobs"].as_array().unwrap().len(), 5);
    let mut path = "/api/fleet/topics/mail/jobs?state=scheduled&limit=2".to_owned();
    let mut payloads = Vec::new();
    loop {
        let page = world.get(&path).token(token).gives(200).await.json();
        for job in page["jobs"].as_array().unwrap() {
            assert_eq!(job["dueAt"], "2027-01-01T00:00:00.000Z");
            payloads.push(job["payload"].as_u64().unwrap());
        }
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/fleet/topics/mail/jobs?state=scheduled&limit=2&cursor={cursor}");
    }
    assert_eq!(payloads, [4, 3, 2, 1, 0], "newest first, each once");
}

#[tokio::test]
async fn gates_close_and_open_and_say_by_whom() {
    let world = World::start().await;
    let operator = &world.token(Role::Operator, &["alpha"]).await;
    let list = async || world.get("/api/fleet/topics").token(operator).gives(200).await.json();
    let paused = world.post("/api/fleet/topics/mail/pause").token(operator).gives(200).await.json();
    assert!(paused["paused"]["by"].as_str().unwrap().starts_with("token tok-"), "{paused}");
    assert_eq!(list().await["topics"][0]["paused"], paused["paused"]);
    let resumed = world.post("/api/fleet/topics/mail/resume").token(operator).gives(200).await.json();
    assert_eq!((&resumed["name"], resumed.get("paused")), (&json!("mail"), None));
    world.post("/api/fleet/topic-gate/close").token(operator).refused(403, "forbidden", "whole fleet").await;
    world.post("/api/fleet/topic-gate/close").token(&world.admin).gives(200).await;
    assert!(list().await["paused"]["since"].is_string(), "everybody is told");
    world.post("/api/fleet/topic-gate/open").token(&world.admin).gives(200).await;
    assert_eq!(list().await.get("paused"), None);
}

#[tokio::test]
async fn the_dead_are_listed_and_get_another_chance() {
    let world = World::start().await;
    let id = world.dead_topic_job("alpha", "mail").await.to_string();
    let operator = &world.token(Role::Operator, &["alpha"]).await;
    let dead = world.get("/api/fleet/topics/mail/jobs").token(operator).gives(200).await.json();
    let first = &dead["jobs"][0];
    assert_eq!((&first["id"], &first["state"]), (&json!(id), &json!("dead")));
    assert_eq!((&first["lastError"], &first["attempts"]), (&json!("no such address"), &json!(1)));
    let retry = || world.post("/api/fleet/topics/mail/retry").token(operator);
    assert_eq!(retry().gives(200).await.json()["retried"], json!([id]));
    assert_eq!(retry().json(json!({"jobs": [id]})).gives(200).await.json()["retried"], json!([]));
    let counts = world.get("/api/fleet/topics").token(operator).gives(200).await.json();
    assert_eq!(
        counts["topics"][0]["byState"],
        json!({"scheduled": 0, "ready": 1, "running": 0, "done": 0, "dead": 0})
    );
    let metrics = world.get("/metrics").token(&world.admin).gives(200).await.text;
    assert!(
        metrics.contains(r#"giga_topic_depth{product="alpha",topic="mail",state="ready"} 1"#),
        "{metrics}"
    );
    assert!(metrics.contains(r#"giga_topic_jobs_dead_total{product="alpha",topic="mail"} 1"#), "{metrics}");
}

#[tokio::test]
async fn bad_input_names_the_field_and_stores_nothing() {
    let world = World::start().await;
    let enqueue = |body| world.post("/api/fleet/topics/mail/jobs").token(&world.admin).json(body);
    let large = "x".repeat(262_143);
    for (body, text) in [
        (json!({}), "payload: it is missing"),
        (json!({"payload": 1, "prio": "low"}), "prio"),
        (
            json!({"payload": 1, "priority": "urgent"}),
            "priority: `urgent` is none of critical, high, normal, low",
        ),
        (json!({"payload": 1, "runAt": "tomorrow"}), "runAt: time `tomorrow` is malformed"),
        (json!({"payload": 1, "idempotencyKey": ""}), "idempotencyKey: it must be 1 to 200"),
        (json!({"payload": 1, "retry": {"max": 1_001}}), "retry.max: it must be from 0 to 1000"),
        (json!({"payload": 1, "retry": {"backoff": "soon"}}), "retry.backoff: `soon` is not a duration"),
        (json!({"payload": large}), "payload: it may have at most 262144 bytes, not 262145"),
        (json!({"jobs": []}), "jobs: send 1 to 1000 jobs"),
        (json!({"jobs": [{"payload": 1}], "payload": 2}), "payload: with `jobs` it belongs to each"),
        (json!({"jobs": [{"payload": 1}, {"payload": 1, "runAt": "x"}]}), "jobs[1].runAt"),
    ] {
        enqueue(body).refused(400, "invalid_request", text).await;
    }
    let get = |path: &str| world.get(path).token(&world.admin);
    get("/api/fleet/topics/-x/jobs").refused(400, "invalid_request", "name: topic `-x` is malformed").await;
    get("/api/fleet/topics/mail/jobs?state=gone")
        .refused(400, "invalid_request", "state: `gone` is none of")
        .await;
    get("/api/fleet/topics/mail/jobs?cursor=x").refused(400, "invalid_request", "cursor").await;
    let retry = world.post("/api/fleet/topics/mail/retry").token(&world.admin).json(json!({"jobs": ["x"]}));
    retry.refused(400, "invalid_request", "jobs[0]: job id `x` is malformed").await;
    let retry = world.post("/api/fleet/topics/mail/retry").token(&world.admin).json(json!({"jobs": []}));
    retry.refused(400, "invalid_request", "jobs: it is empty: name jobs, or leave it out").await;
    assert_eq!(get("/api/fleet/topics").gives(200).await.json()["topics"], json!([]));
}
