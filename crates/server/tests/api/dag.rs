//! Graphs of jobs: many in one submit, children, trees, and what is said about those that are wrong.

use axum::http::Method;
use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

const BATCH: &str = "/api/fleet/jobs/batch";

fn id_of(answer: &Value, place: usize) -> String {
    answer["jobs"][place]["job"]["id"].as_str().unwrap().to_owned()
}

async fn composite(world: &World) -> String {
    world.submit("alpha", "name: release\nkind: composite").await.id.to_string()
}

fn children_of(id: &str) -> String {
    format!("/api/fleet/jobs/{id}/children")
}

#[tokio::test]
async fn jobs_that_come_together_name_each_other() {
    let world = World::start().await;
    let token = world.token(Role::Submitter, &["alpha"]).await;
    let jobs = json!({"jobs": [
        {"manifest": {"name": "publish", "deps": ["build", "test"], "idempotencyKey": "p"}},
        {"manifest": {"name": "build"}, "bodyMd": "Build it.", "idempotencyKey": "b"},
        {"markdown": "---\nname: test\ndeps: [build]\nidempotencyKey: t\n---\nTest it.\n"},
    ]});
    let made = world.post(BATCH).token(&token).json(jobs.clone()).gives(201).await.json();
    let (publish, build, test) = (id_of(&made, 0), id_of(&made, 1), id_of(&made, 2));
    let stages: Vec<&str> =
        made["jobs"].as_array().unwrap().iter().map(|made| made["job"]["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["blocked", "queued", "blocked"]);
    assert_eq!(made["jobs"][0]["job"]["deps"], json!([build, test]));
    assert_eq!(made["jobs"][1]["job"]["productId"], "alpha");
    let shown = world.get(&format!("/api/fleet/jobs/{test}")).token(&world.admin).gives(200).await.json();
    assert_eq!(shown["bodyMd"], "Test it.\n");
    // The same again makes nothing, and waits for the same.
    let again = world.post(BATCH).token(&token).json(jobs).gives(200).await.json();
    assert_eq!((id_of(&again, 0), id_of(&again, 1), id_of(&again, 2)), (publish, build, test));
    assert_eq!(again["jobs"][0]["created"], false);
}

#[tokio::test]
async fn a_problem_names_the_job_and_its_field() {
    let world = World::start().await;
    let admin = &world.admin;
    let parent = composite(&world).await;
    let unknown = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC";
    let cases = [
        (json!([{"name": "a"}, {"name": "b", "deps": ["a", "c"]}]), "[1].deps[1]", "did you mean `a`?"),
        (
            json!([{"name": "a"}, {"name": "a"}, {"name": "b", "deps": ["a"]}]),
            "[2].deps[0]",
            "2 jobs of this submit",
        ),
        (json!([{"name": "a", "deps": [unknown]}]), "[0].deps[0]", "there is no job"),
        (
            json!([{"name": "x"}, {"name": "a", "deps": ["b"]}, {"name": "b", "deps": ["a"]}]),
            "[1].deps",
            "a → b → a",
        ),
        (json!([{"name": "a"}, {"name": "b", "priority": "hihg"}]), "[1].priority", "did you mean `high`?"),
        (json!([{"name": "a"}, {"name": "b", "persona": "coder@1"}]), "[1].persona", "coder"),
        (json!([{"name": "a"}, {"deps": ["a"]}]), "[1].name", "is required"),
        (json!([]), "", "at least one"),
    ];
    let before = world.feed().await.len();
    for (manifests, field, needle) in cases {
        let items: Vec<Value> =
            manifests.as_array().unwrap().iter().map(|manifest| json!({ "manifest": manifest })).collect();
        for (path, list) in [(BATCH.to_owned(), "jobs"), (children_of(&parent), "children")] {
            let reply = world.post(&path).token(admin).header("x-product-id", "alpha");
            let refused = reply.json(json!({ list: items })).gives(400).await;
            let problem = refused.json();
            assert_eq!(problem["errors"][0]["field"], format!("{list}{field}"), "{problem}");
            let text = problem["errors"][0]["message"].as_str().unwrap();
            assert!(text.contains(needle), "{text}");
            assert!(problem["detail"].as_str().unwrap().contains(list), "{problem}");
        }
    }
    let neither = json!({"jobs": [{"manifest": {"name": "a"}, "markdown": "---\nname: a\n---\n"}]});
    world.post(BATCH).token(admin).json(neither).refused(400, "invalid_request", "jobs[0].manifest").await;
    let two_keys =
        json!({"jobs": [{"manifest": {"name": "a", "idempotencyKey": "x"}, "idempotencyKey": "y"}]});
    world
        .post(BATCH)
        .token(admin)
        .json(two_keys)
        .refused(400, "invalid_request", "jobs[0].idempotencyKey")
        .await;
    let many: Vec<Value> = (0..1_001).map(|n| json!({"manifest": {"name": format!("j{n}")}})).collect();
    world
        .post(BATCH)
        .token(admin)
        .json(json!({ "jobs": many }))
        .refused(400, "invalid_request", "1001")
        .await;
    assert_eq!(world.feed().await.len(), before, "nothing was made");
}

#[tokio::test]
async fn a_circle_through_the_parent_is_drawn() {
    let world = World::start().await;
    let parent = composite(&world).await;
    let after = world.submit("alpha", &format!("name: after\ndeps: [{parent}]")).await.id;
    let child = json!({"children": [{"manifest": {"name": "child", "deps": [after.to_string()]}}]});
    let reply = world.post(&children_of(&parent)).token(&world.admin).json(child);
    let drawn = format!("child → {after} → {parent} → child would wait for itself");
    let refused = reply.refused(400, "invalid_request", &drawn).await;
    assert_eq!(refused.json()["errors"][0]["field"], "children[0].deps");
}

#[tokio::test]
async fn children_are_their_parents() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let dep = world.submit("alpha", "name: first\nship: auto").await;
    let parent = world.submit("alpha", &format!("name: release\nkind: composite\ndeps: [{}]", dep.id)).await;
    let path = children_of(&parent.id.to_string());
    let child = |manifest: Value| json!({"children": [{ "manifest": manifest }]});
    let made = world.post(&path).token(&world.admin);
    let made = made
        .json(child(json!({"name": "one", "ship": "auto", "idempotencyKey": "one"})))
        .gives(201)
        .await
        .json();
    let one = &made["jobs"][0]["job"];
    assert_eq!((&one["parentId"], &one["stage"]), (&json!(parent.id.to_string()), &json!("blocked")));
    assert_eq!(one["deps"], json!([dep.id.to_string()]), "what the composite waits for, it waits for");
    let any = child(json!({"name": "two", "depsMode": "any"}));
    world
        .post(&path)
        .token(&world.admin)
        .json(any)
        .refused(400, "invalid_request", "children[0].depsMode")
        .await;
    let foreign = child(json!({"name": "two", "product": "beta"}));
    let refused = world.post(&path).token(&world.admin).json(foreign);
    refused.refused(400, "invalid_request", "children[0].product").await;
    // The same key under another parent is another job.
    let other = children_of(&composite(&world).await);
    let keyed = child(json!({"name": "one", "ship": "auto", "idempotencyKey": "one"}));
    world
        .post(&other)
        .token(&world.admin)
        .json(keyed.clone())
        .refused(409, "idempotency_conflict", "one")
        .await;
    // A parent that is over takes none, but still answers for those that it has.
    let cancel = format!("/api/fleet/jobs/{}/actions/cancel", parent.id);
    world.post(&cancel).token(&world.admin).gives(200).await;
    let late = child(json!({"name": "late"}));
    world
        .post(&path)
        .token(&world.admin)
        .json(late)
        .refused(409, "illegal_transition", "takes no more")
        .await;
    world.post(&path).token(&world.admin).json(keyed).gives(200).await;
}

#[tokio::test]
async fn a_tree_shows_how_far_it_is() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let parent = composite(&world).await;
    let outside = world.submit("alpha", "name: outside\ncapabilities: [nobody]").await.id.to_string();
    let children = json!({"children": [
        {"manifest": {"name": "one", "ship": "auto"}},
        {"manifest": {"name": "two", "deps": ["one", outside]}},
        {"manifest": {"name": "part", "kind": "composite"}},
    ]});
    let made = world.post(&children_of(&parent)).token(&world.admin).json(children).gives(201).await.json();
    let part = id_of(&made, 2);
    let deep = json!({"children": [{"manifest": {"name": "deep", "capabilities": ["nobody"]}}]});
    world.post(&children_of(&part)).token(&world.admin).json(deep).gives(201).await;
    let job = world.claim("f-1", "r-1").await;
    assert_eq!(job.id.to_string(), id_of(&made, 0));
    let report =
        giga_domain::RunReport { cost: Some(giga_domain::Usd::from_micros(420_000)), ..Default::default() };
    let last = giga_domain::HolderAction::Report(report);
    world.hold(&job, vec![giga_domain::HolderAction::Start, last]).await;
    let viewer = world.token(Role::Viewer, &["alpha"]).await;
    let dag = world.get(&format!("/api/fleet/jobs/{parent}/dag")).token(&viewer).gives(200).await.json();
    assert_eq!(dag["rootId"], parent);
    assert_eq!(
        dag["progress"],
        json!({"total": 3, "shipped": 1, "percent": 33, "spentUsd": 0.42,
               "byStage": {"shipped": 1, "blocked": 1, "queued": 1}})
    );
    let depths: Vec<(&str, u64)> = dag["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["name"].as_str().unwrap(), job["depth"].as_u64().unwrap()))
        .collect();
    assert_eq!(depths, [("release", 0), ("one", 1), ("two", 1), ("part", 1), ("deep", 2)]);
    assert_eq!(dag["jobs"][3]["progress"]["total"], 1);
    assert_eq!(dag["jobs"][2]["deps"], json!([id_of(&made, 0), outside]));
    assert_eq!(dag["outside"], json!([{"id": outside, "name": "outside", "stage": "queued"}]));
    assert_eq!(dag["truncated"], false);
    let leaf = world.get(&format!("/api/fleet/jobs/{}/dag", job.id)).token(&viewer).gives(200).await.json();
    assert_eq!((&leaf["progress"]["percent"], leaf["jobs"].as_array().unwrap().len()), (&json!(100), 1));
}

/// Refused as a job that comes alone would be, with its place.
#[tokio::test]
async fn one_of_many_is_refused_as_if_it_came_alone() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let put = |path: &str, body: Value| world.call(Method::PUT, path).token(&world.admin).json(body);
    put("/api/fleet/products/beta", json!({"repos": ["hello"]})).gives(200).await;
    put("/api/fleet/flags/strict", json!({"value": true})).gives(200).await;
    let parent = composite(&world).await;
    let cases = [
        (json!({"name": "b", "repo": "hello"}), 409, "repo_owned", "repo"),
        (json!({"name": "b", "capabilities": ["os:linx"]}), 422, "unroutable", "capabilities"),
    ];
    for (manifest, status, code, field) in cases {
        let items = json!([{"manifest": {"name": "a"}}, { "manifest": manifest }]);
        for (path, list) in [(BATCH.to_owned(), "jobs"), (children_of(&parent), "children")] {
            let call = world.post(&path).token(&world.admin).header("x-product-id", "alpha");
            let problem = call.json(json!({ list: items })).gives(status).await.json();
            assert_eq!((&problem["code"], problem["errors"].as_array().unwrap().len()), (&json!(code), 1));
            let place = format!("{list}[1].{field}");
            assert_eq!(problem["errors"][0]["field"], place, "{problem}");
            assert!(problem["detail"].as_str().unwrap().starts_with(&place), "{problem}");
        }
    }
}

