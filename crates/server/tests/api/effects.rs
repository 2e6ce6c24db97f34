//! Webhooks, the outbox and the tracker bridge over the API: who sees what, and what is refused with which words.

use giga_domain::token::Role;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_secret_is_answered_once_and_products_stay_apart() {
    let world = World::start().await;
    let alpha = world.token(Role::Admin, &["alpha"]).await;
    let body = json!({"url": "https://example.com/a", "types": ["job.shipped"]});
    let made = world.post("/api/fleet/webhooks").token(&alpha).json(body).gives(201).await.json();
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
    assert_eq!(made["webhook"]["productId"], "alpha", "the only one that the token is for");
    let of_all = json!({"url": "https://example.com/all"});
    world.post("/api/fleet/webhooks").token(&world.admin).json(of_all).gives(201).await;

    let list = world.get("/api/fleet/webhooks").token(&alpha).gives(200).await;
    assert_eq!(list.json()["webhooks"].as_array().unwrap().len(), 1, "{}", list.text);
    let all = world.get("/api/fleet/webhooks").token(&world.admin).gives(200).await;
    assert_eq!(all.json()["webhooks"].as_array().unwrap().len(), 2);
    assert!(!list.text.contains("whsec") && !all.text.contains("whsec"));
    assert!(!format!("{:?}", world.feed().await).contains("whsec"));

    let beta = world.token(Role::Admin, &["beta"]).await;
    let id = made["webhook"]["id"].as_str().unwrap();
    let path = format!("/api/fleet/webhooks/{id}");
    world.call(axum::http::Method::DELETE, &path).token(&beta).refused(404, "not_found", "no webhook").await;
    world.call(axum::http::Method::DELETE, &path).token(&alpha).gives(204).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_field() {
    let world = World::start().await;
    for (body, field) in [
        (json!({"url": "http://example.com"}), "url"),
        (json!({"url": "https://example.com", "types": ["job.shipped", "job.shiped"]}), "types[1]"),
        (json!({"url": "https://example.com", "types": ["effect.given_up"]}), "types[0]"),
        (json!({"url": "https://example.com", "productId": "a b"}), "productId"),
        (json!({"url": "https://example.com", "kinds": []}), "kinds"),
    ] {
        let reply = world.post("/api/fleet/webhooks").token(&world.admin).json(body).gives(400).await.json();
        assert_eq!(reply["errors"][0]["field"], field, "{reply}");
    }
    for query in ["cursor=x", "cursor=e1-1", "state=lost", "webhook=1", "limit=0", "nonsense=1"] {
        world.get(&format!("/api/fleet/effects?{query}")).token(&world.admin).gives(400).await;
    }
    world
        .get("/api/fleet/effects/wh:none:1")
        .token(&world.admin)
        .refused(404, "not_found", "no effect")
        .await;
}

#[tokio::test]
async fn the_outbox_is_read_page_by_page() {
    let world = World::start().await;
    let (webhook, first) = world.webhook("alpha").await;
    let mut ids = vec![first];
    for _ in 0..4 {
        let path = format!("/api/fleet/webhooks/{webhook}/test");
        let effect = world.post(&path).token(&world.admin).gives(202).await.json();
        ids.push(effect["id"].as_str().unwrap().to_owned());
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/fleet/effects?limit=2&webhook={webhook}{cursor}");
        let page = world.get(&path).token(&world.admin).gives(200).await.json();
        seen.extend(page["effects"].as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen.sort();
    ids.sort();
    assert_eq!(seen, ids);
    let beta = world.token(Role::Operator, &["beta"]).await;
    let none = world.get("/api/fleet/effects").token(&beta).gives(200).await.json();
    assert_eq!(none["effects"], json!([]));
    let path = format!("/api/fleet/effects/{}", ids[0]);
    world.get(&path).token(&beta).refused(404, "not_found", "no effect").await;
    let metrics = world.get("/metrics").token(&world.admin).gives(200).await.text;
    assert!(metrics.contains("giga_effects_pending") && metrics.contains("giga_effects_dead 0"), "{metrics}");
}

#[tokio::test]
async fn an_item_is_one_job_whatever_it_says() {
    let world = World::start().await;
    let job = world.tracked("alpha", 1).await;
    assert_eq!(job.spec.name, "Item 1");
    let body = json!({"tracker": "github", "item": "acme/alpha#1", "bodyMd": "more", "manifest": {"product": "alpha", "priority": "high"}});
    let again = world.post("/api/fleet/tracker/ingest").token(&world.admin).json(body).gives(200).await;
    assert_eq!(again.json()["job"]["id"], job.id.to_string());

    let ingest = |body| world.post("/api/fleet/tracker/ingest").token(&world.admin).json(body);
    let item = |item: &str| json!({"tracker": "github", "item": item});
    ingest(item("acme/alpha#9")).refused(404, "not_found", "acme/alpha#9").await;
    let reply = ingest(json!({"tracker": "jira", "item": "A-1"})).gives(400).await.json();
    assert_eq!(reply["errors"][0]["field"], "tracker");
    let keyed = json!({"tracker": "github", "item": "acme/alpha#1", "manifest": {"idempotencyKey": "x"}});
    let reply = ingest(keyed).gives(400).await.json();
    assert_eq!(reply["errors"][0]["field"], "manifest.idempotencyKey");
    let unknown = json!({"tracker": "github", "item": "acme/alpha#1", "manifest": {"prioritty": "high"}});
    ingest(unknown).refused(400, "invalid_manifest", "did you mean").await;

    // Nobody else may use such a key.
    let key = "tracker:github:acme/alpha#2";
    let manifest = json!({"manifest": {"name": "x", "idempotencyKey": key}});
    world
        .post("/api/fleet/jobs")
        .token(&world.admin)
        .json(manifest)
        .refused(400, "invalid_manifest", "tracker:")
        .await;
    let plain = json!({"manifest": {"name": "x"}});
    let call = world.post("/api/fleet/jobs").token(&world.admin).header("idempotency-key", key).json(plain);
    call.refused(400, "invalid_request", "tracker:").await;
    let own = world.submit("alpha", "name: own").await;
    let echo = json!({"jobId": own.id.to_string()});
    let reply = world.post("/api/fleet/tracker/echo").token(&world.admin).json(echo).gives(400).await.json();
    assert_eq!(reply["errors"][0]["field"], "jobId");
}
