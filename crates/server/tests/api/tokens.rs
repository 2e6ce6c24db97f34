//! Tokens: what they can issue, when they end, and that factories prove who they are.

use std::time::Duration;

use axum::http::Method;
use giga_domain::token::Role;
use serde_json::json;

use crate::streams::Sse;
use crate::world::World;

#[tokio::test]
async fn a_revoked_token_is_of_no_use_at_once() {
    let world = World::start().await;
    let issued =
        world.post("/api/fleet/tokens").token(&world.admin).json(json!({"role": "viewer", "label": "ana"}));
    let issued = issued.gives(201).await.json();
    let (id, token) = (issued["id"].as_str().unwrap(), issued["token"].as_str().unwrap());
    world.get("/api/fleet/jobs").token(token).gives(200).await;
    let listed = world.get("/api/fleet/tokens").token(&world.admin).gives(200).await;
    assert!(!listed.text.contains(token), "a secret is shown once");
    assert!(listed.json()["tokens"].as_array().unwrap().iter().any(|t| t["id"] == id && t["label"] == "ana"));
    let mut stream = Sse::open(world.get("/api/fleet/events/stream").token(token)).await;
    world.call(Method::DELETE, &format!("/api/fleet/tokens/{id}")).token(&world.admin).gives(204).await;
    world.get("/api/fleet/jobs").token(token).refused(401, "unauthenticated", "revoked").await;
    assert_eq!(stream.next().await, None, "not even the news of its own end");
    let again = world.call(Method::DELETE, "/api/fleet/tokens/tok-none").token(&world.admin);
    again.refused(404, "not_found", "tok-none").await;
}

#[tokio::test]
async fn a_rotated_token_works_until_its_grace_ends() {
    let world = World::start().await;
    let old = world.factory("f-1", &[]).await;
    let rotated =
        world.post("/api/fleet/factories/f-1/token/rotate").token(&world.admin).gives(200).await.json();
    let new = rotated["token"].as_str().unwrap();
    let grace = Duration::from_millis(rotated["oldValidForMs"].as_u64().unwrap());
    let claim = |token: &str| {
        world.post("/api/fleet/claim").token(token).json(json!({"factoryId": "f-1", "requestId": "r"}))
    };
    claim(&old).gives(204).await;
    claim(new).gives(204).await;
    let moment = Duration::from_millis(1);
    world.clock.advance(grace.saturating_sub(moment));
    claim(&old).gives(204).await;
    world.clock.advance(moment);
    claim(&old).refused(401, "unauthenticated", "expired").await;
    claim(new).gives(204).await;
    world.post("/api/fleet/factories/f-1/token/revoke").token(&world.admin).gives(204).await;
    claim(new).refused(401, "unauthenticated", "revoked").await;
}

#[tokio::test]
async fn an_expired_token_says_so_to_its_bearer_and_is_renewed() {
    let world = World::start().await;
    let issue = |body| world.post("/api/fleet/tokens").token(&world.admin).json(body);
    issue(json!({"role": "viewer", "expires": "soon"}))
        .refused(400, "invalid_request", "expires: `soon` is not a lifetime")
        .await;
    let issued = issue(json!({"role": "viewer", "expires": "1h"})).gives(201).await.json();
    let (id, token) = (issued["id"].as_str().unwrap(), issued["token"].as_str().unwrap());
    world.get("/api/fleet/jobs").token(token).gives(200).await;
    world.clock.advance(Duration::from_hours(1));
    let end = issued["expiresAt"].as_str().unwrap();
    let words = format!("the token expired at {end}; an admin can renew it with `giga token renew {id}`");
    world.get("/api/fleet/jobs").token(token).refused(401, "unauthenticated", &words).await;
    let renew = |body| world.post(&format!("/api/fleet/tokens/{id}/renew")).token(&world.admin).json(body);
    renew(json!({"expires": "0d"})).refused(400, "invalid_request", "expires: ").await;
    world.get("/api/fleet/jobs").token(token).refused(401, "unauthenticated", "expired").await;
    renew(json!({"expires": "2h"})).gives(200).await;
    world.get("/api/fleet/jobs").token(token).gives(200).await;
    world.clock.advance(Duration::from_hours(2));
    world.get("/api/fleet/jobs").token(token).refused(401, "unauthenticated", "expired").await;
}

#[tokio::test]
async fn a_factory_that_beats_keeps_its_token() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let beat = || {
        let body = json!({"factoryId": "f-1", "capabilities": [], "seatLimit": 1});
        world.post("/api/fleet/factories/heartbeat").token(&token).json(body)
    };
    for _ in 0..4 {
        world.clock.advance(Duration::from_hours(20 * 24));
        beat().gives(200).await;
    }
    world.clock.advance(Duration::from_hours(30 * 24));
    beat().refused(401, "unauthenticated", "expired").await;
}

