//! Budgets and products over HTTP: exact money, one writer at a time, and the switch.

use axum::http::Method;
use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

const DEMO: &str = "/api/fleet/budgets/demo";

async fn set(world: &World, body: Value) -> Value {
    world.call(Method::PUT, DEMO).token(&world.admin).json(body).gives(200).await.json()
}

#[tokio::test]
async fn a_budget_nobody_set_has_no_limit_and_that_is_normal() {
    let world = World::start().await;
    let budget = world.get(DEMO).token(&world.admin).gives(200).await;
    assert_eq!(budget.header("etag"), "\"rev-0\"");
    let budget = budget.json();
    assert_eq!((&budget["ceilings"], &budget["reservedUsd"]), (&json!({}), &json!(0.0)));
    assert_eq!((budget.get("leftUsd"), budget.get("paused"), budget.get("jobUsd")), (None, None, None));
    let periods: Vec<&str> =
        budget["periods"].as_array().unwrap().iter().map(|p| p["period"].as_str().unwrap()).collect();
    assert_eq!(periods, ["day", "week", "month", "total"]);
    assert!(!budget.to_string().contains("null"), "{budget}");
    let list = world.get("/api/fleet/budgets").token(&world.admin).gives(200).await.json();
    assert_eq!(list["budgets"], json!([]));
}

#[tokio::test]
async fn money_is_kept_to_the_millionth_and_nothing_finer_is_taken() {
    let world = World::start().await;
    let given = json!({"day": 0.1, "week": 2.5, "month": 123_456_789.123_456, "total": null});
    let budget = set(&world, json!({"ceilings": given, "jobUsd": 0.000_001})).await;
    assert_eq!(budget["ceilings"], json!({"day": 0.1, "week": 2.5, "month": 123_456_789.123_456}));
    assert_eq!((&budget["jobUsd"], &budget["leftUsd"]), (&json!(0.000_001), &json!(0.1)));
    assert_eq!(budget["tightest"], "day");
    let put = |body: Value| world.call(Method::PUT, DEMO).token(&world.admin).json(body);
    for (body, field) in [
        (json!({"ceilings": {"day": -1}}), "ceilings.day"),
        (json!({"ceilings": {"week": 0.000_000_1}}), "ceilings.week"),
        (json!({"ceilings": {"month": 1e12}}), "ceilings.month"),
        (json!({"ceilings": {"total": "5"}}), "ceilings.total"),
        (json!({"jobUsd": 1.000_000_5}), "jobUsd"),
        (json!({"ceilings": {"year": 5}}), "ceilings.year"),
    ] {
        let refused = put(body).refused(400, "invalid_request", field).await;
        assert_eq!(refused.json()["errors"][0]["field"], field);
    }
    let now = world.get(DEMO).token(&world.admin).gives(200).await.json();
    assert_eq!(now["ceilings"], budget["ceilings"], "nothing of all this changed anything");
}

#[tokio::test]
async fn whoever_saw_an_older_one_does_not_overwrite() {
    let world = World::start().await;
    let put = |tag: &str| {
        let call = world.call(Method::PUT, DEMO).token(&world.admin).header("if-match", tag);
        call.json(json!({"ceilings": {"day": 5}}))
    };
    let first = put("\"rev-0\"").gives(200).await;
    assert_eq!(first.header("etag"), "\"rev-1\"");
    put("\"rev-0\"").refused(412, "rev_mismatch", "revision 1 by now, not 0").await;
}

