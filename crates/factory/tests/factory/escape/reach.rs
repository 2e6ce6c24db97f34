//! What a job can read, write and signal: its own, and nothing else.

use std::fmt::Write;

use giga_api::wire::Stage;
use giga_factory::sandbox::SandboxMode;
use serde_json::json;

use super::agent::{FACTORY, SECRET, User, Victim};
use crate::agent::world::World;

/// Each is a command that succeeds when the attack does. `$AGENT` is the agent's process, `$WORLD` the folder with everything
/// of the operator's, `$BASE` the agent's own.
pub(super) const ATTACKS: [(&str, &str); 9] = [
    ("the factory's token", "grep -q giga_factory_ \"$BASE/factory.token\""),
    ("the admin's token", "grep -q SECRET \"$WORLD/admin.token\""),
    ("the operator's key", "grep -q SECRET \"$WORLD/home/.ssh/id_ed25519\""),
    ("another job's tree", "grep -q SECRET \"$WORLD/other-job/tree/file\""),
    ("the agent's environment", "tr '\\0' '\\n' < \"/proc/$AGENT/environ\" | grep -q ^GIGA_TOKEN="),
    ("the agent's signal handlers", "kill -0 \"$AGENT\""),
    ("the agent's folder", "echo planted > \"$BASE/planted\" && test -e \"$BASE/factory.token\""),
    ("the operator's profile", "echo planted >> \"$WORLD/home/.profile\" && test -e \"$WORLD/admin.token\""),
    ("programs of the system", "touch /usr/bin/giga-escape-test 2>/dev/null && rm /usr/bin/giga-escape-test"),
];

/// Prints the names of those that came through.
pub(super) fn script(world: &World, agent: u32) -> String {
    let mut script =
        format!("AGENT={agent}\nWORLD={}\nBASE={}\n", world.path().display(), world.base(FACTORY).display());
    for (name, attack) in ATTACKS {
        let attack = attack.replace("SECRET", SECRET);
        writeln!(script, "if ( {attack} ) 2>/dev/null; then echo \"escaped: {name}\"; fi").unwrap();
    }
    script.push_str("echo tried them all");
    script
}

async fn escaped(world: &World, user: User, mode: SandboxMode) -> Vec<String> {
    let victim = Victim::start(world, user, mode, json!({}));
    // The first job tells that the agent is up, and by then it is what it will be.
    let first = world.submit("first", "ship: auto", "true").await;
    world.until_stage(&first, Stage::Shipped).await;
    let job = world.submit("attacker", "ship: auto", &script(world, victim.pid())).await;
    world.until_stage(&job, Stage::Shipped).await;
    let log = world.log(&job, None).await;
    came_through(&log)
}

pub(super) fn came_through(output: &str) -> Vec<String> {
    assert!(output.contains("tried them all"), "{output}");
    output.lines().filter_map(|line| line.strip_prefix("escaped: ")).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_reaches_nothing_of_the_host() {
    for user in User::all() {
        let world = World::start().await;
        let escaped = escaped(&world, *user, SandboxMode::Require).await;
        assert_eq!(escaped, Vec::<String>::new(), "as {user:?}");
        assert!(!world.base(FACTORY).join("planted").exists());
        assert!(!world.path().join("home/.profile").exists());
    }
}

/// Without a sandbox all of it is open, so that the test above means something.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_a_job_reaches_everything() {
    let world = World::start().await;
    let escaped = escaped(&world, User::This, SandboxMode::Off).await;
    let of_root_only = "programs of the system";
    for (name, _) in ATTACKS.iter().filter(|(name, _)| *name != of_root_only) {
        assert!(escaped.iter().any(|escaped| escaped == name), "{name} is not among {escaped:?}");
    }
}

/// What it is meant to do still works: its tree, a home, a place for temporary files, git, the token of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_what_it_needs() {
    for user in User::all() {
        let world = World::start().await;
        let _victim = Victim::start(&world, *user, SandboxMode::Require, json!({}));
        let script = "echo x > here; echo x > \"$HOME/there\"; echo x > \"$TMPDIR/tmp\"; echo x > /tmp/tmp\n\
                      test \"$PWD\" = \"$(pwd)\"; test -n \"$GIGA_TOKEN\"; test -r \"$GIGA_PROMPT_FILE\"\n\
                      git init -q . && git config user.email a@example.invalid && git config user.name A\n\
                      git add here && git commit -qm one && git log --oneline | grep -q one\n\
                      test \"$(ls -A \"$HOME\")\" = there; test ! -e /home -a ! -e /root -a ! -e /etc/shadow\n\
                      test \"$(ls -d /proc/[0-9]* | wc -l)\" -lt 8";
        let job = world.submit("honest", "ship: auto", script).await;
        world.until_stage(&job, Stage::Shipped).await;
    }
}
