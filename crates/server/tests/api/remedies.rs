//! Remedies with a call: it is a route's, with that route's role, and made as it stands it does what the remedy says.

use std::time::Duration;

use axum::http::Method;
use giga_domain::factory::Advertised;
use giga_domain::token::Role;
use giga_domain::{CapabilitySet, FailReason, Failure, HolderAction, Job, RunReport, Stage};
use giga_server::routes::{self, Access, Route, Scope};
use serde_json::{Value, json};

use crate::world::World;

/// The only remedy with this command, after a look at its call.
async fn remedy(world: &World, job: &Job, command: &str) -> Value {
    let path = format!("/api/fleet/jobs/{}/explain", job.id);
    let explained = world.get(&path).token(&world.admin).gives(200).await.json();
    let remedies = explained["remedies"].as_array().unwrap();
    let mut found = remedies.iter().filter(|remedy| remedy["command"] == command);
    let (Some(remedy), None) = (found.next(), found.next()) else {
        panic!("no `{command}` in {remedies:#?}")
    };
    for remedy in remedies.iter().filter(|remedy| remedy.get("call").is_some()) {
        let route = route_of(&remedy["call"]);
        let Access::Role(role) = route.access else { panic!("{} is not for people", route.operation) };
        assert_eq!(remedy["call"]["role"], role.as_str(), "{}", route.operation);
        assert_eq!(remedy["call"]["everyProduct"], json!(route.scope == Scope::Fleet), "{}", route.operation);
        assert!(remedy["command"].is_string(), "a call without its command: {remedy}");
    }
    remedy.clone()
}

fn route_of(call: &Value) -> &'static Route {
    let (method, path) = (call["method"].as_str().unwrap(), call["path"].as_str().unwrap());
    let fits = |route: &&Route| {
        let (ours, given) = (route.path.split('/'), path.split('/'));
        route.method.as_str() == method
            && ours.clone().count() == given.clone().count()
            && ours
                .zip(given)
                .all(|(ours, given)| ours == given || ours.starts_with('{') && !given.contains('{'))
    };
    routes::table().iter().find(fits).unwrap_or_else(|| panic!("no route answers {method} {path}"))
}

/// Refused below the role that it names, done with it.
async fn make(world: &World, remedy: &Value) -> Value {
    let call = &remedy["call"];
    let role = Role::ALL.into_iter().find(|role| call["role"] == role.as_str()).unwrap();
    let below = Role::ALL.into_iter().rfind(|lower| *lower < role).unwrap();
    let send = async |role: Role| {
        let method: Method = call["method"].as_str().unwrap().parse().unwrap();
        let sent = world.call(method, call["path"].as_str().unwrap()).token(&world.token(role, &[]).await);
        match call.get("body") {
            Some(body) => sent.json(body.clone()),
            None => sent,
        }
    };
    send(below).await.refused(403, "forbidden", role.as_str()).await;
    send(role).await.gives(200).await.json()
}

async fn stage(world: &World, job: &Job) -> Stage {
    world.job(job.id).await.stage()
}

/// For a cause that is not tried again by itself.
fn fail() -> HolderAction {
    let failure = Failure { reason: FailReason::Crash, detail: None };
    HolderAction::Fail { failure, retryable: false }
}

async fn failed(world: &World, name: &str) -> Job {
    world.submit("demo", &format!("name: {name}")).await;
    let job = world.claim("f-1", name).await;
    world.hold(&job, vec![HolderAction::Start, fail()]).await
}

#[tokio::test]
async fn a_paused_product_is_resumed() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    world.post("/api/fleet/budgets/demo/pause").token(&world.admin).gives(200).await;
    let job = world.submit("demo", "name: a").await;
    let resumed = make(&world, &remedy(&world, &job, "giga budget resume demo").await).await;
    assert_eq!(resumed.get("paused"), None);
    world.claim("f-1", "r").await;
}

#[tokio::test]
async fn a_drain_is_ended() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    world.post("/api/fleet/factories/f-1/drain").token(&world.admin).gives(200).await;
    let job = world.submit("demo", "name: a").await;
    let factory = make(&world, &remedy(&world, &job, "giga factory drain f-1 --undo").await).await;
    assert_eq!(factory["state"], "active");
    world.claim("f-1", "r").await;
}

/// A call would set every limit, also those that somebody changed meanwhile.
#[tokio::test]
async fn a_limit_is_raised_by_the_command_alone() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let limits = json!({"ceilings": {"day": 1.0, "month": 20.0}});
    world.call(Method::PUT, "/api/fleet/budgets/demo").token(&world.admin).json(limits).gives(200).await;
    let job = world.submit("demo", "name: a\nbudget: {usd: 3}").await;
    let raise = remedy(&world, &job, "giga budget set demo --day 3.00").await;
    assert_eq!(raise.get("call"), None);
}