#[tokio::test]
async fn what_runs_is_reserved_then_spent_and_drawn() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    set(&world, json!({"ceilings": {"day": 10}, "jobUsd": 4})).await;
    let job = world.building("demo", "f-1", "a").await;
    let shown = |path: &str| world.get(path).token(&world.admin);
    let budget = shown(DEMO).gives(200).await.json();
    assert_eq!((&budget["reservedUsd"], &budget["leftUsd"]), (&json!(4.0), &json!(6.0)));
    let renew = format!("/api/fleet/jobs/{}/lease/renew", job.id);
    let spend = json!({"leaseEpoch": 1, "spend": {"usd": 1.25, "tokens": 900}});
    world.post(&renew).token(&token).json(spend).gives(200).await;
    let held = shown(&format!("/api/fleet/jobs/{}", job.id)).gives(200).await.json();
    let lease = &held["lease"];
    assert_eq!(
        (&lease["reservedUsd"], &lease["spentUsd"], &lease["spentTokens"]),
        (&json!(4.0), &json!(1.25), &json!(900))
    );
    let fail = json!({"jobId": job.id.to_string(), "leaseEpoch": 1, "reason": "crash", "retryable": false,
        "spend": {"usd": 1.5, "tokens": 1_000}});
    world.post("/api/fleet/fail").token(&token).json(fail).gives(200).await;
    let budget = shown(DEMO).gives(200).await.json();
    assert_eq!((&budget["reservedUsd"], &budget["leftUsd"]), (&json!(0.0), &json!(8.5)));
    assert_eq!(
        (&budget["periods"][0]["spentUsd"], &budget["periods"][0]["tokens"]),
        (&json!(1.5), &json!(1_000))
    );

    world.clock.advance(std::time::Duration::from_mins(1));
    let correct = |body| world.post(&format!("{DEMO}/correct")).token(&world.admin).json(body);
    correct(json!({"usd": 0, "reason": "x"}))
        .refused(400, "invalid_request", "usd: it corrects nothing")
        .await;
    correct(json!({"usd": 1, "reason": " "})).refused(400, "invalid_request", "reason: say why").await;
    let corrected = correct(json!({"usd": -0.5, "reason": "refunded"})).gives(200).await.json();
    assert_eq!(corrected["leftUsd"], 9.0);
    world.clock.advance(std::time::Duration::from_mins(1));
    let drawn = shown(&format!("{DEMO}/burndown?bucket=1h")).gives(200).await.json();
    assert_eq!((&drawn["totalUsd"], &drawn["bucketMs"]), (&json!(1.0), &json!(3_600_000)));
    let runs: u64 = drawn["buckets"].as_array().unwrap().iter().map(|b| b["runs"].as_u64().unwrap()).sum();
    assert_eq!(runs, 1);
    for (query, needle) in [
        ("from=yesterday", "from: "),
        ("bucket=often", "bucket: `often` is not a duration"),
        ("bucket=0s", "bucket: "),
        ("since=x", "since: unknown query parameter"),
    ] {
        shown(&format!("{DEMO}/burndown?{query}")).refused(400, "invalid_request", needle).await;
    }
}

#[tokio::test]
async fn a_correction_with_a_key_is_booked_once() {
    let world = World::start().await;
    set(&world, json!({"ceilings": {"total": 10}, "jobUsd": 1})).await;
    let correct = |key: &str| {
        let call = world.post(&format!("{DEMO}/correct")).token(&world.admin).header("idempotency-key", key);
        call.json(json!({"usd": 1.5, "reason": "by mail"}))
    };
    let first = correct("mail-7").gives(200).await.json();
    assert_eq!(first["leftUsd"], 8.5);
    correct("mail-8").gives(200).await;
    assert_eq!(correct("mail-7").gives(200).await.json()["leftUsd"], 7.0, "another one came in between");
    correct("mail 9").refused(400, "invalid_request", "idempotency-key: ").await;
}

#[tokio::test]
async fn a_limit_that_uncapped_jobs_can_overrun_comes_with_a_warning() {
    let world = World::start().await;
    let warned = set(&world, json!({"ceilings": {"day": 10}})).await;
    let warning = warned["warnings"][0].as_str().unwrap();
    assert!(warning.contains("overrun") && warning.contains("giga budget set demo --job USD"), "{warning}");
    for sound in [json!({"ceilings": {"day": 10}, "jobUsd": 2}), json!({"ceilings": {}})] {
        assert_eq!(set(&world, sound).await.get("warnings"), None);
    }
}

#[tokio::test]
async fn the_holder_of_a_cancelled_run_says_what_it_cost() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    set(&world, json!({"ceilings": {"day": 10}, "jobUsd": 4})).await;
    let job = world.building("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    world.post(&format!("{path}/actions/cancel")).token(&world.admin).gives(200).await;
    let left = async || world.get(DEMO).token(&world.admin).gives(200).await.json()["leftUsd"].clone();
    assert_eq!(left().await, 6.0);
    let release = |body: Value| world.post(&format!("{path}/lease/release")).token(&token).json(body);
    let bill = json!({"leaseEpoch": job.epoch.0, "spend": {"usd": 1.5, "tokens": 7}});
    for _ in 0..2 {
        let answer = release(bill.clone()).gives(200).await.json();
        assert_eq!(answer["stage"], "cancelled");
        assert_eq!(left().await, 8.5);
    }
    release(json!({"leaseEpoch": job.epoch.0})).refused(409, "fenced", "does not hold the job").await;
}

