//! Work that goes on elsewhere: after a reviewer's word, and after giving its seat up.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use giga_api::wire::{ReviewVerdict, RunOutcome, Stage};
use giga_domain::Delivery;

use super::world::{Factory, LEASE_MS, World, processes_of, work_folders};

/// Commits, leaves a file open, and waits; resumed, it goes on without.
fn half_and_half(gate: &std::path::Path) -> String {
    format!(
        "if [ -f half.txt ]; then echo 2 >> half.txt; else\n\
         echo done > part.txt; git add part.txt; git commit -qm 'the first part'\n\
         echo 1 > half.txt; echo waiting; read _ < {}; fi",
        gate.display()
    )
}

fn outcomes(runs: Vec<giga_api::wire::Run>) -> Vec<(String, String)> {
    runs.into_iter().map(|run| (run.factory_id, run.outcome.to_string())).collect()
}

fn expected(pairs: [(&str, &str); 2]) -> Vec<(String, String)> {
    pairs.map(|(factory, outcome)| (factory.to_owned(), outcome.to_owned())).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_made_elsewhere_on_the_commits_that_were_judged_with_the_reviewers_words() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let first = world.factory("a");
    let script = "if [ -f first.txt ]; then\n\
                  cat \"$GIGA_REVIEW_COMMENTS\" > said.txt; git log --format=%s > log.txt\n\
                  echo \"$GIGA_RESUMED\" > resumed.txt\n\
                  else test \"$GIGA_RESUMED\" = 0; echo 1 > first.txt; git add .; git commit -qm 'the first round'; fi\n\
                  test -n \"${GIGA_REVIEW_COMMENTS:-}\" || echo nobody has said anything";
    let job = world.submit("two-hosts", "repo: hello\nreview: {quorum: 1}\nship: auto", script).await;
    world.until_stage(&job, Stage::Review).await;
    assert!(world.log(&job, Some(1)).await.contains("nobody has said anything"));
    first.drain().await;

    world.review(&job, ReviewVerdict::RequestChanges, Some("Say hello.\nThen stop.")).await;
    let second = world.factory("b");
    let reviewed = world.until(&job, |job| job.stage == Stage::Review && job.lease_epoch == 2).await;
    let branch = reviewed.result.unwrap().branch;
    assert_eq!(origin.file(&branch, "log.txt"), "the first round\nfirst");
    assert_eq!(origin.file(&branch, "resumed.txt"), "1", "a script can tell that it goes on");
    let comments = origin.file(&branch, "said.txt");
    assert!(
        comments.contains("A reviewer (ana) asked for changes:\n\n> Say hello.\n> Then stop."),
        "{comments}"
    );

    world.review(&job, ReviewVerdict::Approve, None).await;
    world.until_merged(&job).await;
    let history = origin.git(&["log", "--format=%s", "main"]);
    assert!(history.contains("the first round") && history.contains("two-hosts"), "{history}");
    assert_eq!(outcomes(world.runs(&job).await), expected([("a", "succeeded"), ("b", "succeeded")]));
    second.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_gives_its_seat_up_goes_on_elsewhere_with_its_commits() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let first = world.factory("a");
    let (gate, busy) = (world.gate("gate"), world.gate("busy"));
    let job = world.submit("victim", "repo: hello\nship: auto", &half_and_half(&gate)).await;
    world.until_logged(&job, "waiting\n").await;
    let urgent = format!("echo busy; read _ < {}", busy.display());
    let urgent = world.submit("urgent", "priority: critical", &urgent).await;

    let asked = Instant::now();
    world.evict(&job, &urgent).await;
    world.until_logged(&urgent, "busy\n").await;
    assert!(asked.elapsed() < Duration::from_secs(20), "well within the grace: {:?}", asked.elapsed());
    let waiting = world.job(&job).await;
    assert_eq!((waiting.stage.as_str(), waiting.attempts, waiting.evictions), ("queued", 0, 1));
    assert_eq!(waiting.checkpoint.unwrap().factory_id, None, "the origin has it");
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());

    let second = world.factory("b");
    let merged = world.until_merged(&job).await;
    assert_eq!((merged.attempts, merged.evictions), (0, 1));
    assert_eq!(origin.file("main", "half.txt"), "1\n2");
    let history = origin.git(&["log", "--format=%s", "main"]);
    assert!(history.contains("the first part") && !history.contains("wip:"), "{history}");
    assert_eq!(outcomes(world.runs(&job).await), expected([("a", "preempted"), ("b", "succeeded")]));
    std::fs::write(busy, "go\n").unwrap();
    first.drain().await;
    second.drain().await;
}

