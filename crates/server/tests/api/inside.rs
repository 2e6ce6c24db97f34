//! Job tokens: what runs inside a job may look at that job and leave files, as long as its epoch holds the job.

use axum::http::Method;
use giga_domain::{HolderAction, Job};
use serde_json::json;

use crate::world::World;

/// As the factory gets it with its claim.
async fn claimed(world: &World, factory: &str, token: &str, name: &str) -> (Job, String) {
    let job = world.submit("alpha", &format!("name: {name}")).await;
    let claim = json!({"factoryId": factory, "requestId": name});
    let answer = world.post("/api/fleet/claim").token(token).json(claim).gives(200).await.json();
    let inside = answer["jobToken"].as_str().unwrap().to_owned();
    assert!(inside.starts_with("gigaj_"), "{inside}");
    (world.job(job.id).await, inside)
}

#[tokio::test]
async fn one_reads_its_job_and_leaves_files() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let (job, inside) = claimed(&world, "f-1", &token, "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let seen = world.get(&path).token(&inside).gives(200).await.json();
    assert_eq!(seen["id"], job.id.to_string());
    let put = world.post(&format!("{path}/artifacts?leaseEpoch=1&name=a.txt")).token(&inside);
    let stored = put.body("text/plain", "from inside").gives(201).await.json();
    let file = format!("/api/fleet/artifacts/{}", stored["id"].as_str().unwrap());
    assert_eq!(world.get(&file).token(&inside).gives(200).await.text, "from inside");
    let list = world.get(&format!("{path}/artifacts")).token(&inside).gives(200).await.json();
    assert_eq!(list["artifacts"][0]["name"], "a.txt");

    let refused = |method: Method, path: String| world.call(method, &path).token(&inside).json(json!({}));
    for (method, path) in [
        (Method::DELETE, file),
        (Method::POST, format!("{path}/lease/renew")),
        (Method::POST, format!("{path}/actions/ship")),
        (Method::POST, "/api/fleet/claim".to_owned()),
        (Method::POST, "/api/fleet/jobs".to_owned()),
        (Method::GET, "/api/fleet/jobs".to_owned()),
        (Method::GET, "/api/fleet/tokens".to_owned()),
    ] {
        refused(method, path).refused(403, "forbidden", "this is the token of job").await;
    }
}

#[tokio::test]
async fn what_the_factory_says_of_the_run_is_not_written_from_inside() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let (job, inside) = claimed(&world, "f-1", &token, "a").await;
    let put = |token: &str, name: &str| {
        let path = format!("/api/fleet/jobs/{}/artifacts?leaseEpoch=1&name={name}", job.id);
        world.post(&path).token(token).body("text/x-diff", "+harmless")
    };
    put(&inside, "changes.diff")
        .refused(403, "forbidden", "changes.diff is written by the factory alone")
        .await;
    put(&token, "changes.diff").gives(201).await;
    put(&inside, "changes.diff").refused(403, "forbidden", "choose another name").await;
    put(&inside, "other.diff").gives(201).await;
    let events = world.feed().await;
    let wrote = |name: &str| {
        let found = events.iter().find(|event| event.data.get("name").is_some_and(|n| n == name));
        found.unwrap().actor.to_string()
    };
    assert_eq!(wrote("changes.diff"), "factory f-1");
    assert_eq!(wrote("other.diff"), format!("token job-{}-1", job.id));
}

#[tokio::test]
async fn another_job_of_the_same_factory_does_not_exist() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let (_, inside) = claimed(&world, "f-1", &token, "a").await;
    let (other, _) = claimed(&world, "f-1", &token, "b").await;
    let path = format!("/api/fleet/jobs/{}", other.id);
    world.get(&path).token(&inside).refused(404, "not_found", "there is no job").await;
    world.get(&format!("{path}/artifacts")).token(&inside).refused(404, "not_found", "there is no job").await;
    let files = format!("{path}/artifacts?leaseEpoch=1&name=a.txt");
    let put = |token: &str| world.post(&files).token(token).body("text/plain", "x");
    put(&inside).refused(404, "not_found", "there is no job").await;
    let stored = put(&token).gives(201).await.json();
    let file = format!("/api/fleet/artifacts/{}", stored["id"].as_str().unwrap());
    world.get(&file).token(&inside).refused(404, "not_found", "there is no artifact").await;
}

#[tokio::test]
async fn one_ends_with_its_lease() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let (job, first) = claimed(&world, "f-1", &token, "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let get = |token: &str| world.get(&path).token(token);
    world.hold(&job, vec![HolderAction::Start, HolderAction::Release { checkpoint: None }]).await;
    get(&first).refused(401, "unauthenticated", "no longer holds the job").await;
    let claim = json!({"factoryId": "f-1", "requestId": "again"});
    let again = world.post("/api/fleet/claim").token(&token).json(claim).gives(200).await.json();
    let second = again["jobToken"].as_str().unwrap();
    assert_eq!(again["job"]["id"], job.id.to_string());
    get(&first).refused(401, "unauthenticated", "no longer holds the job").await;
    get(second).gives(200).await;
    let put = world.post(&format!("{path}/artifacts?leaseEpoch=1&name=a.txt")).token(second);
    put.body("text/plain", "x").refused(409, "fenced", "").await;
}

#[tokio::test]
async fn a_forged_one_opens_nothing() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let (job, inside) = claimed(&world, "f-1", &token, "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let forged = giga_domain::JobToken::new(&[7; 32], job.id, job.epoch);
    let forged = forged.secret().reveal().to_owned();
    world.get(&path).token(&forged).refused(401, "unauthenticated", "unknown").await;
    let cut = &inside[..inside.len() - 1];
    world.get(&path).token(cut).refused(401, "unauthenticated", "checksum").await;
}
