//! What is in `deploy/`, and the images: rendered, unpacked and judged by programs that are not ours. Nothing is started.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod chart;
mod compose;
mod flags;
mod image;
mod units;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where `cargo xtask setup` puts Helm and the schemas.
fn tools() -> PathBuf {
    let tools = root().join("target/tools/deploy");
    assert!(tools.exists(), "`cargo xtask setup` installs what this test needs");
    tools
}

/// The schemas' word on a document: itself as JSON, or what is wrong with it.
fn judged(words: &[&str], input: &str) -> Result<serde_json::Value, String> {
    let mut python = Command::new("python3");
    python.arg(root().join("tests/deploy/check.py")).args(words).env("PYTHONPATH", tools());
    let output = fed(&mut python, input);
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn fed(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}
