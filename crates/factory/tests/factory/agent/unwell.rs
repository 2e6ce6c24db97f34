//! A machine that cannot do its part: it stops attracting work, says why, and takes no job down with it.

use giga_api::wire::{AlertCode, Health, Stage};
use giga_factory::engines::{EventFormat, Program};

use super::spend::speaking;
use super::world::{Factory, LOOK_AGAIN, PATIENCE, World};

/// Of the factory, as the coordinator knows it.
async fn until_health(world: &World, factory: &str, health: Health) -> String {
    let reached = async {
        loop {
            let known = world.client.factory(factory).await.unwrap().value;
            if known.health == health {
                return known.health_reason.unwrap_or_default();
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{factory} never was {health}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_machine_takes_no_more_jobs_and_none_of_them_is_lost() {
    let world = World::start().await;
    let factory = world.factory("a");
    let up = world.submit("up", "ship: auto", "true").await;
    world.until_stage(&up, Stage::Shipped).await;
    // From now on no log can be written here.
    let logs = world.base("a").join("logs");
    std::fs::remove_dir_all(&logs).unwrap();
    std::fs::write(&logs, "").unwrap();
    let mut jobs = Vec::new();
    for number in 0..6 {
        jobs.push(world.submit(&format!("job-{number}"), "retry: {max: 1, backoff: 0s}", "true").await);
    }
    let reason = until_health(&world, "a", Health::Down).await;
    assert!(reason.contains("it cannot write to its own folder"), "{reason}");
    let alerts = world.client.alerts().await.unwrap().value.alerts;
    let down = alerts.iter().find(|alert| alert.code == AlertCode::FactoryDown).unwrap();
    assert!(down.message.contains("cannot write to its own folder"), "{down:?}");
    // The last one was not touched, and the explanation says why it waits.
    let last = jobs.last().unwrap();
    let explained = world.client.explain(last).await.unwrap().value;
    let why = &explained.summary;
    assert!(why.contains("down") && why.contains("cannot write to its own folder"), "{why}");
    for job in &jobs {
        let job = world.job(job).await;
        assert!(!matches!(job.stage, Stage::Failed | Stage::DeadLetter), "{:?} {:?}", job.stage, job.failure);
        assert_eq!(job.attempts, 0, "{job:?}");
    }

    // It is well again by itself, and they go on.
    std::fs::remove_file(&logs).unwrap();
    for job in &jobs {
        world.until_stage(job, Stage::Testing).await;
    }
    until_health(&world, "a", Health::Ok).await;
    factory.drain().await;
}

/// It is not offered any more, though its preflight has nothing against it.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_signed_out_is_not_offered_any_more() {
    let world = World::start().await;
    let signed_out = r#"echo '{"type":"turn.failed","error":{"message":"401 Unauthorized"}}'; exit 1"#;
    let factory = Factory::start(speaking(&world, "a", EventFormat::Program(Program::Codex), signed_out));
    let job = world.ask("first", "engine: metered\nretry: {max: 3, backoff: 0s}").await;
    // It is put back without using an attempt.
    world.until(&job, |job| job.lease_epoch > 0 && job.stage == Stage::Queued).await;
    let gone = async {
        loop {
            let known = world.client.factory("a").await.unwrap().value;
            let offered = known.advertised.iter().any(|capability| capability == "engine:metered");
            if !offered {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the engine stays on offer");
    factory.drain().await;
}

/// The log is for people; what the engine printed is beside it, word for word.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_reads_like_text_and_the_events_are_kept() {
    let world = World::start().await;
    let said = r#"{"type":"item.completed","item":{"type":"agent_message","text":"All is well."}}"#;
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":1}}"#;
    let script = format!("echo '{said}'; echo '{done}'");
    let factory = Factory::start(speaking(&world, "a", EventFormat::Program(Program::Codex), &script));
    let job = world.ask("talks", "engine: metered\nship: auto").await;
    world.until_stage(&job, Stage::Shipped).await;
    let log = world.log(&job, None).await;
    assert!(log.contains("\nAll is well.\n· 7 tokens in (0 cached), 1 out\n"), "{log}");
    assert!(!log.contains("item.completed"), "{log}");
    let artifacts = world.client.artifacts(&job).await.unwrap().value.artifacts;
    let events = artifacts.iter().find(|artifact| artifact.name == "events.jsonl").unwrap();
    let bytes = world.client.artifact_bytes(&events.id).await.unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{said}\n{done}\n"));
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_checks_leave_behind_is_not_part_of_the_result() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let verify = "verify: ['mkdir __pycache__; echo x > __pycache__/a.pyc; echo more >> greeting.txt']";
    let job =
        world.submit("clean", &format!("repo: hello\nship: auto\n{verify}"), "echo hi > greeting.txt").await;
    world.until_merged(&job).await;
    assert_eq!(origin.file("main", "greeting.txt"), "hi");
    assert!(!origin.git(&["ls-tree", "-r", "--name-only", "main"]).contains("pyc"));

    // A failed check leaves nothing for the next run to take for the engine's work.
    let verify = "verify: ['echo x > leftover.txt; exit 3']";
    let job = world.submit("unfit", &format!("repo: hello\n{verify}"), "echo ho > greeting.txt").await;
    let failed = world.until_stage(&job, Stage::Failed).await;
    let commit = failed.checkpoint.unwrap().commit.unwrap();
    assert_eq!(origin.file(&commit, "greeting.txt"), "ho");
    assert!(!origin.git(&["ls-tree", "-r", "--name-only", &commit]).contains("leftover"));
    factory.drain().await;
}
