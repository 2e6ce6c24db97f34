//! `verify` commands and the checks of a merge are a submitter's words as much as a script is, and get no further.

use giga_api::wire::{FailReason, OperatorAction, Stage};
use giga_factory::sandbox::SandboxMode;
use serde_json::json;

use super::agent::{User, Victim};
use super::reach::{ATTACKS, came_through, script};
use crate::agent::shipping::until_settled;
use crate::agent::world::World;

/// What came through from the checks of a job, and from those of its merge: two jobs pass alone and fail together, so
/// that the second is checked once more on the merged tree.
async fn escaped(mode: SandboxMode) -> [Vec<String>; 2] {
    let world = World::start().await;
    let _origin = world.origin("hello");
    let victim = Victim::start(&world, User::This, mode, json!({}));
    let attack = script(&world, victim.pid());
    let verify = format!("{attack}\n! test -f one.txt || ! test -f two.txt");
    let manifest = format!("repo: hello\nonConflict: fail\nverify: [{}]", json!(verify));
    let one = world.submit("one", &manifest, "echo 1 > one.txt").await;
    let two = world.submit("two", &manifest, "echo 2 > two.txt").await;
    for job in [&one, &two] {
        world.until_stage(job, Stage::Testing).await;
    }
    let checked = world.runs(&one).await[0].report.checks[0].output.clone();
    world.client.act(&one, OperatorAction::Ship, None, None).await.unwrap();
    let first = until_settled(&world, &one).await;
    assert_eq!(first.stage, Stage::Shipped, "{first:#?}");
    world.client.act(&two, OperatorAction::Ship, None, None).await.unwrap();
    let failure = until_settled(&world, &two).await.failure.unwrap();
    assert_eq!(failure.reason, FailReason::MergeChecksFailed, "{failure:#?}");
    // Before the output stands the command itself.
    let detail = failure.detail.unwrap();
    let (_, merged) = detail.rsplit_once("`: ").unwrap();
    [came_through(&checked), came_through(merged)]
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_of_a_job_and_of_a_merge_reach_nothing_of_the_host() {
    assert_eq!(escaped(SandboxMode::Require).await, [Vec::<String>::new(), Vec::new()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_they_would() {
    let of_root_only = "programs of the system";
    for escaped in escaped(SandboxMode::Off).await {
        for (name, _) in ATTACKS.iter().filter(|(name, _)| *name != of_root_only) {
            assert!(escaped.iter().any(|escaped| escaped == name), "{name} is not among {escaped:?}");
        }
    }
}
