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
    });
    assert_eq!(order, expected);
    claim(&world, "f-1", &token).gives(204).await;
}

#[tokio::test]
async fn only_the_one_that_took_it_settles_it() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let peer = world.factory("f-2", &["alpha"]).await;
    let stranger = world.factory("f-beta", &["beta"]).await;
    let id = world.shipped("alpha", "f-1", "fix").await.id.to_string();
    let merged = |factory: &str, attempt: u32| json!({"factoryId": factory, "attempt": attempt, "outcome": "merged", "commit": "abc123"});
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
        (json!({"factoryId": "f-1", "attempt": 1, "outcome": "merged"}), "commit"),
        (json!({"factoryId": "f-1", "attempt": 1, "outcome": "done"}), "outcome"),
        (json!({"factoryId": "f-1", "outcome": "failed"}), "attempt"),
    ] {
        settle(&world, &id, &token, body).refused(400, "invalid_request", field).await;
    }
    let conflict = json!({"factoryId": "f-1", "attempt": 1, "outcome": "conflict", "detail": "src/lib.rs"});
    let job = settle(&world, &id, &token, conflict).gives(200).await.json();
    assert_eq!(job["merge"]["detail"], "src/lib.rs");
}
