//! Policy floors: what a job keeps to, whoever submits it, and what it may hand on to its children.

use axum::http::Method;
use giga_domain::CapabilitySet;
use giga_domain::factory::Advertised;
use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

async fn set(world: &World, product: &str, settings: Value) {
    let path = format!("/api/fleet/products/{product}");
    world.call(Method::PUT, &path).token(&world.admin).json(settings).gives(200).await;
}

fn one(manifest: &Value) -> Value {
    json!({ "manifest": manifest })
}

const STRICT: &str =
    r#"{"quorum": 2, "autoShip": false, "engines": ["claude", "codex"], "sandbox": true, "network": "list"}"#;

fn strict() -> Value {
    json!({ "policy": serde_json::from_str::<Value>(STRICT).unwrap() })
}

#[tokio::test]
async fn a_submitter_cannot_go_below_the_floor() {
    let world = World::start().await;
    let submitter = world.token(Role::Submitter, &["alpha"]).await;
    let submit = |manifest: Value| world.post("/api/fleet/jobs").token(&submitter).json(one(&manifest));
    submit(json!({"name": "free", "ship": "auto"})).gives(201).await;
    set(&world, "alpha", strict()).await;

    let kept = submit(json!({"name": "a"})).gives(201).await.json();
    let job = &kept["job"];
    assert_eq!(job["engine"], "claude", "{job}");
    let id = job["id"].as_str().unwrap().parse().unwrap();
    let spec = world.job(id).await.spec;
    assert_eq!(spec.review.quorum, 2);
    let needed: Vec<&str> = spec.capabilities.iter().map(giga_domain::Capability::as_str).collect();
    assert_eq!(needed, ["engine:claude", "network:closed", "sandbox:bwrap"]);

    for (manifest, field, words) in [
        (json!({"name": "a", "ship": "auto"}), "ship", "must be manual"),
        (json!({"name": "a", "review": {"quorum": 1}}), "review", "for 2"),
        (json!({"name": "a", "engine": "shell", "script": "make"}), "engine", "claude, codex"),
    ] {
        let reply = submit(manifest.clone()).gives(400).await.json();
        assert_eq!(reply["errors"][0]["field"], field, "{reply}");
        let message = reply["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(words) && message.contains("product alpha"), "{message}");
        // A dry run says the same.
        let plan =
            world.post("/api/fleet/plan").token(&submitter).json(one(&manifest)).gives(400).await.json();
        assert_eq!(plan["errors"], reply["errors"]);
        let many = json!({"jobs": [one(&json!({"name": "fine"})), one(&manifest)]});
        let reply = world.post("/api/fleet/jobs/batch").token(&submitter).json(many).gives(400).await.json();
        assert_eq!(reply["errors"][0]["field"], format!("jobs[1].{field}"), "{reply}");
    }
}

/// What was acknowledged once is answered again, also by a floor that came later.
#[tokio::test]
async fn a_repeated_submit_is_answered_whatever_the_floor_has_become() {
    let world = World::start().await;
    let manifest = json!({"name": "a", "product": "alpha", "ship": "auto", "idempotencyKey": "k"});
    let submit = || world.post("/api/fleet/jobs").token(&world.admin).json(one(&manifest));
    let first = submit().gives(201).await.json();
    set(&world, "alpha", strict()).await;
    assert_eq!(submit().gives(200).await.json()["job"]["id"], first["job"]["id"]);
    // And what the floor filled in does not make another job of the same text.
    let plain = json!({"name": "b", "product": "alpha", "idempotencyKey": "l"});
    let submit = || world.post("/api/fleet/jobs").token(&world.admin).json(one(&plain));
    let first = submit().gives(201).await.json();
    set(&world, "alpha", json!({"policy": {"quorum": 3}})).await;
    assert_eq!(submit().gives(200).await.json()["job"]["id"], first["job"]["id"]);
}

#[tokio::test]
async fn a_repository_brings_the_floor_of_its_owner() {
    let world = World::start().await;
    set(&world, "alpha", json!({"repos": ["app"], "policy": {"quorum": 2}})).await;
    set(&world, "default", json!({"policy": {"autoShip": false}})).await;
    let flag = world.call(Method::PUT, "/api/fleet/flags/foreign_repos").token(&world.admin);
    flag.json(json!({"value": "route"})).gives(200).await;
    let beta = world.token(Role::Submitter, &["beta"]).await;
    let submit = |manifest: Value| world.post("/api/fleet/jobs").token(&beta).json(one(&manifest));
    let quorum = |job: &Value| job["job"]["gate"]["quorum"].clone();

    let foreign = submit(json!({"name": "a", "repo": "app", "ship": "auto"})).gives(201).await.json();
    assert_eq!(quorum(&foreign), 2, "{foreign}");
    let both = json!({"name": "a", "repos": ["app", "nobodys"], "ship": "auto"});
    let refused = submit(both).gives(400).await.json();
    assert_eq!(refused["errors"][0]["field"], "ship", "{refused}");
    submit(json!({"name": "a", "repo": "nobodys", "ship": "auto"})).gives(400).await;
    // Without a repository only its own product has a say.
    let free = submit(json!({"name": "a", "ship": "auto"})).gives(201).await.json();
    assert_eq!(quorum(&free), Value::Null, "{free}");
}

#[tokio::test]
async fn a_product_queues_and_keeps_no_more_than_its_policy_lets_it() {
    let world = World::start().await;
    set(&world, "alpha", json!({"policy": {"maxQueuedJobs": 2, "maxArtifactMib": 1}})).await;
    let submit = || {
        world.post("/api/fleet/jobs").token(&world.admin).json(one(&json!({"name": "a", "product": "alpha"})))
    };
    submit().gives(201).await;
    submit().gives(201).await;
    submit().refused(429, "too_many_requests", "its policy").await;
    world.submit("beta", "name: theirs").await;

    let factory = world.factory("f-1", &["alpha"]).await;
    let job = world.claim("f-1", "r").await;
    let put = |name: &str, bytes: usize| {
        let path = format!("/api/fleet/jobs/{}/artifacts?leaseEpoch=1&name={name}", job.id);
        world.post(&path).token(&factory).body("text/plain", "x".repeat(bytes))
    };
    put("half", 600 * 1024).gives(201).await;
    let reply = put("rest", 600 * 1024).gives(413).await;
    assert!(reply.text.contains("giga product policy"), "{}", reply.text);
}

/// Of everything that a job has, its children get that much and no more.
#[tokio::test]
async fn a_child_from_inside_has_no_more_than_its_parent() {
    let world = World::start().await;
    let factory = world.factory("f-1", &["alpha"]).await;
    let parent = json!({
        "name": "planner", "product": "alpha", "repo": "app", "engine": "codex", "base": "next", "target": "next",
        "capabilities": ["network:none", "gpu"], "budget": {"usd": 2, "tokens": 1000, "wall": "10m"},
        "merge": {"by": "push"},
    });
    world.post("/api/fleet/jobs").token(&world.admin).json(one(&parent)).gives(201).await;
    let advertised = Advertised {
        capabilities: CapabilitySet::parse(["engine:codex", "network:none", "gpu", "has:git"]).unwrap(),
        seat_limit: 8,
        can_clone: true,
        ..Advertised::default()
    };
    world.coordinator.heartbeat("f-1".parse().unwrap(), advertised).await.unwrap();
    let claim = json!({"factoryId": "f-1", "requestId": "r"});
    let grant = world.post("/api/fleet/claim").token(&factory).json(claim).gives(200).await.json();
    let inside = grant["jobToken"].as_str().unwrap().to_owned();
    let id = grant["job"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/fleet/jobs/{id}/children");
    let give = |manifest: Value| world.post(&path).token(&inside).json(json!({"children": [one(&manifest)]}));

    let made = give(json!({"name": "part", "repo": "app", "budget": {"usd": 1}})).gives(201).await.json();
    let child = world.job(made["jobs"][0]["job"]["id"].as_str().unwrap().parse().unwrap()).await.spec;
    assert_eq!((child.engine.to_string().as_str(), child.target.as_deref()), ("codex", Some("next")));
    let needed: Vec<&str> = child.capabilities.iter().map(giga_domain::Capability::as_str).collect();
    assert_eq!(
        needed,
        ["engine:codex", "network:none"],
        "shut in as far, and no more machine than it asks for"
    );
    assert_eq!((child.budget.tokens, child.budget.wall_ms), (Some(1000), Some(600_000)));
    assert_eq!(child.budget.usd, Some(giga_domain::Usd::from_dollars(1)));

    for (manifest, field) in [
        (json!({"name": "p", "repo": "lib"}), "repo"),
        (json!({"name": "p", "repos": ["app", "lib"]}), "repo"),
        (json!({"name": "p", "engine": "claude"}), "engine"),
        (json!({"name": "p", "engine": "shell", "script": "make"}), "engine"),
        (json!({"name": "p", "capabilities": ["has:git"]}), "capabilities"),
        (json!({"name": "p", "repo": "app", "target": "main"}), "target"),
        (json!({"name": "p", "repo": "app", "base": "main"}), "base"),
        (json!({"name": "p", "budget": {"usd": 2.01}}), "budget"),
        (json!({"name": "p", "budget": {"tokens": 1001}}), "budget"),
        (json!({"name": "p", "budget": {"wall": "11m"}}), "budget"),
        (json!({"name": "p", "ship": "auto"}), "ship"),
        (json!({"name": "p", "priority": "high"}), "priority"),
    ] {
        let reply = give(manifest).gives(400).await.json();
        assert_eq!(reply["errors"][0]["field"], format!("children[0].{field}"), "{reply}");
    }
    // Somebody who may submit anyway is not bound by what the parent has.
    let outside = json!({"children": [one(&json!({"name": "p", "engine": "claude"}))]});
    world.post(&path).token(&world.admin).json(outside).gives(201).await;

    let two_more: Vec<Value> = (0..2).map(|n| one(&json!({"name": format!("p{n}")}))).collect();
    set(&world, "alpha", json!({"policy": {"maxChildren": 3}})).await;
    let reply = world.post(&path).token(&inside).json(json!({"children": two_more})).gives(400).await;
    assert!(reply.text.contains("3 children at most"), "{}", reply.text);
    give(json!({"name": "last"})).gives(201).await;
    give(json!({"name": "over"})).gives(400).await;
}

/// Without a policy there is still an end.
#[tokio::test]
async fn what_runs_inside_a_job_cannot_make_children_without_end() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "planner").await;
    let inside = world.coordinator.job_token(job.id, job.epoch).await.unwrap().reveal().to_owned();
    let path = format!("/api/fleet/jobs/{}/children", job.id);
    let children = |count: usize| {
        let each = (0..count).map(|n| one(&json!({"name": format!("p{n}")})));
        json!({"children": each.collect::<Vec<_>>()})
    };
    let reply = world.post(&path).token(&inside).json(children(101)).gives(400).await;
    assert!(reply.text.contains("100 children at most"), "{}", reply.text);
    world.post(&path).token(&inside).json(children(100)).gives(201).await;
    world.post(&path).token(&inside).json(children(1)).gives(400).await;
    world.post(&path).token(&world.admin).json(children(1)).gives(201).await;
}
