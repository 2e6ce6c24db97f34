//! Factories of a pool: they join with its credential, work as any other does, and leave for good.

use giga_api::wire::{PoolCredentialKind, PoolCredentialRequest, PoolDriver, PoolSettings, Stage};
use giga_factory::agent::{AgentConfig, AgentError};
use serde_json::{Value, json};

use super::world::{Factory, World, git};

/// A pool that somebody else scales, so that nothing but the test starts factories; and what they join it with.
async fn pool(world: &World) -> String {
    let settings = PoolSettings { driver: PoolDriver::Keda, max: 2, ..PoolSettings::default() };
    world.client.set_pool("gpu", &settings).await.unwrap();
    let request = PoolCredentialRequest { kind: PoolCredentialKind::Enroll, expires: None };
    world.client.pool_credential("gpu", &request).await.unwrap().value.token
}

fn member(world: &World, credential: Option<&str>) -> AgentConfig {
    AgentConfig {
        enroll_with: credential.map(str::to_owned),
        pool: Some("gpu".parse().unwrap()),
        ..world.config("gpu-1")
    }
}

async fn is_known(world: &World) -> bool {
    let all = world.client.factories().await.unwrap().value.factories;
    all.iter().any(|factory| factory.id == "gpu-1")
}

fn left(world: &World) -> Option<Value> {
    let text = std::fs::read(world.base("gpu-1").join("left.json")).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_drained_finishes_its_job_and_leaves() {
    let world = World::start().await;
    let credential = pool(&world).await;
    let origin = world.origin("hello");
    let gate = world.gate("gate");
    let factory = Factory::start(member(&world, Some(&credential)));
    let script = format!("echo working; read _ < {}; echo hello > greeting.txt", gate.display());
    let job = world.submit("fix", "repo: hello\nship: auto", &script).await;
    world.until_logged(&job, "working\n").await;

    world.set_flag("heartbeat_interval_ms", json!(1_000)).await;
    world.client.drain("gpu-1", false).await.unwrap();
    let beats = world.answered("/api/fleet/factories/heartbeat").await;
    world.until_answered("/api/fleet/factories/heartbeat", beats + 2).await;
    assert_eq!(world.job(&job).await.stage, Stage::Building, "it works on");
    assert!(is_known(&world).await && world.base("gpu-1").join("factory.token").exists());

    std::fs::write(gate, "go\n").unwrap();
    factory.ended().await.unwrap();
    assert_eq!(world.runs(&job).await[0].outcome.as_str(), "succeeded");
    assert!(!is_known(&world).await);
    assert!(!world.base("gpu-1").join("factory.token").exists(), "it has ended");
    assert_eq!(left(&world), Some(json!({"kept": []})), "the result is at {}", origin.path().display());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_stopped_hands_its_job_back_and_leaves() {
    let world = World::start().await;
    let credential = pool(&world).await;
    world.origin("hello");
    let gate = world.gate("gate");
    let factory = Factory::start(member(&world, Some(&credential)));
    let script = format!("echo working; read _ < {}", gate.display());
    let job = world.submit("fix", "repo: hello", &script).await;
    world.until_logged(&job, "working\n").await;
    factory.drain().await;
    assert!(!is_known(&world).await);
    assert_eq!(world.job(&job).await.stage, Stage::Queued);
    assert!(left(&world).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_only_here_is_named_when_it_leaves() {
    let world = World::start().await;
    let credential = pool(&world).await;
    world.origin("hello");
    let factory = Factory::start(member(&world, Some(&credential)));
    let job = world.submit("fix", "repo: hello\nship: auto", "echo hello > greeting.txt").await;
    world.until_merged(&job).await;
    // As a fenced run leaves it.
    let mirrors = std::fs::read_dir(world.base("gpu-1").join("mirrors")).unwrap().flatten();
    let mirror = mirrors.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
    let tree = git(&mirror, &["mktree", "--missing"]);
    let commit = git(&mirror, &["commit-tree", &tree, "-m", "fenced"]);
    let branch = format!("giga/quarantine/{job}/1");
    git(&mirror, &["update-ref", &format!("refs/heads/{branch}"), &commit]);
    factory.drain().await;
    assert_eq!(left(&world), Some(json!({"kept": [format!("{branch} of hello")]})));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_refuses_it_says_why() {
    let world = World::start().await;
    let credential = pool(&world).await;
    let other = AgentConfig { pool: Some("cpu".parse().unwrap()), ..member(&world, Some(&credential)) };
    let wrong = AgentConfig { enroll_with: Some(world.admin.clone()), ..member(&world, None) };
    for (folder, config) in [("one", other), ("two", wrong)] {
        // A folder each: the lock of one that has just ended may be in a process that another test is starting.
        let config = AgentConfig { base: world.base(folder), ..config };
        let refused = Factory::start(config).ended().await.unwrap_err();
        assert!(matches!(refused, AgentError::PoolRefused { .. }), "{refused}");
        assert!(refused.to_string().contains("does not let factory gpu-1 in: "), "{refused}");
        assert!(!world.base(folder).join("factory.token").exists());
    }
    let nothing = Factory::start(member(&world, None)).ended().await.unwrap_err();
    assert!(matches!(nothing, AgentError::NotEnrolled(..)), "{nothing}");
    assert!(!is_known(&world).await);
}