/// An origin that takes nothing: what it is asked to take stays where it was made.
async fn an_origin_that(refuses: &str) {
    let world = World::start().await;
    let origin = world.origin("hello");
    let mut config = world.config("a");
    config.checkpoint_every = Duration::from_hours(1);
    let factory = Factory::start(config);
    let gate = world.gate("gate");
    let job = world.submit("victim", "repo: hello\nship: auto", &half_and_half(&gate)).await;
    world.until_logged(&job, "waiting\n").await;
    let closed = world.path().join("closed");
    std::fs::write(&closed, "").unwrap();
    let hook = world.path().join("repos/hello.git/hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, format!("#!/bin/sh\nclosed={}\n{refuses}\n", closed.display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let busy = world.gate("busy");
    let urgent = format!("read _ < {}", busy.display());
    let urgent = world.submit("urgent", "priority: critical", &urgent).await;
    let asked = Instant::now();
    world.evict(&job, &urgent).await;

    let waiting = world.until(&job, |job| job.evictions == 1).await;
    assert!(asked.elapsed() < Duration::from_secs(25), "within the grace: {:?}", asked.elapsed());
    let kept = waiting.checkpoint.unwrap();
    assert_eq!((kept.factory_id.as_deref(), waiting.attempts), (Some("a"), 0));
    assert_eq!(world.runs(&job).await[0].outcome, RunOutcome::Preempted);
    std::fs::remove_file(hook).unwrap();
    std::fs::remove_file(closed).unwrap();
    std::fs::write(busy, "go\n").unwrap();
    world.until_merged(&job).await;
    assert_eq!(origin.file("main", "half.txt"), "1\n2", "the host that has it goes on from it");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_refuses_a_checkpoint_does_not_hold_the_seat() {
    an_origin_that("exit 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_does_not_answer_does_not_hold_the_seat() {
    an_origin_that("while [ -e $closed ]; do sleep 0.1; done; exit 1").await;
}

/// Longer than its lease: whoever lets go needs it to the end.
#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_kept_while_an_engine_that_will_not_stop_is_stopped() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let mut config = world.config("a");
    config.watchdog.kill_grace = Duration::from_millis(2 * LEASE_MS);
    let factory = Factory::start(config);
    let script = "if [ -f half.txt ]; then echo 2 >> half.txt; else\n\
                  trap '' TERM; echo 1 > half.txt; echo waiting; while :; do sleep 1; done; fi";
    let job = world.submit("stubborn", "repo: hello\nship: auto", script).await;
    world.until_logged(&job, "waiting\n").await;
    let urgent = world.submit("urgent", "priority: critical", "true").await;
    world.evict(&job, &urgent).await;

    let merged = world.until_merged(&job).await;
    assert_eq!((merged.attempts, merged.evictions), (0, 1));
    assert_eq!(origin.file("main", "half.txt"), "1\n2");
    assert_eq!(outcomes(world.runs(&job).await), expected([("a", "preempted"), ("a", "succeeded")]));
    factory.drain().await;
}

/// Long before the next renewal is due.
#[tokio::test(flavor = "multi_thread")]
async fn a_factory_that_streams_hears_at_once_that_a_seat_is_needed() {
    let world = World::start().await;
    world.origin("hello");
    world.set_flag("lease_ms", serde_json::json!(60_000)).await;
    world.set_flag("delivery", serde_json::json!("stream")).await;
    let factory = world.factory("a");
    world.until_delivered_by("a", Delivery::Stream).await;
    let gate = world.gate("gate");
    let job = world.submit("victim", "repo: hello", &half_and_half(&gate)).await;
    world.until_logged(&job, "waiting\n").await;
    let urgent = world.submit("urgent", "priority: critical", "true").await;

    let asked = Instant::now();
    world.evict(&job, &urgent).await;
    world.until(&job, |job| job.evictions == 1).await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(world.runs(&job).await[0].outcome, RunOutcome::Preempted);
    factory.drain().await;
}
