//! A stale epoch on every route that a holder writes through: 409 `fenced`, and nothing changes.

use std::time::Duration;

use giga_domain::{Job, JobId};
use giga_ports::store::{ExpireLeases, JobStore as _};
use giga_server::routes::{self, Access, Code, Route};
use serde_json::{Value, json};

use crate::client::{Call, Reply};
use crate::world::World;

/// What a holder would send there: query and body. A holder's route that is not known here is not known to be fenced.
fn words(route: &Route, job: JobId, epoch: u64) -> (String, Value) {
    let checkpoint = json!({"wipRef": "refs/wip/zombie"});
    let spend = json!({"usd": 5, "tokens": 7});
    let body = match route.operation {
        "appendLog" => return (format!("?leaseEpoch={epoch}&offset=0"), json!("words of a zombie")),
        "putArtifact" => return (format!("?leaseEpoch={epoch}&name=zombie.txt"), json!("bytes of a zombie")),
        "failJob" => json!({
            "jobId": job.to_string(), "leaseEpoch": epoch, "reason": "crash", "retryable": false,
            "checkpoint": checkpoint, "spend": spend,
        }),
        "patchJob" => json!({"leaseEpoch": epoch, "stage": "testing", "checkpoint": checkpoint}),
        "reportJob" => json!({"leaseEpoch": epoch, "report": {"tokens": 7}, "checkpoint": checkpoint}),
        "getJobSecrets" => json!({"leaseEpoch": epoch}),
        "renewLease" => json!({"leaseEpoch": epoch, "spend": spend}),
        "askPeople" => json!({"leaseEpoch": epoch, "text": "by a zombie?"}),
        "markDelivered" => json!({"leaseEpoch": epoch, "seqs": [1]}),
        "releaseLease" => json!({"leaseEpoch": epoch, "checkpoint": checkpoint, "spend": spend}),
        unknown => panic!("{unknown} writes as a holder and has no fence test"),
    };
    (String::new(), body)
}

fn holder_routes() -> Vec<&'static Route> {
    // Children are fenced only where they come from inside a job; the suite of the store has that case.
    let holders = |r: &&Route| r.refusals.contains(&Code::Fenced) && r.operation != "submitChildren";
    let fenced: Vec<_> = routes::table().iter().filter(holders).collect();
    let writing = routes::table().iter().filter(|r| r.access == Access::Factory).map(|r| r.operation);
    let unfenced: Vec<_> = writing.filter(|op| !fenced.iter().any(|r| r.operation == *op)).collect();
    assert_eq!(
        unfenced,
        [
            "claimJob",
            "listCandidates",
            "acceptJob",
            "claimMerges",
            "renewMerges",
            "pushMerges",
            "settleMerge",
            "heartbeat",
            // Nothing that it holds goes with it: it is asked to release that first.
            "leaveFleet"
        ],
        "every other write of a factory names an epoch; an order to merge has its attempt"
    );
    fenced
}

async fn send(world: &World, route: &Route, job: JobId, epoch: u64, token: &str) -> Reply {
    let path = route.path.replace("{id}", &job.to_string());
    let (query, body) = words(route, job, epoch);
    let call = Call::new(&world.http, route.method.clone(), format!("{}{path}{query}", world.url));
    call.token(token).json(body).send().await
}

async fn assert_fenced(world: &World, route: &Route, job: &Job, epoch: u64, token: &str) {
    let (before, events) = (world.job(job.id).await, world.feed().await);
    let runs = world.coordinator.reads().runs(job.id).await.unwrap();
    let budget = world.coordinator.reads().budget(&job.product).await.unwrap();
    let reply = send(world, route, job.id, epoch, token).await;
    let problem = reply.json();
    assert_eq!((reply.status, &problem["code"]), (409, &json!("fenced")), "{}: {problem}", route.operation);
    assert_eq!(problem["leaseEpoch"], before.epoch.0);
    assert_eq!(problem["stage"], before.stage().as_str());
    assert_eq!(world.job(job.id).await, before, "{}", route.operation);
    assert_eq!(world.feed().await, events, "{}", route.operation);
    assert_eq!(world.coordinator.reads().runs(job.id).await.unwrap(), runs, "{}", route.operation);
    assert_eq!(
        world.coordinator.reads().budget(&job.product).await.unwrap(),
        budget,
        "{} spent",
        route.operation
    );
    assert_eq!(world.coordinator.reads().artifacts(job.id).await.unwrap(), [], "{}", route.operation);
    let path = format!("/api/fleet/jobs/{}/logs?epoch={epoch}", job.id);
    let log = world.get(&path).token(&world.admin).gives(200).await.json();
    assert_eq!(log["total"], 0, "{}", route.operation);
}

#[tokio::test]
async fn a_zombie_cannot_write_while_another_holds_the_job() {
    let world = World::start().await;
    let zombie = world.factory("zombie", &[]).await;
    let stale = world.building("demo", "zombie", "first").await;
    world.clock.advance(Duration::from_hours(1));
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    world.clock.advance(Duration::from_hours(1));
    world.factory("heir", &[]).await;
    let held = world.claim("heir", "second").await;
    assert_eq!(held.id, stale.id);
    for route in holder_routes() {
        assert_fenced(&world, route, &held, stale.epoch.0, &zombie).await;
        // The right epoch is of no use to another factory, and one that was never granted to nobody.
        assert_fenced(&world, route, &held, held.epoch.0, &zombie).await;
        assert_fenced(&world, route, &held, held.epoch.0 + 1, &zombie).await;
    }
}

#[tokio::test]
async fn a_zombie_cannot_write_to_a_job_that_waits_or_is_over() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let lost = world.building("demo", "f-1", "lost").await;
    world.clock.advance(Duration::from_hours(1));
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    let cancelled = world.building("demo", "f-1", "cancelled").await;
    let path = format!("/api/fleet/jobs/{}/actions/cancel", cancelled.id);
    world.post(&path).token(&world.admin).gives(200).await;
    for route in holder_routes() {
        assert_fenced(&world, route, &lost, lost.epoch.0, &token).await;
        // These two are the only words that the holder of a cancelled run still has.
        if !["renewLease", "releaseLease"].contains(&route.operation) {
            assert_fenced(&world, route, &cancelled, cancelled.epoch.0, &token).await;
        }
    }
    // The release says what the run cost, and with nothing reserved for it that changes nothing.
    let release = holder_routes().into_iter().find(|route| route.operation == "releaseLease").unwrap();
    let (before, events) = (world.job(cancelled.id).await, world.feed().await);
    assert_eq!(send(&world, release, cancelled.id, cancelled.epoch.0, &token).await.status, 200);
    assert_eq!((world.job(cancelled.id).await, world.feed().await), (before, events));
    // The renewal is how the holder learns of the cancellation.
    let renewed = world
        .post(&format!("/api/fleet/jobs/{}/lease/renew", cancelled.id))
        .token(&token)
        .json(json!({"leaseEpoch": cancelled.epoch.0}))
        .gives(200)
        .await;
    assert_eq!(renewed.json()["directives"], json!(["cancel"]));
}

#[tokio::test]
async fn a_job_that_does_not_exist_is_not_found() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    for route in holder_routes() {
        let reply = send(&world, route, JobId::MAX, 1, &token).await;
        assert_eq!((reply.status, &reply.json()["code"]), (404, &json!("not_found")), "{}", route.operation);
    }
}
