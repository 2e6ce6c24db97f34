//! The other ways out of a run: what the coordinator hears, what is kept, and that nothing stays behind.

use giga_api::wire::{FailReason, OperatorAction, Stage};

use super::world::{Factory, World, processes_of, work_folders};

#[tokio::test(flavor = "multi_thread")]
async fn failed_verification_fails_the_job_and_keeps_the_work() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let more = "repo: hello\nship: auto\nverify: ['echo nope; exit 3']";
    let job = world.submit("unfit", more, "echo hi > greeting.txt").await;

    let failed = world.until_stage(&job, Stage::Failed).await;
    assert_eq!(failed.failure.unwrap().reason, FailReason::VerifyFailed);
    let checkpoint = failed.checkpoint.unwrap();
    assert_eq!(checkpoint.wip_ref, Some(format!("giga/wip/{job}")));
    assert_eq!(checkpoint.factory_id, None, "the origin has it");
    assert_eq!(origin.file(&checkpoint.commit.unwrap(), "greeting.txt"), "hi");
    assert_eq!(origin.file("main", "greeting.txt"), "helo");
    assert!(world.log(&job, None).await.contains("nope"));
    factory.drain().await;
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_is_tried_again_as_often_as_the_manifest_says() {
    let world = World::start().await;
    world.origin("hello");
    let factory = world.factory("a");
    let job = world
        .submit("crashes", "repo: hello\nretry: {max: 2, backoff: 0s}", "echo bang >&2; kill -SEGV $$")
        .await;
    let dead = world.until_stage(&job, Stage::DeadLetter).await;
    assert_eq!(dead.failure.unwrap().reason, FailReason::Crash);
    let runs = world.runs(&job).await;
    assert_eq!(runs.len(), 3, "once, and two retries: {runs:#?}");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_reaches_its_cap_is_stopped_for_good() {
    let world = World::start().await;
    world.origin("hello");
    let factory = world.factory("a");
    let more = "repo: hello\nbudget: {wall: 1s}\nretry: {max: 2, backoff: 0s}";
    let job = world.submit("endless", more, "echo x > x.txt; exec sleep 600").await;
    let failed = world.until_stage(&job, Stage::Failed).await;
    assert_eq!(failed.failure.unwrap().reason, FailReason::BudgetExceeded);
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_is_stopped_and_leaves_no_process() {
    let world = World::start().await;
    world.origin("hello");
    let factory = world.factory("a");
    // A child that ignores the polite signal, and one that left the process group.
    let script = "trap '' TERM; (trap '' TERM; sleep 600) & setsid sleep 600 & echo running; wait";
    let job = world.submit("stuck", "repo: hello", script).await;
    world.until_logged(&job, "running\n").await;
    world.client.act(&job, OperatorAction::Cancel, None, None).await.unwrap();
    // The seat is free again only when everything of the first one is gone.
    let next = world.submit("next", "repo: hello", "echo free").await;
    world.until_stage(&next, Stage::Testing).await;
    assert_eq!(world.job(&job).await.stage, Stage::Cancelled);
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    factory.drain().await;
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_without_the_engine_is_not_asked_and_says_so() {
    let world = World::start().await;
    let factory = world.factory("a");
    // A job that it can do shows that it is up.
    let other = world.submit("other", "ship: auto", "true").await;
    world.until_stage(&other, Stage::Shipped).await;
    let manifest = "---\nname: thinker\nengine: claude\n---\nThink.\n";
    let answer = world.client.submit(manifest.into(), &giga_api::client::Idempotency::Nothing).await.unwrap();
    assert!(!answer.routable);
    let explained = world.client.explain(&answer.job.id).await.unwrap();
    let rejected = explained.factories[0].rejected_by.as_ref().unwrap();
    assert!(rejected.detail.contains("engine:claude"), "{rejected:?}");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_hands_work_over_without_using_up_an_attempt() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let first = world.factory("a");
    let gate = world.gate("gate");
    let script = format!(
        "if [ -f half.txt ]; then echo 2 >> half.txt; else echo 1 > half.txt; echo waiting; read _ < {}; fi",
        gate.display()
    );
    let job = world.submit("handed-over", "repo: hello\nship: auto", &script).await;
    world.until_logged(&job, "waiting\n").await;

    first.drain().await;
    let released = world.job(&job).await;
    assert_eq!((released.stage.as_str(), released.attempts), ("queued", 0));
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
    let second = world.factory("b");
    let merged = world.until_merged(&job).await;

    assert_eq!(merged.attempts, 0);
    assert_eq!(origin.file("main", "half.txt"), "1\n2");
    let outcomes: Vec<_> =
        world.runs(&job).await.into_iter().map(|run| (run.factory_id, run.outcome.to_string())).collect();
    let expected = [("a", "released"), ("b", "succeeded")];
    assert_eq!(outcomes, expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
    second.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_that_may_not_enrol_says_what_it_needs() {
    let world = World::start().await;
    let mut config = world.config("a");
    config.enroll_with = None;
    let error = Factory::start(config).ended().await.unwrap_err();
    assert!(error.to_string().contains("not enrolled"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_do_not_share_a_folder() {
    let world = World::start().await;
    let first = world.factory("a");
    let job = world.submit("up", "ship: auto", "true").await;
    world.until_stage(&job, Stage::Shipped).await;
    let mut config = world.config("b");
    config.base = world.base("a");
    let error = Factory::start(config).ended().await.unwrap_err();
    assert!(error.to_string().contains("another agent"), "{error}");
    first.drain().await;
}
