//! Artifacts over HTTP: bytes in, the same bytes out, never as something that a browser would show in place.

use axum::http::Method;
use giga_api::client::{Client, ClientError, ClientOptions};
use giga_domain::token::Role;
use giga_domain::{Job, limits};
use serde_json::json;

use crate::client::Call;
use crate::world::World;

fn put(world: &World, job: &Job, token: &str, name: &str) -> Call {
    let path = format!("/api/fleet/jobs/{}/artifacts?leaseEpoch={}&name={name}", job.id, job.epoch.0);
    world.post(&path).token(token)
}

#[tokio::test]
async fn a_file_comes_back_as_an_attachment() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "a").await;
    let page = "<script>alert(1)</script>";
    let stored = put(&world, &job, &token, "coverage%2Findex.html")
        .body("text/html; charset=utf-8", page)
        .gives(201)
        .await
        .json();
    let id = stored["id"].as_str().unwrap().to_owned();
    let expected = json!({
        "id": id, "jobId": job.id.to_string(), "productId": "alpha", "leaseEpoch": 1,
        "name": "coverage/index.html", "mediaType": "text/html; charset=utf-8", "size": page.len(),
        "createdAt": stored["createdAt"],
    });
    assert_eq!(stored, expected);
    let list = world.get(&format!("/api/fleet/jobs/{}/artifacts", job.id)).token(&world.admin);
    assert_eq!(list.gives(200).await.json(), json!({"artifacts": [expected]}));
    let path = format!("/api/fleet/artifacts/{id}");
    let got = world.get(&path).token(&world.admin).gives(200).await;
    assert_eq!(got.text, page);
    assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
    assert!(got.header("content-disposition").starts_with("attachment; filename=\"index.html\""));
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert!(got.header("content-security-policy").contains("sandbox"));

    let viewer = world.token(Role::Viewer, &["alpha"]).await;
    let delete = |token: &str| world.call(Method::DELETE, &path).token(token);
    delete(&viewer).refused(403, "forbidden", "operator").await;
    delete(&world.admin).gives(204).await;
    world.get(&path).token(&world.admin).refused(404, "not_found", &id).await;
    delete(&world.admin).refused(404, "not_found", &id).await;
}

#[tokio::test]
async fn another_products_file_does_not_exist() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "a").await;
    let stored = put(&world, &job, &token, "a.txt").body("text/plain", "secret").gives(201).await.json();
    let path = format!("/api/fleet/artifacts/{}", stored["id"].as_str().unwrap());
    let other = world.token(Role::Operator, &["beta"]).await;
    world.get(&path).token(&other).refused(404, "not_found", "there is no artifact").await;
    world.call(Method::DELETE, &path).token(&other).refused(404, "not_found", "there is no artifact").await;
    world.get(&path).token(&world.admin).gives(200).await;
}

#[tokio::test]
async fn a_name_that_is_used_again_gets_the_new_bytes() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let mut ids = Vec::new();
    for text in ["first", "second"] {
        let stored = put(&world, &job, &token, "a.txt").body("text/plain", text).gives(201).await.json();
        ids.push(stored["id"].as_str().unwrap().to_owned());
    }
    let get = |id: &str| world.get(&format!("/api/fleet/artifacts/{id}")).token(&world.admin);
    get(&ids[0]).refused(404, "not_found", "").await;
    assert_eq!(get(&ids[1]).gives(200).await.text, "second");
}

#[tokio::test]
async fn what_makes_no_sense_stores_nothing() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let before = world.feed().await.len();
    for name in ["", "..%2Fescape", "%2Fetc%2Fpasswd", "a%2F%2Fb", "%E2%80%AEexe.txt"] {
        put(&world, &job, &token, name).body("text/plain", "x").refused(400, "invalid_request", "name").await;
    }
    put(&world, &job, &token, "a")
        .body("nonsense", "x")
        .refused(400, "invalid_request", "content-type")
        .await;
    let path = format!("/api/fleet/jobs/{}/artifacts", job.id);
    for (query, field) in [("?name=a", "leaseEpoch"), ("?leaseEpoch=1", "name")] {
        let call = world.post(&format!("{path}{query}")).token(&token);
        call.refused(400, "invalid_request", field).await;
    }
    let large = put(&world, &job, &token, "a").body("text/plain", vec![0; limits::ARTIFACT_BYTES + 1]);
    large.refused(413, "payload_too_large", "").await;
    assert_eq!(world.feed().await.len(), before);
    let malformed = world.get("/api/fleet/artifacts/nonsense").token(&world.admin);
    malformed.refused(400, "invalid_request", "id: artifact id").await;
}

#[tokio::test]
async fn the_typed_client_stores_lists_fetches_and_deletes() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let id = job.id.to_string();
    let client = |token: &str| {
        let token = Some(token.to_owned());
        Client::new(ClientOptions { url: world.url.clone(), token, ..ClientOptions::default() }).unwrap()
    };
    let (factory, admin) = (client(&token), client(&world.admin));
    let bytes: Vec<u8> = (0..=255).collect();
    let put = factory.put_artifact(&id, job.epoch.0, "a & b?.bin", "application/zip", bytes.clone());
    let stored = put.await.unwrap().value;
    assert_eq!((stored.name.as_str(), stored.media_type.as_str()), ("a & b?.bin", "application/zip"));
    assert_eq!(admin.artifacts(&id).await.unwrap().artifacts, std::slice::from_ref(&stored));
    assert_eq!(admin.artifact_bytes(&stored.id).await.unwrap(), bytes);
    let stale = factory.put_artifact(&id, job.epoch.0 + 1, "a", "text/plain", Vec::new()).await.unwrap_err();
    assert!(matches!(stale, ClientError::Problem(problem) if problem.code == "fenced"));
    admin.delete_artifact(&stored.id).await.unwrap();
    assert!(admin.artifacts(&id).await.unwrap().artifacts.is_empty());
}
