//! The Python example against a real coordinator: the contract alone is enough for a worker in another language.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::world::{Home, run};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python-worker")
}

/// Python with the packages that `cargo xtask setup` put there, and nothing else of the surroundings.
fn worker(home: &Home, url: &str, token: &str) -> Command {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python-worker");
    assert!(packages.join("requirements.txt").exists(), "run `cargo xtask setup` first");
    let mut command = Command::new("python3");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home.path());
    command.env("PYTHONPATH", packages.canonicalize().unwrap()).env("PYTHONDONTWRITEBYTECODE", "1");
    // Tests that run at once do not share what they generate.
    command.env("GIGA_STUBS", home.path().join("stubs"));
    command.env("GIGA_URL", url).env("GIGA_TOKEN", token).env("GIGA_PRODUCT", "demo");
    command.arg(example().join("worker.py")).stdin(Stdio::null());
    command
}

#[test]
fn a_worker_in_python_handles_every_job_exactly_once() {
    let home = Home::new();
    let server = home.start();
    // Short, so that the job which outlives its first lease does not take long.
    home.giga(&["flags", "set", "topic_lease_ms", "2000"]).ok();
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let message = run(worker(&home, &server.url, token.trim()).args(["check", "300"])).ok();
    assert_eq!(message, "ok: 300 jobs handled exactly once, 1 of them at the second try\n");
}

#[test]
fn a_worker_in_python_is_told_what_is_wrong_with_its_token() {
    let home = Home::new();
    let server = home.start();
    let refused = run(worker(&home, &server.url, "giga_nonsense").args(["enqueue", "2"])).fails(1);
    assert!(refused.starts_with("UNAUTHENTICATED: "), "{refused}");
}
