//! Orders to merge over HTTP: for a factory that may serve the job, settled by the one that took it.

use serde_json::{Value, json};

use crate::client::Call;
use crate::world::World;

fn claim(world: &World, factory: &str, token: &str) -> Call {
    world.post("/api/fleet/merges/claim").token(token).json(json!({"factoryId": factory}))
}

fn settle(world: &World, job: &str, token: &str, body: Value) -> Call {
    world.post(&format!("/api/fleet/merges/{job}/settle")).token(token).json(body)
}

#[tokio::test]
async fn an_order_names_what_is_merged_and_goes_to_one_factory() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let beta = world.factory("f-beta", &["beta"]).await;
    let job = world.shipped("alpha", "f-1", "fix").await;
    claim(&world, "f-beta", &beta).gives(204).await;
    claim(&world, "f-1", &beta).refused(403, "forbidden", "cannot speak for f-1").await;
    let order = claim(&world, "f-1", &token).gives(200).await.json();
    let expected = json!({
        "jobId": job.id.to_string(), "leaseEpoch": 1, "name": "fix", "repo": "hello",
        "branch": format!("giga/job/{}/1", job.id), "commit": "c0ffee", "attempt": 1,
        "by": "push", "strategy": "merge", "message": format!("Merge fix ({})", job.id), "reviewers": [], "verify": [],
    });
    assert_eq!(order, json!({"orders": [expected], "leaseMs": 45_000}));
    claim(&world, "f-1", &token).gives(204).await;
}

#[tokio::test]
async fn only_the_one_that_took_it_settles_it() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let peer = world.factory("f-2", &["alpha"]).await;
    let stranger = world.factory("f-beta", &["beta"]).await;
    let id = world.shipped("alpha", "f-1", "fix").await.id.to_string();
    let note = "merged into origin/main as abc123; `git pull` in /code/hello";
    let merged = |factory: &str, attempt: u32| json!({"factoryId": factory, "attempt": attempt, "outcome": "merged", "commit": "abc123", "into": "main", "note": note});
    settle(&world, &id, &token, merged("f-1", 1)).refused(409, "not_yours", "").await;
    claim(&world, "f-1", &token).gives(200).await;
    let before = world.feed().await.len();
    settle(&world, &id, &token, merged("f-1", 2)).refused(409, "not_yours", "").await;
    settle(&world, &id, &peer, merged("f-2", 1)).refused(409, "not_yours", "").await;
    settle(&world, &id, &stranger, merged("f-beta", 1)).refused(404, "not_found", "there is no job").await;
    settle(&world, &id, &peer, merged("f-1", 1)).refused(403, "forbidden", "cannot speak for").await;
    assert_eq!(world.feed().await.len(), before);
    let job = settle(&world, &id, &token, merged("f-1", 1)).gives(200).await.json();
    assert_eq!((&job["stage"], &job["merge"]["commit"]), (&json!("shipped"), &json!("abc123")));
    assert_eq!(job["merge"]["note"], note);
    let explained =
        world.get(&format!("/api/fleet/jobs/{id}/explain")).token(&world.admin).gives(200).await.json();
    assert_eq!(explained["summary"], format!("shipped: {note}"));
    let after = world.feed().await.len();
    settle(&world, &id, &token, merged("f-1", 1)).gives(200).await;
    assert_eq!(world.feed().await.len(), after, "a lost reply costs nothing");
}

#[tokio::test]
async fn what_makes_no_sense_settles_nothing() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let id = world.shipped("demo", "f-1", "fix").await.id.to_string();
    claim(&world, "f-1", &token).gives(200).await;
    for (body, field) in [
        (json!({"factoryId": "f-1", "attempt": 1, "outcome": "merged", "into": "main"}), "commit"),
        (json!({"factoryId": "f-1", "attempt": 1, "outcome": "merged", "commit": "abc123"}), "into"),
        (json!({"factoryId": "f-1", "attempt": 1, "outcome": "done"}), "outcome"),
        (json!({"factoryId": "f-1", "outcome": "outrun"}), "attempt"),
        (
            json!({"factoryId": "f-1", "attempt": 1, "outcome": "merged", "commit": "abc123", "into": "main",
                "note": "x".repeat(giga_domain::limits::NOTE_CHARS + 1)}),
            "note",
        ),
    ] {
        settle(&world, &id, &token, body).refused(400, "invalid_request", field).await;
    }
    let conflict = json!({"factoryId": "f-1", "attempt": 1, "outcome": "conflict", "detail": "src/lib.rs"});
    let job = settle(&world, &id, &token, conflict).gives(200).await.json();
    assert_eq!(job["merge"]["detail"], "src/lib.rs");
}

#[tokio::test]
async fn what_is_announced_is_announced_whole_by_the_one_that_took_it() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let peer = world.factory("f-2", &["alpha"]).await;
    let stranger = world.factory("f-beta", &["beta"]).await;
    let one = world.shipped("alpha", "f-1", "one").await.id.to_string();
    let two = world.shipped("alpha", "f-1", "two").await.id.to_string();
    let orders = claim(&world, "f-1", &token).gives(200).await.json();
    assert_eq!(orders["orders"].as_array().unwrap().len(), 2, "{orders}");
    let candidate = |commit: &str| json!({"commit": commit, "tip": "c0", "into": "main", "head": "c2"});
    let body = |factory: &str, attempt: u32| {
        json!({"factoryId": factory, "merges": [
            {"jobId": one, "attempt": 1, "candidate": candidate("c1")},
            {"jobId": two, "attempt": attempt, "candidate": candidate("c2")},
        ]})
    };
    let push = |token: &str, body: Value| world.post("/api/fleet/merges/push").token(token).json(body);
    let before = world.feed().await.len();
    push(&token, body("f-1", 2)).refused(409, "not_yours", "").await;
    push(&peer, body("f-2", 1)).refused(409, "not_yours", "").await;
    push(&peer, body("f-1", 1)).refused(403, "forbidden", "cannot speak for").await;
    push(&stranger, body("f-beta", 1)).refused(404, "not_found", "there is no job").await;
    push(&token, json!({"factoryId": "f-1", "merges": []})).refused(400, "invalid_request", "merges").await;
    assert_eq!(world.feed().await.len(), before, "none of it was announced");
    push(&token, body("f-1", 1)).gives(204).await;
    let renewed = |token: &str, factory: &str, attempt: u32| {
        let merges = json!([{"jobId": one, "attempt": 1}, {"jobId": two, "attempt": attempt}]);
        world
            .post("/api/fleet/merges/renew")
            .token(token)
            .json(json!({"factoryId": factory, "merges": merges}))
    };
    let held = renewed(&token, "f-1", 7).gives(200).await.json();
    assert_eq!(held, json!({"merges": [{"jobId": one, "attempt": 1}]}), "only what is still its");
    let nothing = renewed(&stranger, "f-beta", 1).gives(200).await.json();
    assert_eq!(nothing, json!({"merges": []}));
}
