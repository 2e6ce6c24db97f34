//! What a job may use up of the machine is bounded.

use giga_api::wire::{Job, Stage};
use giga_factory::sandbox::SandboxMode;
use serde_json::{Value, json};

use super::agent::{User, Victim};
use crate::agent::world::World;

const MIB: u64 = 1 << 20;

/// Each must fail; answers in which words.
async fn fails(user: User, limits: Value, script: &str) -> String {
    let world = World::start().await;
    let _victim = Victim::start(&world, user, SandboxMode::Require, limits);
    let job = world.submit("bomb", "retry: {max: 0}", script).await;
    let over =
        |job: &Job| matches!(job.stage, Stage::Failed | Stage::DeadLetter | Stage::Testing | Stage::Shipped);
    let job = world.until(&job, over).await;
    let log = world.log(&job.id, None).await;
    assert!(!log.contains("went off"), "as {user:?}: {log}");
    let failure = job.failure.unwrap_or_else(|| panic!("as {user:?}, it did not fail: {log}"));
    format!("{} {log}", failure.words())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_cut() {
    let bomb = "i=0; while [ $i -lt 2000 ]; do sleep 600 & i=$((i+1)); done; wait; echo went off";
    for user in User::all() {
        let words = fails(*user, json!({"processes": 64}), bomb).await;
        // The kernel bounds a plain user; root is above that, and the watch is above root.
        assert!(words.contains("more than 64 processes") || words.contains("fork"), "as {user:?}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_gets_more_memory_than_the_run_may_have() {
    let bomb = "head -c 1000000000 /dev/zero | tail | wc -c > size; test \"$(cat size)\" = 0; exit 9";
    let words = fails(User::This, json!({"memory": 256 * MIB}), bomb).await;
    assert!(words.contains("memory exhausted"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_get_no_more_memory_than_the_run_may_have() {
    // `tail` keeps a line that never ends, and fills its memory as fast as the machine can: a shell's variable takes minutes
    // for it on a busy one.
    let bomb = "for i in 1 2 3 4 5 6 7 8; do\n\
                  ( { head -c 60000000 /dev/zero; sleep 600; } | tail > /dev/null ) &\n\
                done; wait; echo went off";
    let words = fails(User::This, json!({"memory": 256 * MIB}), bomb).await;
    assert!(words.contains("more than 256 MiB of memory"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_grows_larger_than_it_may() {
    let bomb = "head -c 100000000 /dev/zero > big; echo went off";
    let words = fails(User::This, json!({"file": 8 * MIB}), bomb).await;
    assert!(words.contains("file") || words.contains("File"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_are_no_larger_than_the_run_may_have() {
    let bomb = "i=0; while [ $i -lt 64 ]; do head -c 4194304 /dev/zero > \"$HOME/$i\"; i=$((i+1)); done\n\
                sleep 600; echo went off";
    let words = fails(User::This, json!({"disk": 64 * MIB}), bomb).await;
    assert!(words.contains("more than 64 MiB of disk"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_looks_like_a_disk_is_bounded() {
    let bomb = "head -c 600000000 /dev/zero > /dev/shm/big; echo went off";
    let words = fails(User::This, json!({}), bomb).await;
    assert!(words.contains("No space left"), "{words}");
}
