//! What the operator refuses: jobs without a sandbox, and commands.

use giga_api::wire::{FailReason, Stage};
use giga_domain::Capability;
use giga_factory::engines::EventFormat;
use giga_factory::sandbox::SandboxMode;

use crate::agent::spend::speaking;
use crate::agent::world::{Factory, World};

async fn capabilities(world: &World, factory: &str) -> Vec<String> {
    let known = world.coordinator.reads().factory(&factory.parse().unwrap()).await.unwrap();
    known
        .map(|factory| factory.advertised.capabilities.iter().map(Capability::to_string).collect())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_can_ask_for_a_sandbox() {
    let world = World::start().await;
    let mut without = world.config("without");
    without.sandbox.mode = SandboxMode::Off;
    let without = Factory::start(without);
    let plain = world.submit("plain", "capabilities: [\"sandbox:none\"]\nship: auto", "true").await;
    world.until_stage(&plain, Stage::Shipped).await;
    let job = world.submit("careful", "capabilities: [\"sandbox:bwrap\"]\nship: auto", "true").await;
    assert_eq!(world.job(&job).await.stage, Stage::Queued);
    let with = world.factory("with");
    world.until_stage(&job, Stage::Shipped).await;
    assert_eq!(world.runs(&job).await[0].factory_id, "with");
    assert!(capabilities(&world, "with").await.contains(&"sandbox:bwrap".to_owned()));
    without.drain().await;
    with.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_without_commands_runs_engines_and_nothing_else() {
    let world = World::start().await;
    let mut config = speaking(&world, "a", EventFormat::Text, "echo from the engine");
    config.commands = false;
    let factory = Factory::start(config);
    let job = world.ask("coding", "engine: metered\nship: auto").await;
    world.until_stage(&job, Stage::Shipped).await;
    assert!(world.log(&job, None).await.contains("from the engine"));
    assert!(!capabilities(&world, "a").await.contains(&"engine:shell".to_owned()));

    let verified = world.ask("verified", "engine: metered\nverify: [\"true\"]\nretry: {max: 0}").await;
    let failed = world.until(&verified, |job| job.failure.is_some()).await.failure.unwrap();
    assert_eq!(failed.reason, FailReason::NoEngine);
    assert!(failed.detail.unwrap().contains("runs no commands"));
    factory.drain().await;
}
