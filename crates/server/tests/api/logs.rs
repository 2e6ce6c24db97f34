//! Logs over HTTP: pieces in order, nothing twice, live, and only for those who may see the job.

use std::time::Duration;

use giga_domain::token::Role;
use giga_domain::{HolderAction, Job, RunReport};
use giga_ports::store::{ExpireLeases, JobStore as _};
use serde_json::{Value, json};

use crate::client::{Call, PATIENCE};
use crate::world::World;

fn append(world: &World, job: &Job, token: &str, offset: u64, text: &str) -> Call {
    let path = format!("/api/fleet/jobs/{}/logs?leaseEpoch={}&offset={offset}", job.id, job.epoch.0);
    world.post(&path).token(token).body("application/octet-stream", text.to_owned())
}

fn read(world: &World, job: &Job, query: &str) -> Call {
    world.get(&format!("/api/fleet/jobs/{}/logs{query}", job.id)).token(&world.admin)
}

async fn piece(world: &World, job: &Job, query: &str) -> Value {
    read(world, job, query).gives(200).await.json()
}

#[tokio::test]
async fn a_log_grows_by_pieces_and_is_read_from_anywhere() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let empty = piece(&world, &job, "").await;
    assert_eq!((&empty["total"], &empty["complete"]), (&json!(0), &json!(false)));
    let first = append(&world, &job, &token, 0, "one\n").gives(200).await.json();
    assert_eq!(first, json!({"length": 4}));
    append(&world, &job, &token, 0, "one\n").gives(200).await;
    assert_eq!(append(&world, &job, &token, 2, "e\ntwo\n").gives(200).await.json()["length"], 8);
    assert_eq!(piece(&world, &job, "").await["text"], "one\ntwo\n", "what is repeated is there once");
    let rest = piece(&world, &job, "?offset=4&epoch=1").await;
    assert_eq!(
        (&rest["text"], &rest["nextOffset"], &rest["leaseEpoch"]),
        (&json!("two\n"), &json!(8), &json!(1))
    );
}

#[tokio::test]
async fn a_gap_is_refused_and_says_where_the_log_ends() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    append(&world, &job, &token, 0, "one\n").gives(200).await;
    append(&world, &job, &token, 9, "late\n").refused(409, "log_gap", "4").await;
    assert_eq!(piece(&world, &job, "").await["text"], "one\n");
    let path = format!("/api/fleet/jobs/{}/logs", job.id);
    for (query, field) in [("?offset=0", "leaseEpoch"), ("?leaseEpoch=1", "offset")] {
        let call = world.post(&format!("{path}{query}")).token(&token);
        call.refused(400, "invalid_request", field).await;
    }
}

#[tokio::test]
async fn an_older_holder_adds_to_no_log() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let stale = world.building("demo", "f-1", "a").await;
    append(&world, &stale, &token, 0, "before\n").gives(200).await;
    world.clock.advance(Duration::from_hours(1));
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    world.clock.advance(Duration::from_hours(1));
    world.factory("heir", &[]).await;
    let held = world.claim("heir", "second").await;
    assert_eq!(held.id, stale.id);
    append(&world, &stale, &token, 7, "after\n").refused(409, "fenced", "").await;
    append(&world, &held, &token, 0, "after\n").refused(409, "fenced", "").await;
    assert_eq!(piece(&world, &held, "").await["total"], 0, "the newest run has its own log");
    let old = piece(&world, &held, "?epoch=1").await;
    assert_eq!((&old["text"], &old["complete"]), (&json!("before\n"), &json!(true)));
}

#[tokio::test]
async fn whoever_waits_is_told_at_once_and_the_end_is_marked() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    // Whichever of the two comes first, the reader gets the line long before its minute is over.
    let follow = tokio::spawn(read(&world, &job, "?wait=60s").send());
    append(&world, &job, &token, 0, "line\n").gives(200).await;
    let woken = tokio::time::timeout(PATIENCE, follow).await.unwrap().unwrap().json();
    assert_eq!((&woken["text"], &woken["complete"]), (&json!("line\n"), &json!(false)));
    let follow = tokio::spawn(read(&world, &job, "?wait=60s&offset=5").send());
    world.hold(&job, vec![HolderAction::Report(RunReport::default())]).await;
    let last = tokio::time::timeout(PATIENCE, follow).await.unwrap().unwrap().json();
    assert_eq!((&last["text"], &last["complete"]), (&json!(""), &json!(true)), "the run is over");
    let whole = piece(&world, &job, "?wait=60s").await;
    assert_eq!((&whole["text"], &whole["complete"]), (&json!("line\n"), &json!(true)));
}

#[tokio::test]
async fn another_products_log_does_not_exist() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "a").await;
    append(&world, &job, &token, 0, "secret\n").gives(200).await;
    let path = format!("/api/fleet/jobs/{}/logs", job.id);
    let own = world.token(Role::Viewer, &["alpha"]).await;
    assert_eq!(world.get(&path).token(&own).gives(200).await.json()["text"], "secret\n");
    let other = world.token(Role::Viewer, &["beta"]).await;
    world.get(&path).token(&other).refused(404, "not_found", "there is no job").await;
}

#[tokio::test]
async fn a_character_on_the_edge_of_two_pieces_stays_whole_after_the_run() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    // Two bytes each after an odd one, so that every edge of a power of two cuts one in two.
    let written = format!("x{}", "ü".repeat(200_000));
    let (first, second) = written.split_at(200_001);
    append(&world, &job, &token, 0, first).gives(200).await;
    append(&world, &job, &token, first.len() as u64, second).gives(200).await;
    world.hold(&job, vec![HolderAction::Report(RunReport::default())]).await;
    let (mut read, mut offset) = (String::new(), 0);
    loop {
        let piece = piece(&world, &job, &format!("?offset={offset}")).await;
        read.push_str(piece["text"].as_str().unwrap());
        offset = piece["nextOffset"].as_u64().unwrap();
        if piece["complete"] == json!(true) {
            break;
        }
    }
    assert_eq!((read.len(), read == written), (written.len(), true));
}
