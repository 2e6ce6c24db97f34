//! What a coordinator lacks of a log is sent again, and what cannot be sent now is sent later.

use giga_api::wire::Stage;

use super::proxy::Proxy;
use super::world::{Factory, World};

/// What a coordinator answers that has another folder than the one which was told of the beginning.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_shorter_elsewhere_is_sent_again_from_its_beginning() {
    let world = World::start().await;
    let factory = world.factory("a");
    let gate = world.gate("gate");
    let script = format!("echo first; read _ < {}; echo second", gate.display());
    let job = world.submit("look", "ship: auto", &script).await;
    world.until_logged(&job, "first\n").await;
    std::fs::remove_file(world.path().join("logs").join(&job).join("1.log")).unwrap();
    std::fs::write(gate, "go\n").unwrap();
    world.until_stage(&job, Stage::Shipped).await;

    let log = world.log(&job, None).await;
    let said: Vec<&str> = log.lines().filter(|line| !line.starts_with("[giga]")).collect();
    assert_eq!(said, ["first", "second"], "{log}");
    assert!(log.starts_with("[giga] look on a, epoch 1\n") && log.ends_with("[giga] succeeded\n"), "{log}");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_log_waits_for_a_coordinator_that_is_away() {
    let world = World::start().await;
    let proxy = Proxy::of(&world.url).await;
    let mut config = world.config("a");
    config.url.clone_from(&proxy.url);
    let factory = Factory::start(config);
    let (gate, said) = (world.gate("gate"), world.path().join("said"));
    let script = format!("echo first; read _ < {}; echo second; echo > {}", gate.display(), said.display());
    let job = world.submit("look", "ship: auto", &script).await;
    world.until_logged(&job, "first\n").await;
    proxy.gone();
    std::fs::write(gate, "go\n").unwrap();
    while !said.exists() {
        tokio::time::sleep(super::world::LOOK_AGAIN).await;
    }
    proxy.everything_through();
    world.until_stage(&job, Stage::Shipped).await;
    let log = world.log(&job, None).await;
    assert!(log.ends_with("second\n[giga] succeeded\n"), "{log}");
    factory.drain().await;
}
