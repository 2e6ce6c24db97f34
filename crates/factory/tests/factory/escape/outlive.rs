//! A job ends with everything that it started, however that hid.

use giga_api::wire::{OperatorAction, Stage};
use giga_factory::sandbox::SandboxMode;
use serde_json::json;

use super::agent::{User, Victim};
use crate::agent::world::{LOOK_AGAIN, PATIENCE, World};

/// Twice forked, in a session of its own, without a variable that could name it; `seconds` tells it from all others.
fn hide(seconds: &str) -> String {
    format!("( setsid env -i sh -c '( exec sleep {seconds} ) & exec sleep {seconds}' & ) > /dev/null 2>&1 &")
}

fn alive(seconds: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line == format!("sleep\0{seconds}\0").as_bytes()
        })
        .collect()
}

/// Nobody tells of the end of a process that is not ours.
async fn until_gone(seconds: &str) {
    let gone = async {
        while !alive(seconds).is_empty() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, gone).await.is_ok(), "{:?}", alive(seconds));
}

/// The script goes on once both are what they will be, and no longer of its group.
fn script(seconds: &str) -> String {
    let hide = hide(seconds);
    format!(
        "{hide}\n\
         count() {{ n=0; for line in /proc/[0-9]*/cmdline; do\n\
         if [ \"$(tr '\\0' ' ' < \"$line\" 2>/dev/null)\" = 'sleep {seconds} ' ]; then n=$((n+1)); fi; done; }}\n\
         count; until [ $n -ge 2 ]; do sleep 0.05; count; done\n\
         echo hidden"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_job_that_ends() {
    for (number, user) in User::all().iter().enumerate() {
        let world = World::start().await;
        let _victim = Victim::start(&world, *user, SandboxMode::Require, json!({}));
        let seconds = format!("86{number}01.{}", std::process::id());
        let job = world.submit("hider", "ship: auto", &script(&seconds)).await;
        world.until_stage(&job, Stage::Shipped).await;
        assert_eq!(alive(&seconds), Vec::<u32>::new(), "as {user:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_job_that_is_cancelled() {
    let world = World::start().await;
    let _victim = Victim::start(&world, User::This, SandboxMode::Require, json!({}));
    let seconds = format!("86601.{}", std::process::id());
    let job = world.submit("hider", "", &format!("{}\nexec sleep 600", script(&seconds))).await;
    world.until_logged(&job, "hidden\n").await;
    assert!(alive(&seconds).len() >= 2);
    world.client.act(&job, OperatorAction::Cancel, None, None).await.unwrap();
    until_gone(&seconds).await;
}

/// As when the agent is killed and nobody is left to clean up.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_the_agent() {
    let world = World::start().await;
    let victim = Victim::start(&world, User::This, SandboxMode::Require, json!({}));
    let seconds = format!("86701.{}", std::process::id());
    let job = world.submit("hider", "", &format!("{}\nexec sleep 600", script(&seconds))).await;
    world.until_logged(&job, "hidden\n").await;
    victim.kill9();
    until_gone(&seconds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_it_would() {
    let world = World::start().await;
    let _victim = Victim::start(&world, User::This, SandboxMode::Off, json!({}));
    let seconds = format!("86801.{}", std::process::id());
    let job = world.submit("hider", "ship: auto", &script(&seconds)).await;
    world.until_stage(&job, Stage::Shipped).await;
    let left = alive(&seconds);
    for id in &left {
        let _ = std::process::Command::new("kill").args(["-KILL", &id.to_string()]).status();
    }
    assert!(!left.is_empty(), "the attack works where nothing stops it");
}