/// A running agent hands parts of its work out, with the token that it was given.
#[tokio::test]
async fn what_runs_inside_a_job_gives_it_children() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "planner").await;
    let inside = world.coordinator.job_token(job.id, job.epoch).await.unwrap().reveal().to_owned();
    let path = children_of(&job.id.to_string());
    let children = json!({"children": [{"manifest": {"name": "part"}}]});
    let made = world.post(&path).token(&inside).json(children.clone()).gives(201).await.json();
    assert_eq!(made["jobs"][0]["job"]["parentId"], job.id.to_string());
    let dag = format!("/api/fleet/jobs/{}/dag", job.id);
    assert_eq!(world.get(&dag).token(&inside).gives(200).await.json()["progress"]["total"], 2);
    // It has no more to give than it has itself.
    let whole = "x".repeat(1024 * 1024);
    let more = [
        (json!({"name": "part", "ship": "auto"}), "ship"),
        (json!({"name": "part", "priority": "high"}), "priority"),
        (json!({"name": "part", "product": "beta"}), "product"),
    ];
    for (manifest, field) in more {
        let refused = json!({"children": [{"manifest": {"name": "fine"}}, { "manifest": manifest }]});
        let reply = world.post(&path).token(&inside).json(refused).gives(400).await.json();
        assert_eq!(reply["errors"][0]["field"], format!("children[1].{field}"), "{reply}");
    }
    let gated = json!({"quorum": 1, "reviewers": ["ana"]});
    let asked = world.post(&format!("/api/fleet/jobs/{}/review/request", job.id)).token(&world.admin);
    asked.json(gated.clone()).gives(200).await;
    for review in [json!({"quorum": 1}), json!({"quorum": 1, "reviewers": ["ana", "eve"]})] {
        let refused = json!({"children": [{"manifest": {"name": "part", "review": review}}]});
        let reply = world.post(&path).token(&inside).json(refused).gives(400).await.json();
        assert_eq!(reply["errors"][0]["field"], "children[0].review", "{reply}");
    }
    let same = json!({"children": [{"manifest": {"name": "part", "review": gated}}]});
    world.post(&path).token(&inside).json(same).gives(201).await;
    let large = json!({"children": [{"manifest": {"name": "part"}}, {"manifest": {"name": "part"}, "bodyMd": whole}]});
    let reply = world.post(&path).token(&world.admin).json(large).gives(400).await.json();
    assert_eq!(reply["errors"][0]["field"], "children[1].bodyMd", "{reply}");
    let other = world.submit("alpha", "name: other").await.id.to_string();
    world
        .post(&children_of(&other))
        .token(&inside)
        .json(children)
        .refused(404, "not_found", "there is no job")
        .await;
}
