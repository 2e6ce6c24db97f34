//! The agent's memory, by jobs that run as the same user without a sandbox: the kernel keeps them out.

use giga_api::wire::Stage;
use giga_factory::sandbox::SandboxMode;
use serde_json::json;

use super::agent::{User, Victim};
use crate::agent::world::World;

/// Each asks the kernel for what only a debugger of the process gets.
const LOOKS: [(&str, &str); 4] = [
    ("environ", "head -c 1 /proc/$AGENT/environ > /dev/null"),
    ("maps", "head -c 1 /proc/$AGENT/maps > /dev/null"),
    ("files", "test -n \"$(ls /proc/$AGENT/fd)\""),
    ("mem", "exec 3< /proc/$AGENT/mem"),
];

async fn seen(harden: bool) -> Vec<&'static str> {
    // Root may look into everything.
    let user = *User::all().last().unwrap();
    let world = World::start().await;
    let victim = Victim::start(&world, user, SandboxMode::Off, json!({"harden": harden}));
    let first = world.submit("first", "ship: auto", "true").await;
    world.until_stage(&first, Stage::Shipped).await;
    let look =
        |(name, look): &(&str, &str)| format!("if ( {look} ) 2>/dev/null; then echo \"seen: {name}.\"; fi");
    let looks = LOOKS.iter().map(look).collect::<Vec<_>>().join("\n");
    let script = format!("AGENT={}\n{looks}\necho looked", victim.pid());
    let job = world.submit("curious", "ship: auto", &script).await;
    world.until_stage(&job, Stage::Shipped).await;
    let log = world.log(&job, None).await;
    assert!(log.contains("looked"), "{log}");
    let names = LOOKS.iter().map(|(name, _)| *name);
    names.filter(|name| log.contains(&format!("seen: {name}.\n"))).collect()
}

fn is_root_only() -> bool {
    let user = std::process::Command::new("id").arg("-u").output().unwrap();
    user.stdout.trim_ascii() == b"0" && User::all().len() == 1
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_looks_into_the_agent() {
    if is_root_only() {
        eprintln!("NOT TRIED: root may look into every process, and there is no other user to become");
        return;
    }
    assert_eq!(seen(true).await, Vec::<&str>::new());
}

/// `mem` is closed by the kernel itself where Yama is on.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_protect_itself_is_open() {
    if is_root_only() {
        return;
    }
    let seen = seen(false).await;
    assert!(["environ", "maps", "files"].iter().all(|name| seen.contains(name)), "{seen:?}");
}