#[tokio::test]
async fn the_switch_stops_and_starts_and_says_who_turned_it() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let running = world.building("demo", "f-1", "running").await;
    world.submit("demo", "name: waiting").await;
    let operator = world.token(Role::Operator, &["demo"]).await;
    let pause = |body: Value| world.post(&format!("{DEMO}/pause")).token(&operator).json(body);
    pause(json!({"reasn": "x"})).refused(400, "invalid_request", "did you mean `reason`?").await;
    let paused = pause(json!({"reason": "too many retries"})).gives(200).await.json();
    assert_eq!(paused["stopped"], 0);
    let why = &paused["budget"]["paused"];
    assert_eq!((&why["cause"], &why["reason"]), (&json!("operator"), &json!("too many retries")));
    assert!(why["by"].as_str().unwrap().starts_with("token "), "{why}");
    let claim =
        || world.post("/api/fleet/claim").token(&token).json(json!({"factoryId": "f-1", "requestId": "r2"}));
    claim().gives(204).await;

    let stopped = pause(json!({"stopRunning": true})).gives(200).await.json();
    assert_eq!(stopped["stopped"], 1);
    let renew = world.post(&format!("/api/fleet/jobs/{}/lease/renew", running.id)).token(&token);
    let answer = renew.json(json!({"leaseEpoch": running.epoch.0})).gives(200).await.json();
    assert_eq!(answer["directives"], json!(["preempt"]));

    let resumed = world.post(&format!("{DEMO}/resume")).token(&operator).gives(200).await.json();
    assert_eq!(resumed.get("paused"), None);
    claim().gives(200).await;
}

#[tokio::test]
async fn a_product_has_a_share_and_repositories_that_nobody_else_has() {
    let world = World::start().await;
    let path = |product: &str| format!("/api/fleet/products/{product}");
    let put =
        |product: &str, body: Value| world.call(Method::PUT, &path(product)).token(&world.admin).json(body);
    let plain = world.get(&path("demo")).token(&world.admin).gives(200).await.json();
    assert_eq!((&plain["share"], &plain["repos"], &plain["rev"]), (&json!(1.0), &json!([]), &json!(0)));
    let set =
        put("demo", json!({"share": 3, "weights": {"affinity": 2}, "repos": ["hello"]})).gives(200).await;
    assert_eq!(set.header("etag"), "\"rev-1\"");
    let set = set.json();
    assert_eq!(
        (&set["share"], &set["weights"]["affinity"], &set["weights"]["starvation"]),
        (&json!(3.0), &json!(2.0), &json!(1.5))
    );
    put("other", json!({"repos": ["hello"]})).refused(409, "repo_owned", "belongs to product demo").await;
    for (body, field) in [
        (json!({"share": 0}), "share"),
        (json!({"repos": ["-b"]}), "repos[0]"),
        (json!({"weights": {"speed": 1}}), "weights.speed"),
        (json!({"weights": {"load": -1}}), "weights.load"),
    ] {
        let refused = put("demo", body).refused(400, "invalid_request", field).await;
        assert_eq!(refused.json()["errors"][0]["field"], field);
    }
    // What one product takes, the others lose: not for the admin of one product to say.
    let admin = world.token(Role::Admin, &["demo"]).await;
    let call = world.call(Method::PUT, &path("demo")).token(&admin).json(json!({"share": 1000}));
    call.refused(403, "forbidden", "whole fleet").await;
    let list = world.get("/api/fleet/products").token(&admin).gives(200).await.json();
    assert_eq!(list["products"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_path_and_the_header_may_not_contradict_each_other() {
    let world = World::start().await;
    let call = world.get(DEMO).token(&world.admin).header("x-product-id", "other");
    call.refused(400, "invalid_request", "the path says demo, the header x-product-id says other").await;
    let viewer = world.token(Role::Viewer, &["other"]).await;
    world.get(DEMO).token(&viewer).refused(403, "forbidden", "for other, not for demo").await;
}
