//! Probes, Prometheus, and an orderly end.

use std::time::Duration;

use axum::http::Method;
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
    world.get("/api/nowhere").gives(404).await;
    let text = world.get("/metrics").token(&world.admin).gives(200).await.text;
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
async fn prometheus_gets_the_budgets() {
    let world = World::start().await;
    let put = |product: &str, body| {
        world.call(Method::PUT, &format!("/api/fleet/budgets/{product}")).token(&world.admin).json(body)
    };
    let post = |path: &str, body| {
        world.post(&format!("/api/fleet/budgets/{path}")).token(&world.admin).json(body).gives(200)
    };
    put("demo", json!({"ceilings": {"day": 10, "total": 100}, "jobUsd": 2})).gives(200).await;
    world.factory("f-1", &[]).await;
    world.building("demo", "f-1", "b").await;
    post("demo/correct", json!({"usd": 3, "reason": "by hand"})).await;
    post("open/correct", json!({"usd": 0.25, "reason": "by hand"})).await;
    let metrics = || async { world.get("/metrics").token(&world.admin).gives(200).await.text };
    let has = |text: &str, lines: &[&str]| {
        for line in lines {
            assert!(text.lines().any(|l| l == *line), "no `{line}` in\n{text}");
        }
    };
    let text = metrics().await;
    has(
        &text,
        &[
            "# TYPE giga_spend_usd gauge",
            "giga_spend_usd{product=\"demo\"} 3.0",
            "giga_spend_usd{product=\"open\"} 0.25",
            "giga_budget_reserved_usd{product=\"demo\"} 2.0",
            "giga_budget_left_usd{product=\"demo\"} 5.0",
            "giga_budget_paused{product=\"demo\"} 0",
            "giga_budget_ceiling_usd{product=\"demo\",period=\"day\"} 10.0",
            "giga_budget_ceiling_usd{product=\"demo\",period=\"total\"} 100.0",
        ],
    );
    assert!(!text.contains("giga_budget_left_usd{product=\"open\"}"), "nothing limits it");
    // A correction may take something back.
    post("demo/correct", json!({"usd": -1, "reason": "refunded"})).await;
    post("demo/pause", json!({})).await;
    has(
        &metrics().await,
        &["giga_spend_usd{product=\"demo\"} 2.0", "giga_budget_paused{product=\"demo\"} 1"],
    );
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
