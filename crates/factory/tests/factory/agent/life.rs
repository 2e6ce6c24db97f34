//! A job from its manifest to the merge, and what people see of it on the way.

use std::time::Duration;

use giga_api::client::{Client, ClientOptions};
use giga_api::wire::{OperatorAction, ReviewVerdict, Stage};

use super::child::ChildFactory;
use super::world::{World, processes_of, work_folders};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_done_verified_and_merged() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let gate = world.gate("gate");
    let script =
        format!("echo working; read _ < {}; echo hello > greeting.txt; echo new > new.txt", gate.display());
    let more = "repo: hello\nship: auto\nverify: [grep hello greeting.txt, test -f new.txt]";
    let job = world.submit("fix-greeting", more, &script).await;

    world.until_logged(&job, "working\n").await;
    assert_eq!(world.job(&job).await.stage, Stage::Building, "the log was read while it ran");
    std::fs::write(gate, "go\n").unwrap();
    let merged = world.until_merged(&job).await;

    assert_eq!(merged.stage, Stage::Shipped);
    let commit = merged.merge.unwrap().commit.unwrap();
    assert_eq!(origin.git(&["rev-parse", "main"]), commit);
    assert_eq!(origin.file("main", "greeting.txt"), "hello");
    let message = origin.git(&["log", "-1", "--format=%s", "main"]);
    assert!(message.contains("fix-greeting"), "{message}");
    let run = &world.runs(&job).await[0];
    assert_eq!((run.outcome.as_str(), run.factory_id.as_str()), ("succeeded", "a"));
    let report = &run.report;
    assert_eq!((report.files_changed, report.lines_added, report.lines_removed), (Some(2), Some(2), Some(1)));
    assert_eq!(report.branch, Some(format!("giga/job/{job}/1")));
    let checks: Vec<_> = report.checks.iter().map(|c| (c.command.as_str(), c.passed, &*c.output)).collect();
    let expected = [("grep hello greeting.txt", true, "hello\n"), ("test -f new.txt", true, "")];
    assert_eq!(checks, expected);
    let piece = world.client.log(&job, None, 0, Duration::ZERO).await.unwrap();
    assert!(piece.complete && piece.text.contains("verify: test -f new.txt"), "{}", piece.text);

    factory.drain().await;
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
    assert_eq!(processes_of(&job), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_a_repository_runs_in_an_empty_folder() {
    let world = World::start().await;
    let factory = world.factory("a");
    let job = world.submit("look", "ship: auto", "ls -A | wc -l; touch x").await;
    world.until_stage(&job, Stage::Shipped).await;
    assert!(world.log(&job, None).await.contains("\n0\n"));
    factory.drain().await;
    let scratch = std::fs::read_dir(world.base("a").join("scratch")).unwrap();
    assert_eq!(scratch.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_a_reviewer_asks_for_go_on_where_the_work_was() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let script = "if [ -f first.txt ]; then echo 2 > second.txt; else echo 1 > first.txt; fi";
    let job = world.submit("two-rounds", "repo: hello\nreview: {quorum: 1}\nship: auto", script).await;
    world.until_stage(&job, Stage::Review).await;
    world.review(&job, ReviewVerdict::RequestChanges, Some("more, please")).await;
    world.until(&job, |job| job.stage == Stage::Review && job.lease_epoch == 2).await;
    world.review(&job, ReviewVerdict::Approve, None).await;
    world.until_merged(&job).await;

    assert_eq!(origin.file("main", "first.txt"), "1");
    assert_eq!(origin.file("main", "second.txt"), "2");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_repository_may_be_named_by_its_url() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let repo = format!("repo: file://{}", world.path().join("repos/hello.git").display());
    let job = world.submit("by-url", &format!("{repo}\nship: auto"), "echo x > x.txt").await;
    world.until_merged(&job).await;
    assert_eq!(origin.file("main", "x.txt"), "x");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_shipped_is_merged_while_every_seat_is_taken() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let first = world.submit("first", "repo: hello", "echo x > x.txt").await;
    world.until_stage(&first, Stage::Testing).await;
    let gate = world.gate("gate");
    let long = world.submit("long", "", &format!("echo busy; read _ < {}", gate.display())).await;
    world.until_logged(&long, "busy\n").await;
    world.client.act(&first, OperatorAction::Ship, None, None).await.unwrap();
    world.until_merged(&first).await;
    assert_eq!(origin.file("main", "x.txt"), "x");
    assert_eq!(world.job(&long).await.stage, Stage::Building);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_for_a_repository_starts_when_the_repository_is_there() {
    let world = World::start().await;
    world.client.set_flag("heartbeat_interval_ms", serde_json::json!(250)).await.unwrap();
    let factory = world.factory("a");
    let job = world.submit("early", "repo: late\nship: auto", "echo x > x.txt").await;
    let other = world.submit("other", "ship: auto", "true").await;
    world.until_stage(&other, Stage::Shipped).await;
    let submitted = std::time::Instant::now();
    world.origin("late");
    world.until_merged(&job).await;
    // Long before the gate opens by itself.
    assert!(submitted.elapsed() < Duration::from_secs(15));
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_told_to_take_one_job_takes_one_and_leaves() {
    let world = World::start().await;
    let first = world.submit("one", "", "echo 1").await;
    let second = world.submit("two", "", "echo 2").await;
    let mut config = world.config("a");
    config.once = true;
    super::world::Factory::start(config).ended().await.unwrap();
    assert_eq!(world.job(&first).await.stage, Stage::Testing);
    assert_eq!(world.job(&second).await.stage, Stage::Queued);
}

/// The token stands in the agent's own environment and in its folder; what it starts sees neither, only one of its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_sees_no_token_but_its_jobs_own() {
    let world = World::start().await;
    world.origin("hello");
    let factory = ChildFactory::start(&world, "a");
    let (gate, kept) = (world.gate("gate"), world.path().join("kept"));
    let script = format!(
        "env; tr '\\0' '\\n' < /proc/self/environ; echo printed: $(cat ../../../factory.token || true)\n\
         printf %s \"$GIGA_TOKEN\" > {}; echo waiting; read _ < {}",
        kept.display(),
        gate.display()
    );
    let job = world.submit("spy", "repo: hello", &script).await;
    world.until_logged(&job, "waiting\n").await;
    let own = std::fs::read_to_string(kept).unwrap();
    let token = std::fs::read_to_string(world.base("a").join("factory.token")).unwrap();
    assert!(own != world.admin && own != token.trim() && own.len() > 20);
    let options = ClientOptions {
        url: world.url.clone(),
        token: Some(own.clone()),
        agent: "inside".to_owned(),
        ..ClientOptions::default()
    };
    let inside = Client::new(options).unwrap();
    assert_eq!(inside.job(&job).await.unwrap().value.name, "spy");
    assert!(inside.act(&job, OperatorAction::Cancel, None, None).await.is_err(), "it may not steer");
    std::fs::write(gate, "go\n").unwrap();
    world.until_stage(&job, Stage::Testing).await;
    assert!(inside.job(&job).await.is_err(), "its epoch is over");

    let log = world.log(&job, None).await;
    assert!(log.contains("GIGA_JOB_ID="), "it is the environment: {log}");
    assert!(log.contains("printed:"), "it tried to: {log}");
    for secret in [world.admin.as_str(), token.trim(), &own] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(log.contains("GIGA_TOKEN=[redacted]"), "{log}");
    assert!(log.contains(&format!("GIGA_URL={}\n", world.url)), "{log}");
    let names = log.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let mut ours: Vec<&str> = names.filter(|name| name.starts_with("GIGA_")).collect();
    ours.sort_unstable();
    ours.dedup();
    let known = [
        "GIGA_JOB_ID",
        "GIGA_LEASE_EPOCH",
        "GIGA_PROMPT_FILE",
        "GIGA_RESUMED",
        "GIGA_RUN_ID",
        "GIGA_TOKEN",
        "GIGA_URL",
    ];
    assert_eq!(ours, known);
    drop(factory);
}
