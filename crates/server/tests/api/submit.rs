//! Submitting: both forms, idempotency, products, warnings.

use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

const PATH: &str = "/api/fleet/jobs";

#[tokio::test]
async fn markdown_and_json_make_the_same_job() {
    let world = World::start().await;
    let text = "---\nname: fix\nproduct: demo\nidempotencyKey: k-1\n---\n  Body, byte for byte.\r\n";
    let made = world.post(PATH).token(&world.admin).markdown(text).gives(201).await;
    let job = made.json()["job"].clone();
    let id = job["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("{PATH}/{id}"));
    assert_eq!(made.header("etag"), "\"rev-1\"");
    assert_eq!((&job["stage"], &job["rev"], &job["leaseEpoch"]), (&json!("queued"), &json!(1), &json!(0)));
    let answer = made.json();
    assert_eq!(
        (&answer["routable"], &answer["warnings"][0]),
        (&json!(false), &json!("no factory has joined yet"))
    );

    let same = json!({
        "manifest": {"name": "fix", "idempotencyKey": "k-1"},
        "bodyMd": "  Body, byte for byte.\r\n",
    });
    let again =
        world.post(PATH).token(&world.admin).header("x-product-id", "demo").json(same).gives(200).await;
    assert_eq!(again.json()["job"]["id"], id);

    let shown = world.get(&format!("{PATH}/{id}")).token(&world.admin).gives(200).await.json();
    assert_eq!(shown["bodyMd"], "  Body, byte for byte.\r\n");
    assert_eq!(shown["manifest"]["name"], "fix");
}

#[tokio::test]
async fn the_same_key_makes_one_job_and_another_body_is_a_conflict() {
    let world = World::start().await;
    let submit = |key: &str, text: &str| {
        let call = world.post(PATH).token(&world.admin).header("idempotency-key", key);
        call.header("x-product-id", "demo").markdown(text)
    };
    let first = submit("k-1", "---\nname: a\n---\nBody\n").gives(201).await.json();
    let second = submit("k-1", "---\nname: a\n---\nBody\n").gives(200).await.json();
    assert_eq!(first["job"]["id"], second["job"]["id"]);
    assert_eq!(first["job"]["idempotencyKey"], "k-1");
    let head = world.feed().await.len();
    for changed in ["---\nname: a\n---\nOther body\n", "---\nname: b\n---\nBody\n"] {
        let refused = submit("k-1", changed).refused(409, "idempotency_conflict", "k-1").await;
        assert_eq!(refused.json()["jobId"], first["job"]["id"]);
    }
    assert_eq!(world.feed().await.len(), head);
    // The same key of another product is another key.
    let call = world.post(PATH).token(&world.admin).header("idempotency-key", "k-1");
    call.markdown("---\nname: a\nproduct: other\n---\nBody\n").gives(201).await;
    // Header and manifest may agree, not differ.
    submit("k-2", "---\nname: a\nidempotencyKey: k-2\n---\n").gives(201).await;
    submit("k-3", "---\nname: a\nidempotencyKey: k-2\n---\n")
        .refused(400, "invalid_request", "idempotency-key")
        .await;
}

#[tokio::test]
async fn racing_repetitions_make_one_job() {
    let world = World::start().await;
    let submits = (0..20).map(|_| {
        let call = world.post(PATH).token(&world.admin).header("idempotency-key", "same");
        call.markdown("---\nname: a\n---\n").send()
    });
    let replies = futures::future::join_all(submits).await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    let ids: std::collections::BTreeSet<String> =
        replies.iter().map(|r| r.json()["job"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((created, ids.len()), (1, 1));
    assert!(replies.iter().all(|reply| matches!(reply.status, 200 | 201)));
}

#[tokio::test]
async fn the_product_comes_from_manifest_header_or_token() {
    let world = World::start().await;
    let one = world.token(Role::Submitter, &["alpha"]).await;
    let two = world.token(Role::Submitter, &["alpha", "beta"]).await;
    let (plain, named) = ("---\nname: a\n---\n", "---\nname: a\nproduct: beta\n---\n");
    let product_of = |reply: crate::client::Reply| reply.json()["job"]["productId"].clone();

    assert_eq!(product_of(world.post(PATH).token(&one).markdown(plain).gives(201).await), "alpha");
    assert_eq!(product_of(world.post(PATH).token(&two).markdown(named).gives(201).await), "beta");
    let chosen = world.post(PATH).token(&two).header("x-product-id", "alpha").markdown(plain);
    assert_eq!(product_of(chosen.gives(201).await), "alpha");
    assert_eq!(product_of(world.post(PATH).token(&world.admin).markdown(plain).gives(201).await), "default");

    world.post(PATH).token(&two).markdown(plain).refused(400, "invalid_request", "alpha, beta").await;
    world.post(PATH).token(&one).markdown(named).refused(403, "forbidden", "alpha").await;
    let conflict = world.post(PATH).token(&two).header("x-product-id", "alpha").markdown(named);
    conflict.refused(400, "invalid_request", "leave one out").await;
}

#[tokio::test]
async fn strict_refuses_what_no_factory_could_run() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let text = "---\nname: a\ncapabilities: [os:linx]\n---\n";
    let loud = world.post(PATH).token(&world.admin).markdown(text).gives(201).await.json();
    assert_eq!(loud["routable"], false);
    assert!(loud["warnings"][0].as_str().unwrap().contains("did you mean `os:linux`?"));
    let plan = async |text: &str| {
        let plan = world.post("/api/fleet/plan").token(&world.admin).markdown(text).gives(200).await.json();
        (plan["routable"].clone(), plan["refused"].clone())
    };
    assert_eq!(plan(text).await, (json!(false), json!(false)));
    let flag = world.call(axum::http::Method::PUT, "/api/fleet/flags/strict").token(&world.admin);
    flag.json(json!({"value": true})).gives(200).await;
    world.post(PATH).token(&world.admin).markdown(text).refused(422, "unroutable", "os:linx").await;
    assert_eq!(plan(text).await, (json!(false), json!(true)));
    assert_eq!(plan("---\nname: a\n---\n").await, (json!(true), json!(false)));
}

#[tokio::test]
async fn a_plan_changes_nothing() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let head = world.feed().await.len();
    let text = "---\nname: a\nbudget: {usd: 0.5}\nretry: {max: 1}\n---\n";
    let plan = world.post("/api/fleet/plan").token(&world.admin).markdown(text).gives(200).await.json();
    assert_eq!((&plan["routable"], &plan["worstCaseUsd"]), (&json!(true), &json!(1.0)));
    let verdict = &plan["explanation"]["factories"][0];
    assert_eq!((&verdict["factoryId"], &verdict["feasible"]), (&json!("f-1"), &json!(true)));
    assert!(verdict["terms"]["capabilityFit"].is_number());
    assert_eq!(world.feed().await.len(), head);
}

#[tokio::test]
async fn a_plan_says_where_the_result_would_go_to_whoever_sees_that_factory() {
    let world = World::start().await;
    let plan = async |token: &str, product: &str| {
        let text = format!("---\nname: a\nproduct: {product}\nrepo: app\n---\n");
        let call = world.post("/api/fleet/plan").token(token).markdown(&text);
        call.gives(200).await.json()["mergesInto"].clone()
    };
    assert_eq!(plan(&world.admin, "alpha").await, Value::Null, "nobody has it");
    let token = world.factory("f-1", &["beta"]).await;
    let beat = json!({
        "factoryId": "f-1", "capabilities": [], "seatLimit": 2,
        "repos": [{"name": "team/app", "mergesInto": "origin/main (https://example.org/app.git)"}],
    });
    world.post("/api/fleet/factories/heartbeat").token(&token).json(beat).gives(200).await;
    assert_eq!(plan(&world.admin, "beta").await, "origin/main (https://example.org/app.git)");
    let alpha = world.token(Role::Submitter, &["alpha"]).await;
    assert_eq!(plan(&alpha, "alpha").await, Value::Null);
    let factory = world.get("/api/fleet/factories/f-1").token(&world.admin).gives(200).await.json();
    assert_eq!(factory["repos"][0]["mergesInto"], "origin/main (https://example.org/app.git)");
}
