//! Machines that die, freeze and come back: the work goes on elsewhere, and a ghost changes nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use giga_api::wire::Stage;
use giga_domain::Delivery;
use serde_json::json;

use super::child::ChildFactory;
use super::world::{LEASE_MS, World, mirror_branches, processes_of, work_folders};

/// The first run commits something and waits; a resumed one sees it and finishes.
fn script(gate: &Path) -> String {
    format!(
        "if [ -f before.txt ]; then echo resumed; echo after > after.txt\n\
         else echo before > before.txt; git add .; git commit -qm 'before the kill'\n\
         echo saved-me; read _ < {}; echo ghost > ghost.txt; fi",
        gate.display()
    )
}

const MANIFEST: &str = "repo: hello\nship: auto\nretry: {max: 3, backoff: 0s}";

#[tokio::test(flavor = "multi_thread")]
async fn the_work_of_a_killed_factory_is_resumed_by_another() {
    kill(Delivery::Poll).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_of_a_streaming_factory_that_was_killed_is_resumed_by_another() {
    kill(Delivery::Stream).await;
}

async fn kill(mode: Delivery) {
    let world = World::start().await;
    world.set_flag("delivery", json!(mode)).await;
    let origin = world.origin("hello");
    let first = ChildFactory::start(&world, "a");
    let gate = world.gate("gate");
    let job = world.submit("survivor", MANIFEST, &script(&gate)).await;
    world.until(&job, |job| job.checkpoint.is_some()).await;
    world.until_logged(&job, "saved-me\n").await;
    world.until(&job, |job| job.checkpoint.is_some()).await;
    let second = world.factory("b");

    let killed_at = Instant::now();
    first.kill9();
    world.until(&job, |job| job.lease.as_ref().is_some_and(|lease| lease.factory_id == "b")).await;
    let took = killed_at.elapsed();
    let merged = world.until_merged(&job).await;

    // Lease, one sweep, and what a busy machine needs to notice.
    assert!(took < Duration::from_millis(LEASE_MS) + Duration::from_secs(5), "{took:?}");
    let history = origin.git(&["log", "--format=%s", "main"]);
    assert!(history.lines().any(|line| line == "before the kill"), "{history}");
    assert_eq!(origin.file("main", "after.txt"), "after");
    assert_eq!(merged.attempts, 1, "a lost lease uses one up");
    let outcomes: Vec<_> =
        world.runs(&job).await.into_iter().map(|run| (run.factory_id, run.outcome.to_string())).collect();
    let expected = [("a", "expired"), ("b", "succeeded")];
    assert_eq!(outcomes, expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
    second.drain().await;

    // The first one comes back: its engine of before is ended, what it had is kept aside, nothing is pushed.
    let again = world.factory("a");
    let other = world.submit("other", "ship: auto", "true").await;
    world.until_stage(&other, Stage::Shipped).await;
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
    assert_eq!(mirror_branches(&world.base("a"), "giga/quarantine"), [format!("giga/quarantine/{job}/1")]);
    assert!(!origin.branches().contains(&format!("giga/job/{job}/1")));
    again.drain().await;
    let private = std::fs::read_dir(world.base("a").join("runs")).unwrap();
    assert_eq!(private.count(), 0, "its scripts and prompts are gone");
}

/// Its engine is not frozen: it even finishes, and a result lies ready for the ghost to hand over.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_factory_that_wakes_up_with_a_result_is_fenced() {
    freeze(Delivery::Poll, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_factory_that_wakes_up_in_the_middle_is_fenced() {
    freeze(Delivery::Poll, false).await;
}

/// The stream of a frozen one is open, and whatever is sent down it is heard by nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_factory_that_streams_is_fenced_and_given_nothing_more() {
    freeze(Delivery::Stream, false).await;
}

async fn freeze(mode: Delivery, engine_finishes: bool) {
    let world = World::start().await;
    // As by default, a lease lasts no shorter than the silence after which nobody counts on a factory.
    world.set_flag("heartbeat_interval_ms", json!(LEASE_MS / 4)).await;
    world.set_flag("delivery", json!(mode)).await;
    let origin = world.origin("hello");
    let first = ChildFactory::start(&world, "a");
    let gate = world.gate("gate");
    let job = world.submit("frozen", MANIFEST, &script(&gate)).await;
    world.until(&job, |job| job.checkpoint.is_some()).await;
    world.until_logged(&job, "saved-me\n").await;

    first.signal("STOP");
    if engine_finishes {
        std::fs::write(gate, "go\n").unwrap();
    }
    let second = world.factory("b");
    let merged = world.until_merged(&job).await;
    second.drain().await;
    first.signal("CONT");
    // Having settled the old run, it has its seat back.
    let next = world.submit("next", "ship: auto", "true").await;
    world.until_stage(&next, Stage::Shipped).await;

    assert_eq!(processes_of(&job), Vec::<u32>::new());
    assert_eq!(mirror_branches(&world.base("a"), "giga/quarantine"), [format!("giga/quarantine/{job}/1")]);
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
    assert!(!origin.branches().contains(&format!("giga/job/{job}/1")), "{:?}", origin.branches());
    assert_eq!(origin.git(&["rev-parse", "main"]), merged.merge.unwrap().commit.unwrap());
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    assert!(files.contains("after.txt") && !files.contains("ghost.txt"), "{files}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_that_restarts_in_time_hands_its_own_work_back() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let hour = json!(3_600_000);
    world.client.set_flag("lease_ms", hour).await.unwrap();
    let first = ChildFactory::start(&world, "a");
    let gate = world.gate("gate");
    let job = world.submit("restarted", MANIFEST, &script(&gate)).await;
    world.until_logged(&job, "saved-me\n").await;
    first.kill9();

    let again = world.factory("a");
    let merged = world.until_merged(&job).await;
    assert_eq!(merged.attempts, 0, "what was handed back is no attempt");
    assert_eq!(origin.file("main", "before.txt"), "before");
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    again.drain().await;
}