/// A call would approve what nobody has looked at: the work of another job, or a result that came meanwhile.
#[tokio::test]
async fn what_waits_for_review_is_looked_at_first_and_then_shipped() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    world.submit("demo", "name: a\nrepo: hello\nreview: {quorum: 1}").await;
    let job = world.claim("f-1", "r").await;
    let report = RunReport {
        branch: Some(format!("giga/job/{}/1", job.id)),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    };
    let job = world.hold(&job, vec![HolderAction::Start, HolderAction::Report(report)]).await;
    let waiting = world.submit("demo", &format!("name: b\ndeps: [{}]", job.id)).await;
    let command = format!("giga review {}", job.id);
    let of_dependency = remedy(&world, &waiting, &command).await;
    assert_eq!(of_dependency, json!({"message": "review the dependency", "command": command}));
    let own = remedy(&world, &job, &command).await;
    assert_eq!(own, json!({"message": "review it", "command": command}));
    let review = json!({"verdict": "approve", "leaseEpoch": 1});
    let path = format!("/api/fleet/jobs/{}/review", job.id);
    world.post(&path).token(&world.admin).json(review).gives(200).await;
    assert_eq!(stage(&world, &job).await, Stage::Testing);
    let ship = format!("giga job ship {}", job.id);
    assert_eq!(remedy(&world, &waiting, &ship).await["call"], remedy(&world, &job, &ship).await["call"]);
    make(&world, &remedy(&world, &job, &ship).await).await;
    assert_eq!(stage(&world, &job).await, Stage::Shipping);
    assert_eq!(stage(&world, &waiting).await, Stage::Blocked, "it is not in yet");
    world.merged(&job).await;
    assert_eq!(stage(&world, &job).await, Stage::Shipped);
    assert_eq!(stage(&world, &waiting).await, Stage::Queued, "and what waited for it goes on");
}

#[tokio::test]
async fn what_failed_is_tried_again_or_given_up() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = failed(&world, "a").await;
    make(&world, &remedy(&world, &job, &format!("giga job requeue {}", job.id)).await).await;
    assert_eq!(stage(&world, &job).await, Stage::Queued);
    world.claim("f-1", "away").await;

    let dep = failed(&world, "dep").await;
    let waiting = world.submit("demo", &format!("name: b\ndeps: [{}]", dep.id)).await;
    make(&world, &remedy(&world, &waiting, &format!("giga job requeue {}", dep.id)).await).await;
    assert_eq!(stage(&world, &dep).await, Stage::Queued);
    world.claim("f-1", "away-too").await;

    let job = failed(&world, "c").await;
    make(&world, &remedy(&world, &job, &format!("giga job cancel {}", job.id)).await).await;
    assert_eq!(stage(&world, &job).await, Stage::Cancelled);
}

#[tokio::test]
async fn the_failed_child_of_a_composite_is_tried_again() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let parent = world.submit("demo", "name: whole\nkind: composite").await;
    let path = format!("/api/fleet/jobs/{}/children", parent.id);
    let give = remedy(&world, &parent, &format!("giga job submit FILE... --parent {}", parent.id)).await;
    assert_eq!(give.get("call"), None, "which files, only a person knows");
    let children = json!({"children": [{"manifest": {"name": "part"}}]});
    world.post(&path).token(&world.admin).json(children).gives(201).await;
    let child = world.claim("f-1", "r").await;
    let child = world.hold(&child, vec![HolderAction::Start, fail()]).await;
    make(&world, &remedy(&world, &parent, &format!("giga job requeue {}", child.id)).await).await;
    assert_eq!(stage(&world, &child).await, Stage::Queued);
}

#[tokio::test]
async fn preemption_is_switched_on() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let one_seat = Advertised {
        capabilities: CapabilitySet::parse(["os:linux"]).unwrap(),
        seat_limit: 1,
        can_clone: true,
        ..Advertised::default()
    };
    world.coordinator.heartbeat("f-1".parse().unwrap(), one_seat).await.unwrap();
    world.submit("demo", "name: low\npriority: low").await;
    world.claim("f-1", "r").await;
    world.clock.advance(Duration::from_secs(1));
    let urgent = world.submit("demo", "name: urgent\npriority: critical").await;
    let switch = remedy(&world, &urgent, "giga flags set preemption true").await;
    assert_eq!(switch["call"]["everyProduct"], true);
    assert_eq!(make(&world, &switch).await["value"], true);
}
