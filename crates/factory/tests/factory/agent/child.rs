//! An agent in a process of its own, for what only happens to processes: this test binary, run again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use giga_factory::agent;
use tokio_util::sync::CancellationToken;

use super::world::World;

/// The folder of the world that a child belongs to, and the name of its factory.
const WORLD: &str = "AGENT_TEST_WORLD";
const FACTORY: &str = "AGENT_TEST_FACTORY";
/// Set where the work is saved by itself only at the beginning of a session.
const SELDOM: &str = "AGENT_TEST_SAVES_SELDOM";

/// Does nothing when it runs as a test among others.
#[tokio::test]
async fn runs_as_a_child() {
    let (Ok(world), Ok(factory)) = (std::env::var(WORLD), std::env::var(FACTORY)) else { return };
    let token = std::env::var("GIGA_TOKEN").unwrap();
    let url = std::env::var("GIGA_URL").unwrap();
    let world = PathBuf::from(world);
    let mut config = World::config_in(&world, &url, &token, &factory);
    if let Ok(engines) = std::fs::read(world.join("engines.json")) {
        config.engines = serde_json::from_slice(&engines).unwrap();
    }
    if std::env::var_os(SELDOM).is_some() {
        config.checkpoint_every = Duration::from_hours(1);
    }
    agent::run(config, CancellationToken::new()).await.unwrap();
}

pub(crate) struct ChildFactory {
    process: Child,
}

impl ChildFactory {
    pub(crate) fn start(world: &World, factory: &str) -> Self {
        Self::start_with(world, factory, &[])
    }

    pub(crate) fn that_saves_seldom(world: &World, factory: &str) -> Self {
        Self::start_with(world, factory, &[(SELDOM, "1")])
    }

    fn start_with(world: &World, factory: &str, more: &[(&str, &str)]) -> Self {
        let log = std::fs::File::create(world.path().join(format!("{factory}.out"))).unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "agent::child::runs_as_a_child", "--nocapture"])
            .env(WORLD, world.path())
            .env(FACTORY, factory)
            // As an operator would hand it over; no engine may see it.
            .env("GIGA_TOKEN", &world.admin)
            .env("GIGA_URL", &world.url)
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn kill9(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for ChildFactory {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
