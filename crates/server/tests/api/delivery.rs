//! Delivery modes over REST: what factories are told, what they may choose from, and what shadow mode has found.

use axum::http::Method;
use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

fn beat(factory: &str, delivery: Option<&str>) -> Value {
    let mut body =
        json!({"factoryId": factory, "capabilities": ["os:linux"], "seatLimit": 8, "canClone": true});
    if let Some(delivery) = delivery {
        body["delivery"] = json!(delivery);
    }
    body
}

async fn set(world: &World, name: &str, value: Value) -> Value {
    let call = world.call(Method::PUT, &format!("/api/fleet/flags/{name}")).token(&world.admin);
    call.json(json!({ "value": value })).gives(200).await.json()
}

#[tokio::test]
async fn a_heartbeat_says_how_it_is_reached_and_hears_how_it_should_be() {
    let world = World::start().await;
    let token = world.factory("f1", &[]).await;
    let heartbeat = |delivery| {
        let call = world.post("/api/fleet/factories/heartbeat").token(&token);
        call.json(beat("f1", delivery))
    };
    assert_eq!(heartbeat(None).gives(200).await.json()["delivery"], "stream");
    let shown = || async { world.get("/api/fleet/factories/f1").token(&world.admin).gives(200).await.json() };
    assert_eq!(shown().await["actualDelivery"], "poll", "who says nothing polls");

    set(&world, "delivery.f1", json!("broker")).await;
    assert_eq!(heartbeat(Some("stream")).gives(200).await.json()["delivery"], "broker");
    let factory = shown().await;
    assert_eq!((&factory["delivery"], &factory["actualDelivery"]), (&json!("broker"), &json!("stream")));

    heartbeat(Some("push")).refused(400, "invalid_request", "one of poll, shadow, stream").await;
}

#[tokio::test]
async fn the_mode_of_one_factory_is_a_flag_like_any_other() {
    let world = World::start().await;
    world.factory("f1", &[]).await;
    let flag = set(&world, "delivery.f1", json!("poll")).await;
    assert_eq!((&flag["name"], &flag["value"]), (&json!("delivery.f1"), &json!("poll")));
    let listed = world.get("/api/fleet/flags").token(&world.admin).gives(200).await.json();
    let own = listed["flags"].as_array().unwrap().iter().find(|flag| flag["name"] == "delivery.f1").unwrap();
    assert_eq!((&own["default"], &own["isDefault"]), (&json!("stream"), &json!(false)));

    let unset = set(&world, "delivery.f1", Value::Null).await;
    assert_eq!((&unset["value"], &unset["isDefault"]), (&json!("stream"), &json!(true)));
    let changes = world.feed().await.into_iter().filter(|e| e.kind.as_str() == "flag.changed").count();
    assert_eq!(changes, 2, "each change is on record");

    let ghost = world.call(Method::PUT, "/api/fleet/flags/delivery.ghost").token(&world.admin);
    ghost.json(json!({"value": "poll"})).refused(400, "invalid_request", "no factory `ghost`").await;
    let wrong = world.call(Method::PUT, "/api/fleet/flags/delivery.f1").token(&world.admin);
    wrong.json(json!({"value": "push"})).refused(400, "invalid_request", "one of poll, shadow").await;
    let other = world.call(Method::PUT, "/api/fleet/flags/strict.f1").token(&world.admin);
    other.json(json!({"value": true})).refused(404, "not_found", "no flag `strict.f1`").await;
}

