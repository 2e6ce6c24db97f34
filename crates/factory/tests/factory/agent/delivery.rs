//! Every way in which jobs reach a factory, switches between them, and what happens when a way is down.

use std::sync::Arc;

use async_trait::async_trait;
use giga_api::wire::Stage;
use giga_broker::{Embedded, NatsKey};
use giga_domain::{Delivery, FactoryId};
use giga_factory::agent::BrokerConnector;
use giga_ports::BrokerError;
use giga_ports::broker::Offers;
use giga_testkit::nats::NatsServer;
use serde_json::json;

use super::proxy::Proxy;
use super::world::{Factory, World};

const CLAIM: &str = "/api/fleet/claim";
const ACCEPT: &str = "/api/fleet/accept";
const MERGES: &str = "/api/fleet/merges/claim";
const GATE: &str = "/api/fleet/queue-state";
const HEARTBEAT: &str = "/api/fleet/factories/heartbeat";

/// A world whose factories soon hear of a change.
async fn world(mode: Delivery) -> World {
    prepared(World::start().await, mode).await
}

async fn prepared(world: World, mode: Delivery) -> World {
    world.set_flag("heartbeat_interval_ms", json!(250)).await;
    world.set_flag("delivery", json!(mode)).await;
    world
}

async fn does_a_job(world: &World, name: &str) {
    let job = world.submit(name, "ship: auto", "true").await;
    world.until_stage(&job, Stage::Shipped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_come_down_the_stream_without_a_claim() {
    let world = world(Delivery::Stream).await;
    let mut config = world.config("a");
    config.seats = 3;
    let factory = Factory::start(config);
    let mut jobs = Vec::new();
    for number in 0..12 {
        jobs.push(world.submit(&format!("job-{number}"), "ship: auto", "true").await);
    }
    for job in &jobs {
        let done = world.until_stage(job, Stage::Shipped).await;
        assert_eq!(done.lease_epoch, 1, "granted once");
    }
    assert_eq!(world.answered(CLAIM).await, 0);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_shipped_is_merged_without_asking_round() {
    let world = world(Delivery::Stream).await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    world.until_delivered_by("a", Delivery::Stream).await;
    let asked = world.answered(GATE).await;
    let job = world.submit("fix", "repo: hello\nship: auto", "echo hello > greeting.txt").await;
    world.until_merged(&job).await;
    assert_eq!(origin.file("main", "greeting.txt"), "hello");
    assert_eq!(world.answered(GATE).await, asked);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_stream_asks_for_nothing() {
    let world = world(Delivery::Stream).await;
    let factory = world.factory("a");
    world.until_delivered_by("a", Delivery::Stream).await;
    // The look for merges that begins every way has been made when this many signs of life have come.
    let beats = async |count: u64| {
        world.until_answered(HEARTBEAT, world.answered(HEARTBEAT).await + count).await;
    };
    beats(2).await;
    let asked = async || {
        let mut asked = Vec::new();
        for route in [GATE, CLAIM, ACCEPT, MERGES] {
            asked.push((route, world.answered(route).await));
        }
        asked
    };
    let before = asked().await;
    // The queue changes, but not for this factory. Whoever waits at the gate would pass it.
    world.submit("drawing", "capabilities: [gpu]", "true").await;
    beats(4).await;
    assert_eq!(asked().await, before);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_is_switched_while_a_job_runs() {
    let world = world(Delivery::Stream).await;
    let mut config = world.config("a");
    config.seats = 2;
    let factory = Factory::start(config);
    let gate = world.gate("gate");
    let long = world.submit("long", "ship: auto", &format!("echo up; read _ < {}", gate.display())).await;
    world.until_logged(&long, "up\n").await;
    let ways = [Delivery::Poll, Delivery::SelfSelect, Delivery::Stream, Delivery::Shadow, Delivery::Stream];
    for (turn, mode) in ways.into_iter().enumerate() {
        world.set_flag("delivery", json!(mode)).await;
        world.until_delivered_by("a", mode).await;
        let claims = world.answered(CLAIM).await;
        does_a_job(&world, &format!("turn-{turn}")).await;
        let asked = world.answered(CLAIM).await > claims;
        assert_eq!(asked, mode != Delivery::Stream, "{mode}");
    }
    // For one factory alone.
    world.set_flag("delivery.a", json!("poll")).await;
    world.until_delivered_by("a", Delivery::Poll).await;
    std::fs::write(gate, "go\n").unwrap();
    let done = world.until_stage(&long, Stage::Shipped).await;
    assert_eq!(done.lease_epoch, 1, "it was never disturbed");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_is_polled_around_until_it_is_back() {
    let world = world(Delivery::Stream).await;
    let proxy = Proxy::of(&world.url).await;
    let mut config = world.config("a");
    config.url.clone_from(&proxy.url);
    let factory = Factory::start(config);
    world.until_delivered_by("a", Delivery::Stream).await;

    proxy.no_streams();
    world.until_delivered_by("a", Delivery::Poll).await;
    does_a_job(&world, "meanwhile").await;
    let claims = world.answered(CLAIM).await;
    assert!(claims > 0, "it asked");

    proxy.everything_through();
    world.until_delivered_by("a", Delivery::Stream).await;
    let claims = world.answered(CLAIM).await;
    does_a_job(&world, "afterwards").await;
    assert_eq!(world.answered(CLAIM).await, claims);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_is_gone_for_a_while_is_found_again() {
    let world = world(Delivery::Stream).await;
    let proxy = Proxy::of(&world.url).await;
    let mut config = world.config("a");
    config.url.clone_from(&proxy.url);
    let factory = Factory::start(config);
    world.until_delivered_by("a", Delivery::Stream).await;
    does_a_job(&world, "before").await;
    proxy.gone();
    let job = world.submit("between", "ship: auto", "true").await;
    proxy.everything_through();
    world.until_stage(&job, Stage::Shipped).await;
    world.until_delivered_by("a", Delivery::Stream).await;
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streaming_factory_that_leaves_is_left_alone() {
    let world = world(Delivery::Stream).await;
    let factory = world.factory("a");
    let gate = world.gate("gate");
    let job = world.submit("long", "", &format!("echo up; read _ < {}", gate.display())).await;
    world.until_logged(&job, "up\n").await;
    factory.drain().await;
    world.until_stage(&job, Stage::Queued).await;
    world.until_delivered_by("a", Delivery::Poll).await;
    let events = world.client.job_events(&job, None).await.unwrap().value.events;
    let events: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let once = ["job.submitted", "job.targeted", "job.assigned", "job.started", "job.released"];
    assert_eq!(events, once, "handed back, and not handed out again");
}

/// A grant whose answer was lost is held by the factory: it must not wait for the end of its lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_was_lost_is_repeated_until_it_is_heard() {
    for mode in [Delivery::Poll, Delivery::SelfSelect] {
        let world = world(mode).await;
        world.set_flag("lease_ms", json!(600_000)).await;
        let proxy = Proxy::of(&world.url).await;
        proxy.no_answers_to_claims();
        let mut config = world.config("a");
        config.url.clone_from(&proxy.url);
        let factory = Factory::start(config);
        let job = world.submit("lost", "ship: auto", "true").await;
        world.until_stage(&job, Stage::Assigned).await;
        // More than one call tries by itself: the agent has come back with another one.
        world.until_answered(CLAIM, world.answered(CLAIM).await + 5).await;
        assert_eq!(world.job(&job).await.stage, Stage::Assigned, "nobody has heard of it");
        proxy.everything_through();
        assert_eq!(world.until_stage(&job, Stage::Shipped).await.lease_epoch, 1, "{mode}");
        factory.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_that_picks_by_itself_takes_only_what_it_can_run() {
    let world = world(Delivery::SelfSelect).await;
    world.origin("hello");
    let mut cannot = Vec::new();
    for (name, more) in [
        ("drawing", "priority: critical\ncapabilities: [gpu]"),
        ("elsewhere", "priority: critical\nrepo: nowhere"),
    ] {
        cannot.push(world.submit(name, more, "true").await);
    }
    let mut jobs = Vec::new();
    for number in 0..5 {
        jobs.push(world.submit(&format!("job-{number}"), "repo: hello\nship: auto", "true").await);
    }
    let mut config = world.config("a");
    config.seats = 2;
    let factory = Factory::start(config);
    for job in &jobs {
        assert_eq!(world.until_stage(job, Stage::Shipped).await.lease_epoch, 1);
    }
    world.until_delivered_by("a", Delivery::SelfSelect).await;
    for job in &cannot {
        let job = world.job(job).await;
        assert_eq!((job.stage.as_str(), job.lease_epoch), ("queued", 0), "{}", job.name);
    }
    factory.drain().await;
}

/// As the composition root makes it.
#[derive(Debug)]
struct Nats(String, Option<NatsKey>);

#[async_trait]
impl BrokerConnector for Nats {
    async fn read_offers(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        giga_broker::read_offers(&self.0, self.1.as_ref(), factory).await
    }

    fn secret(&self) -> Option<String> {
        None
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_reads_its_own_offers_and_polls_while_the_broker_is_down() {
    let nats = NatsServer::start();
    let world = World::start_on(giga_broker::open(&nats.url()).await.unwrap()).await;
    let world = prepared(world, Delivery::Broker).await;
    let mut config = world.config("a");
    config.seats = 2;
    config.broker = Some(Arc::new(Nats(nats.url(), None)));
    let factory = Factory::start(config);
    world.until_delivered_by("a", Delivery::Broker).await;
    let claims = world.answered(CLAIM).await;
    let mut jobs = Vec::new();
    for number in 0..5 {
        jobs.push(world.submit(&format!("job-{number}"), "ship: auto", "true").await);
    }
    for job in &jobs {
        assert_eq!(world.until_stage(job, Stage::Shipped).await.lease_epoch, 1);
    }
    assert_eq!(world.answered(CLAIM).await, claims);
    assert!(world.answered(ACCEPT).await >= 5);

    nats.kill9();
    world.until_delivered_by("a", Delivery::Poll).await;
    does_a_job(&world, "meanwhile").await;
    assert!(world.answered(CLAIM).await > claims, "it asked");

    nats.start_again();
    world.until_delivered_by("a", Delivery::Broker).await;
    does_a_job(&world, "afterwards").await;
    factory.drain().await;
}

/// Each has a user of its own, which reaches its offers and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn factories_with_users_of_their_own_do_their_jobs() {
    let key = |byte| NatsKey::from_random([byte; 32]).unwrap();
    let fleet = [("a".parse().unwrap(), key(2).public()), ("b".parse().unwrap(), key(3).public())];
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("nats.conf");
    std::fs::write(&settings, giga_broker::server_accounts(&key(1).public(), &fleet)).unwrap();
    let nats = NatsServer::start_with(&["-c", settings.to_str().unwrap()]);
    let broker =
        giga_broker::open_with(&nats.url(), giga_broker::Access { nats: Some(key(1)), ..Default::default() })
            .await
            .unwrap();
    let world = prepared(World::start_on(broker).await, Delivery::Broker).await;
    let mut factories = Vec::new();
    for (name, byte) in [("a", 2), ("b", 3)] {
        let mut config = world.config(name);
        config.seats = 1;
        config.broker = Some(Arc::new(Nats(nats.url(), Some(key(byte)))));
        factories.push(Factory::start(config));
        world.until_delivered_by(name, Delivery::Broker).await;
    }
    let claims = world.answered(CLAIM).await;
    let mut jobs = Vec::new();
    for number in 0..6 {
        jobs.push(world.submit(&format!("job-{number}"), "ship: auto", "true").await);
    }
    for job in &jobs {
        assert_eq!(world.until_stage(job, Stage::Shipped).await.lease_epoch, 1);
    }
    assert_eq!(world.answered(CLAIM).await, claims, "nobody polled");
    assert!(world.answered(ACCEPT).await >= 6);
    for factory in factories {
        factory.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_of_its_own_a_factory_polls() {
    let world = World::start_on(Arc::new(Embedded::new())).await;
    let world = prepared(world, Delivery::Broker).await;
    let factory = world.factory("a");
    does_a_job(&world, "asked-for").await;
    world.until_delivered_by("a", Delivery::Poll).await;
    assert!(world.answered(CLAIM).await > 0);
    factory.drain().await;
}
