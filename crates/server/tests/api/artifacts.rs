//! Artifacts over HTTP: bytes in, the same bytes out, never as something that a browser would show in place.

use axum::http::Method;
use giga_api::client::{Client, ClientError, ClientOptions};
use giga_api::wire::ProblemCode;
use giga_domain::token::Role;
use giga_domain::{Job, JobId, limits};
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
    assert!(matches!(stale, ClientError::Problem(problem) if problem.code == ProblemCode::Fenced));
    admin.delete_artifact(&stored.id).await.unwrap();
    assert!(admin.artifacts(&id).await.unwrap().artifacts.is_empty());
}

#[tokio::test]
async fn the_flag_says_how_large_a_file_may_be() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let mib = 1024 * 1024;
    let flag = |value: u64| {
        let call = world.call(Method::PUT, "/api/fleet/flags/artifact_mib").token(&world.admin);
        call.json(json!({ "value": value })).gives(200)
    };
    flag(1).await;
    let send = |size: usize| put(&world, &job, &token, "a").body("text/plain", vec![7; size]);
    send(mib).gives(201).await;
    let before = (world.feed().await.len(), bytes_kept(&world, job.id));
    for size in [mib + 1, 12 * mib] {
        send(size).refused(413, "payload_too_large", "the artifact would be larger than 1048576 bytes").await;
    }
    assert_eq!((world.feed().await.len(), bytes_kept(&world, job.id)), before, "nothing stays of them");
    flag(32).await;
    let stored = send(20 * mib).gives(201).await.json();
    assert_eq!(stored["size"], 20 * mib);
}

/// Files in the folder of the job, which holds them by run.
fn bytes_kept(world: &World, job: JobId) -> usize {
    let runs = std::fs::read_dir(world.folder.path().join("artifacts").join(job.to_string())).unwrap();
    runs.flatten().map(|run| std::fs::read_dir(run.path()).unwrap().count()).sum()
}

#[tokio::test]
async fn a_job_has_so_many_files_and_no_more() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    for number in 0..limits::JOB_ARTIFACTS {
        put(&world, &job, &token, &format!("{number}")).body("text/plain", "x").gives(201).await;
    }
    let more = put(&world, &job, &token, "more").body("text/plain", "x");
    more.refused(400, "invalid_request", "the job has 1000 artifacts already").await;
    put(&world, &job, &token, "7").body("text/plain", "y").gives(201).await;
}

#[tokio::test]
async fn any_stretch_of_a_file_can_be_fetched() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let stored = put(&world, &job, &token, "a").body("text/plain", "0123456789").gives(201).await.json();
    let path = format!("/api/fleet/artifacts/{}", stored["id"].as_str().unwrap());
    let get = |range: &str| world.get(&path).token(&world.admin).header("range", range);
    let whole = world.get(&path).token(&world.admin).gives(200).await;
    assert_eq!((whole.header("accept-ranges"), whole.header("content-length")), ("bytes", "10"));
    let part = get("bytes=2-4").gives(206).await;
    assert_eq!((part.text.as_str(), part.header("content-range")), ("234", "bytes 2-4/10"));
    assert_eq!(part.header("content-length"), "3");
    assert!(part.header("content-disposition").starts_with("attachment"), "also in parts");
    assert_eq!(get("bytes=-3").gives(206).await.text, "789");
    assert_eq!(get("bytes=0-1,3-4").gives(200).await.text, "0123456789");
    let none = get("bytes=10-").refused(416, "range_not_satisfiable", "10 bytes").await;
    assert_eq!(none.header("content-range"), "bytes */10");
    let tag = whole.header("etag").to_owned();
    assert_eq!(get("bytes=8-").header("if-range", &tag).gives(206).await.text, "89");
    assert_eq!(get("bytes=8-").header("if-range", "\"other\"").gives(200).await.text, "0123456789");
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    put(&world, &job, &token, "a").body("text/plain", "kept").gives(201).await;
    let before = (world.feed().await.len(), bytes_kept(&world, job.id));
    let pieces = [Ok(vec![1_u8; 1024]), Err(std::io::Error::other("the cable"))];
    let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
    let path = format!("{}/api/fleet/jobs/{}/artifacts?leaseEpoch=1&name=b", world.url, job.id);
    let sent = world.http.post(path).bearer_auth(&token).body(body).send().await;
    assert!(sent.is_err(), "the client itself gave up");
    // The next call is answered after the server has dealt with the broken one, or the file would be there for ever.
    put(&world, &job, &token, "a").body("text/plain", "kept").gives(201).await;
    let files = world.coordinator.reads().artifacts(job.id).await.unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!((world.feed().await.len(), bytes_kept(&world, job.id)), (before.0 + 1, before.1));
}
