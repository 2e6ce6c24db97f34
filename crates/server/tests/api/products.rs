//! Product limits: what a token does not cover does not exist for it.

use axum::http::Method;
use giga_domain::JobId;
use giga_domain::token::Role;
use serde_json::json;

use crate::world::World;

/// The answers for another product's job and for no job at all must not differ in anything but the id asked for.
#[tokio::test]
async fn another_products_job_is_answered_like_one_that_does_not_exist() {
    let world = World::start().await;
    world.factory("f-beta", &["beta"]).await;
    let theirs = world.building("beta", "f-beta", "theirs").await.id;
    let admin = world.token(Role::Admin, &["alpha"]).await;
    let factory = world.factory("f-alpha", &["alpha"]).await;
    let nobodys = JobId::MAX;
    let user_calls = [
        (Method::GET, "/api/fleet/jobs/{id}", None),
        (Method::GET, "/api/fleet/jobs/{id}/runs", None),
        (Method::GET, "/api/fleet/jobs/{id}/events", None),
        (Method::GET, "/api/fleet/jobs/{id}/events/stream", None),
        (Method::GET, "/api/fleet/jobs/{id}/explain", None),
        (Method::GET, "/api/fleet/jobs/{id}/logs", None),
        (Method::GET, "/api/fleet/jobs/{id}/artifacts", None),
        (Method::POST, "/api/fleet/jobs/{id}/actions/cancel", None),
        (Method::POST, "/api/fleet/jobs/{id}/review", Some(json!({"verdict": "approve"}))),
        (Method::POST, "/api/fleet/jobs/{id}/review/request", Some(json!({"quorum": 1}))),
    ];
    let epoch = Some(json!({"leaseEpoch": 1}));
    let factory_calls = [
        (Method::GET, "/api/fleet/jobs/{id}", None),
        (Method::PATCH, "/api/fleet/jobs/{id}", Some(json!({"leaseEpoch": 1, "stage": "building"}))),
        (Method::POST, "/api/fleet/jobs/{id}/report", epoch.clone()),
        (Method::POST, "/api/fleet/jobs/{id}/lease/renew", epoch.clone()),
        (Method::POST, "/api/fleet/jobs/{id}/lease/release", epoch),
        (Method::POST, "/api/fleet/jobs/{id}/logs?leaseEpoch=1&offset=0", Some(json!("x"))),
        (Method::POST, "/api/fleet/jobs/{id}/artifacts?leaseEpoch=1&name=x", Some(json!("x"))),
        (
            Method::POST,
            "/api/fleet/merges/{id}/settle",
            Some(json!({"factoryId": "f-alpha", "attempt": 1, "outcome": "outrun"})),
        ),
        (
            Method::POST,
            "/api/fleet/fail",
            Some(json!({"jobId": "{id}", "leaseEpoch": 1, "reason": "crash", "retryable": true})),
        ),
        (
            Method::POST,
            "/api/fleet/accept",
            Some(json!({"jobId": "{id}", "factoryId": "f-alpha", "dispatchSeq": 0, "requestId": "r"})),
        ),
    ];
    let calls = user_calls.into_iter().map(|call| (&admin, call));
    for (token, (method, path, body)) in calls.chain(factory_calls.into_iter().map(|call| (&factory, call))) {
        let mut answers = Vec::new();
        for id in [theirs, nobodys] {
            let mut call = world.call(method.clone(), &path.replace("{id}", &id.to_string())).token(token);
            if let Some(body) = &body {
                let text = body.to_string().replace("{id}", &id.to_string());
                call = call.body("application/json", text);
            }
            let reply = call.send().await;
            assert!(matches!(reply.status, 404 | 409), "{path}: {}", reply.text);
            let mut headers = reply.headers.clone();
            headers.remove("date");
            answers.push((reply.status, headers, reply.text.replace(&id.to_string(), "")));
        }
        assert_eq!(answers[0], answers[1], "{path}");
    }
}

