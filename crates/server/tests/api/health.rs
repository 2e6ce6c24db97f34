//! Probes, Prometheus, and an orderly end.

use std::time::Duration;

use giga_server::ServerOptions;
use serde_json::json;

use crate::client::PATIENCE;
use crate::probe::Mood;
use crate::streams::Sse;
use crate::world::World;

#[tokio::test]
async fn readiness_follows_the_store() {
    let options = ServerOptions { ready_timeout: Duration::from_millis(50), ..ServerOptions::default() };
    let world = World::start_with(options).await;
    assert_eq!(world.get("/readyz").gives(200).await.json(), json!({"ready": true}));
    for (mood, problem) in [
        (Mood::Unavailable, "the store cannot be reached"),
        (Mood::Broken, "the store is broken"),
        (Mood::Silent, "the store does not answer"),
    ] {
        world.store.set(mood);
        let reply = world.get("/readyz").gives(503).await;
        assert_eq!(reply.json(), json!({"ready": false, "problem": problem}));
        world.get("/livez").gives(200).await;
    }
    world.store.set(Mood::Well);
    world.get("/readyz").gives(200).await;
}

#[tokio::test]
async fn prometheus_gets_counters_and_gauges() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    world.submit("demo", "name: a").await;
    world.building("demo", "f-1", "b").await;
    world.get("/api/fleet/jobs").gives(401).await;
    world.get("/nowhere").gives(404).await;
    let text = world.get("/metrics").gives(200).await.text;
    for line in [
        "giga_jobs_submitted_total{product=\"demo\"} 2",
        "giga_queue_depth{product=\"demo\",stage=\"queued\"} 1",
        "giga_queue_depth{product=\"demo\",stage=\"building\"} 1",
        "giga_factories{state=\"live\"} 1",
        "giga_factories{state=\"stale\"} 0",
        "giga_seats 8",
        "giga_seats_used 1",
        "giga_store_up 1",
        "giga_http_requests_total{method=\"GET\",route=\"/api/fleet/jobs\",status=\"401\"} 1",
        "giga_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
    ] {
        assert!(text.lines().any(|l| l == line), "no `{line}` in\n{text}");
    }
    for name in [
        "giga_store_commits_total",
        "giga_store_commands_total",
        "giga_feed_head",
        "giga_claim_conflicts_total",
    ] {
        assert!(text.contains(name), "no {name}");
    }
}

#[tokio::test]
async fn shutdown_ends_streams_and_long_polls_and_takes_nothing_new() {
    let mut world = World::start().await;
    let mut stream = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    let state = world.get("/api/fleet/queue-state").token(&world.admin).gives(200).await;
    let mut reads = world.store.queue_reads.subscribe();
    reads.mark_unchanged();
    let poll = world
        .get("/api/fleet/queue-state?wait=60s")
        .token(&world.admin)
        .header("if-none-match", state.header("etag"));
    let poll = tokio::spawn(poll.send());
    reads.changed().await.unwrap();
    world.shutdown.cancel();
    assert_eq!(poll.await.unwrap().status, 304);
    assert_eq!(stream.next().await, None);
    tokio::time::timeout(PATIENCE, &mut world.server).await.unwrap().unwrap().unwrap();
    let refused = world.http.get(format!("{}/livez", world.url)).send().await;
    assert!(refused.unwrap_err().is_connect());
}