#[tokio::test]
async fn a_factory_that_chooses_for_itself_lists_and_claims() {
    let world = World::start().await;
    let token = world.factory("f1", &["alpha"]).await;
    let low = world.submit("alpha", "name: low\npriority: low\nrepo: hello").await;
    let high = world.submit("alpha", "name: high\npriority: high\ncapabilities: [\"os:linux\"]").await;
    world.submit("alpha", "name: gpu\npriority: critical\ncapabilities: [gpu]").await;
    world.submit("beta", "name: not-its\npriority: critical").await;
    let listed =
        world.get("/api/fleet/candidates?factoryId=f1&limit=10").token(&token).gives(200).await.json();
    assert_eq!(
        listed["candidates"],
        json!([
            {"jobId": high.id.to_string(), "productId": "alpha", "priority": "high", "capabilities": ["os:linux"]},
            {"jobId": low.id.to_string(), "productId": "alpha", "priority": "low", "capabilities": [], "repo": "hello"},
        ])
    );
    let claim = |body: Value| world.post("/api/fleet/claim").token(&token).json(body);
    let both = json!([high.id.to_string(), low.id.to_string()]);
    let many = || claim(json!({"factoryId": "f1", "requestId": "r1", "jobIds": both, "max": 5}));
    let granted = many().gives(200).await.json();
    let ids: Vec<_> = granted["grants"].as_array().unwrap().iter().map(|grant| &grant["job"]["id"]).collect();
    assert_eq!(ids, [&json!(high.id.to_string()), &json!(low.id.to_string())]);
    assert_eq!(granted["grants"][0]["leaseEpoch"], 1);
    assert_eq!(granted["grants"][0]["job"]["bodyMd"], "Do it.\n", "all that a claim gives");
    assert_eq!(many().gives(200).await.json(), granted, "a repetition is the same");

    let none = claim(json!({"factoryId": "f1", "requestId": "r2", "jobIds": both, "max": 1}));
    assert_eq!(none.gives(200).await.json(), json!({"grants": []}));
    claim(json!({"factoryId": "f1", "requestId": "r3", "jobIds": both})).gives(204).await;
    let one = world.submit("alpha", "name: one").await;
    let single = claim(json!({"factoryId": "f1", "requestId": "r4", "jobIds": [one.id.to_string()]}));
    assert_eq!(single.gives(200).await.json()["job"]["id"], one.id.to_string());
}

#[tokio::test]
async fn what_a_chooser_may_not_have_is_refused_or_not_there() {
    let world = World::start().await;
    let token = world.factory("f1", &["alpha"]).await;
    world.factory("f2", &["beta"]).await;
    let foreign = world.submit("beta", "name: not-its").await.id.to_string();
    let gpu = world.submit("alpha", "name: gpu\ncapabilities: [gpu]").await.id.to_string();
    let claim = |body: Value| world.post("/api/fleet/claim").token(&token).json(body);
    let asked = json!({"factoryId": "f1", "requestId": "r1", "jobIds": [foreign, gpu], "max": 2});
    assert_eq!(claim(asked).gives(200).await.json(), json!({"grants": []}), "the store judges again");

    world.get("/api/fleet/candidates").token(&token).refused(400, "invalid_request", "missing").await;
    world.get("/api/fleet/candidates?factoryId=f2").token(&token).refused(403, "forbidden", "f1").await;
    let with = |name: &str, value: Value| {
        let mut body = json!({"factoryId": "f1", "requestId": "r2", "jobIds": [gpu]});
        body[name] = value;
        claim(body)
    };
    with("jobIds", json!(["nonsense"])).refused(400, "invalid_request", "jobIds[0]").await;
    with("jobIds", json!(vec![&gpu; 101])).refused(400, "invalid_request", "100").await;
    with("max", json!(0)).refused(400, "invalid_request", "max").await;
    with("requestId", json!("r".repeat(101))).refused(400, "invalid_request", "100 characters").await;
    let alone = claim(json!({"factoryId": "f1", "requestId": "r3", "max": 2}));
    alone.refused(400, "invalid_request", "goes with `jobIds`").await;
}

#[tokio::test]
async fn the_shadow_shows_what_went_otherwise_to_those_who_may_see_it() {
    let world = World::start().await;
    set(&world, "delivery", json!("shadow")).await;
    world.factory("a-idle", &[]).await;
    world.factory("b-busy", &[]).await;
    let head = world.coordinator.head();
    world.coordinator.dispatch().lead_once().await.unwrap();
    let job = world.submit("alpha", "name: one").await;
    // Planned once the leader has seen it; then claimed elsewhere.
    world.coordinator.dispatch().dispatch_once().await.unwrap();
    world.claim("b-busy", "r1").await;
    let shown = async |token: &str| world.get("/api/fleet/shadow").token(token).gives(200).await.json();
    let found = async {
        let mut head = head;
        loop {
            let shadow = shown(&world.admin).await;
            if shadow["divergences"] == 1 {
                return shadow;
            }
            head.changed().await.unwrap();
        }
    };
    let shadow = tokio::time::timeout(crate::client::PATIENCE, found).await.expect("nothing diverged");
    let last = &shadow["recent"][0];
    assert_eq!(
        (&last["jobId"], &last["routedTo"], &last["claimedBy"]),
        (&json!(job.id.to_string()), &json!("a-idle"), &json!("b-busy"))
    );
    let elsewhere = world.token(Role::Viewer, &["beta"]).await;
    assert_eq!(shown(&elsewhere).await["recent"], json!([]));
    let metrics = world.get("/metrics").token(&world.admin).gives(200).await.text;
    assert!(metrics.contains("giga_shadow_divergences_total 1"), "{metrics}");
}