#[tokio::test]
async fn lists_and_feeds_show_the_tokens_products_only() {
    let world = World::start().await;
    world.factory("f-alpha", &["alpha"]).await;
    world.factory("f-beta", &["beta"]).await;
    world.factory("f-both", &["alpha", "beta"]).await;
    world.factory("f-any", &[]).await;
    // Less urgent, so that the factory for both takes one of the other product.
    world.submit("alpha", "name: a\npriority: low").await;
    world.submit("beta", "name: b").await;
    let held = world.building("beta", "f-both", "b-held").await;
    let viewer = world.token(Role::Viewer, &["alpha"]).await;
    let get = |path: &str| world.get(path).token(&viewer);

    let jobs = get("/api/fleet/jobs").gives(200).await.json();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1);
    let events = get("/api/fleet/events").gives(200).await.json();
    let products: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|e| e["productId"].clone()).collect();
    assert_eq!(products, ["alpha"], "neither another product's events nor the fleet's");
    let all = world.get("/api/fleet/events?limit=500").token(&world.admin).gives(200).await.json();
    assert_eq!(all["events"].as_array().unwrap().len(), world.feed().await.len());

    let factories = get("/api/fleet/factories").gives(200).await.json();
    let ids: Vec<_> = factories["factories"].as_array().unwrap().iter().map(|f| f["id"].clone()).collect();
    assert_eq!(ids, ["f-alpha", "f-any", "f-both"]);
    let both = get("/api/fleet/factories/f-both").gives(200).await.json();
    assert_eq!(
        (&both["products"], &both["running"], &both["seatsUsed"]),
        (&json!(["alpha"]), &json!([]), &json!(1))
    );
    let seen = world.get("/api/fleet/factories/f-both").token(&world.admin).gives(200).await.json();
    assert_eq!(seen["running"], json!([held.id.to_string()]));
    get("/api/fleet/factories/f-beta").refused(404, "not_found", "there is no factory f-beta").await;

    let metrics = get("/api/fleet/metrics").gives(200).await.json();
    assert_eq!(metrics["products"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&metrics["factories"]["live"], &metrics["products"][0]["byStage"]["queued"]),
        (&json!(3), &json!(1))
    );
    let all = world.get("/api/fleet/metrics").token(&world.admin).gives(200).await.json();
    assert_eq!((&all["factories"]["live"], &all["factories"]["seats"]), (&json!(4), &json!(32)));

    let mine = jobs["jobs"][0]["id"].as_str().unwrap();
    let explained = get(&format!("/api/fleet/jobs/{mine}/explain")).gives(200).await.json();
    assert_eq!(explained["factories"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn alerts_are_cut_to_what_the_token_covers() {
    let world = World::start().await;
    world.factory("f-beta", &["beta"]).await;
    world.submit("alpha", "name: a\ncapabilities: [gpu]").await;
    world.submit("beta", "name: b\ncapabilities: [gpu]").await;
    world.clock.advance(std::time::Duration::from_hours(1));
    let viewer = world.token(Role::Viewer, &["alpha"]).await;
    let codes = |reply: crate::client::Reply| -> Vec<String> {
        let alerts = reply.json()["alerts"].as_array().unwrap().clone();
        alerts.iter().map(|a| a["code"].as_str().unwrap().to_owned()).collect()
    };
    let own = codes(world.get("/api/fleet/alerts").token(&viewer).gives(200).await);
    assert_eq!(own, ["no_eligible_factory"]);
    let all = codes(world.get("/api/fleet/alerts").token(&world.admin).gives(200).await);
    assert_eq!(all, ["no_eligible_factory", "no_eligible_factory", "stale_factory"]);
}

#[tokio::test]
async fn a_shared_factory_is_not_one_products_to_change() {
    let world = World::start().await;
    world.factory("f-both", &["alpha", "beta"]).await;
    world.factory("f-any", &[]).await;
    let admin = world.token(Role::Admin, &["alpha"]).await;
    for id in ["f-both", "f-any"] {
        for action in ["drain", "token/rotate", "token/revoke"] {
            let call = world.post(&format!("/api/fleet/factories/{id}/{action}")).token(&admin);
            call.refused(403, "forbidden", "serves other products too").await;
        }
        let delete = world.call(Method::DELETE, &format!("/api/fleet/factories/{id}")).token(&admin);
        delete.refused(403, "forbidden", "serves other products too").await;
    }
}

/// A product that is set in somebody's configuration goes along with every call; it chooses, it takes nothing away.
#[tokio::test]
async fn the_product_header_does_not_cut_authority() {
    let world = World::start().await;
    world.factory("f-any", &[]).await;
    let call =
        |method, path: &str| world.call(method, path).token(&world.admin).header("x-product-id", "demo");
    call(Method::POST, "/api/fleet/factories/f-any/drain").gives(200).await;
    call(Method::POST, "/api/fleet/factories/enroll").json(json!({"factoryId": "f-new"})).gives(201).await;
    call(Method::POST, "/api/fleet/tokens").json(json!({"role": "viewer"})).gives(201).await;
    call(Method::GET, "/api/fleet/flags").gives(200).await;
}

#[tokio::test]
async fn a_drain_can_be_undone() {
    let world = World::start().await;
    let factory = world.factory("f-1", &[]).await;
    world.submit("demo", "name: a").await;
    let drain = |body| world.post("/api/fleet/factories/f-1/drain").token(&world.admin).json(body);
    let empty = world.post("/api/fleet/factories/f-1/drain").token(&world.admin);
    assert_eq!(empty.gives(200).await.json()["state"], "draining");
    let claim =
        || world.post("/api/fleet/claim").token(&factory).json(json!({"factoryId": "f-1", "requestId": "r"}));
    claim().gives(204).await;
    let beat = json!({"factoryId": "f-1", "capabilities": ["os:linux"], "seatLimit": 8});
    let beat =
        world.post("/api/fleet/factories/heartbeat").token(&factory).json(beat).gives(200).await.json();
    assert_eq!((&beat["directives"], &beat["delivery"]), (&json!(["drain"]), &json!("stream")));
    assert_eq!(drain(json!({"undo": true})).gives(200).await.json()["state"], "active");
    claim().gives(200).await;
}