#[tokio::test]
async fn a_deregistered_factory_is_out() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    world.call(Method::DELETE, "/api/fleet/factories/f-1").token(&world.admin).gives(204).await;
    let claim =
        world.post("/api/fleet/claim").token(&token).json(json!({"factoryId": "f-1", "requestId": "r"}));
    claim.refused(401, "unauthenticated", "").await;
    world.get("/api/fleet/factories/f-1").token(&world.admin).refused(404, "not_found", "f-1").await;
}

#[tokio::test]
async fn nobody_issues_a_token_wider_than_their_own() {
    let world = World::start().await;
    let admin = world.token(Role::Admin, &["alpha", "beta"]).await;
    let issue = |body| world.post("/api/fleet/tokens").token(&admin).json(body);
    issue(json!({"role": "admin", "products": ["alpha"]})).gives(201).await;
    for products in [json!([]), json!(["gamma"]), json!(["alpha", "gamma"])] {
        issue(json!({"role": "viewer", "products": products})).refused(403, "forbidden", "alpha, beta").await;
        let enrol = world.post("/api/fleet/factories/enroll").token(&admin);
        let enrol = enrol.json(json!({"factoryId": "f-new", "products": products}));
        enrol.refused(403, "forbidden", "alpha, beta").await;
    }
    let listed = world.get("/api/fleet/tokens").token(&admin).gives(200).await.json();
    assert!(listed["tokens"].as_array().unwrap().iter().all(|t| t["label"] != "local admin"));
    let root = world.coordinator.reads().tokens().await.unwrap();
    let root = root.iter().find(|t| t.label == "local admin").unwrap();
    world.call(Method::DELETE, &format!("/api/fleet/tokens/{}", root.id)).token(&admin).gives(404).await;
    let flag = world.call(Method::PUT, "/api/fleet/flags/strict").token(&admin).json(json!({"value": true}));
    flag.refused(403, "forbidden", "every product").await;
}

#[tokio::test]
async fn refusals_say_what_would_be_needed() {
    let world = World::start().await;
    let viewer = world.token(Role::Viewer, &[]).await;
    let factory = world.factory("f-1", &[]).await;
    let submit = world.post("/api/fleet/jobs").token(&viewer).markdown("---\nname: a\n---\n");
    submit
        .refused(403, "forbidden", "needs the role submitter or higher; this token has the role viewer")
        .await;
    let list = world.get("/api/fleet/jobs").token(&factory);
    list.refused(403, "forbidden", "needs the role viewer or higher; this is the token of factory f-1").await;
    let claim = |token: &str, id: &str| {
        world.post("/api/fleet/claim").token(token).json(json!({"factoryId": id, "requestId": "r"}))
    };
    claim(&world.admin, "f-1").refused(403, "forbidden", "the token of the factory itself").await;
    claim(&factory, "f-2").refused(403, "forbidden", "belongs to factory f-1").await;
}

#[tokio::test]
async fn a_factory_must_say_what_it_has_before_it_claims() {
    let world = World::start().await;
    let enrol =
        world.post("/api/fleet/factories/enroll").token(&world.admin).json(json!({"factoryId": "f-1"}));
    let enrolled = enrol.gives(201).await;
    assert_eq!(enrolled.header("cache-control"), "no-store");
    let token = enrolled.json()["token"].as_str().unwrap().to_owned();
    let claim =
        || world.post("/api/fleet/claim").token(&token).json(json!({"factoryId": "f-1", "requestId": "r"}));
    claim().refused(409, "no_heartbeat", "heartbeat").await;
    let beat = json!({
        "factoryId": "f-1", "capabilities": ["os:linux"], "seatLimit": 2, "load": 0.5, "canClone": true,
        "repos": ["notes", {"name": "hello", "lastUsedAt": "2026-01-01T00:00:00Z"}], "costUsdPerHour": 0.5,
    });
    let beat = world.post("/api/fleet/factories/heartbeat").token(&token).json(beat).gives(200).await.json();
    assert_eq!((&beat["heartbeatIntervalMs"], &beat["staleAfterMs"]), (&json!(10_000), &json!(30_000)));
    claim().gives(204).await;
    let seen = world.get("/api/fleet/factories/f-1").token(&world.admin).gives(200).await.json();
    assert_eq!(
        (&seen["live"], &seen["repos"][1]["name"], &seen["seatLimit"]),
        (&json!(true), &json!("hello"), &json!(2))
    );
    let again =
        world.post("/api/fleet/factories/enroll").token(&world.admin).json(json!({"factoryId": "f-1"}));
    again.refused(409, "factory_exists", "rotate").await;
}
