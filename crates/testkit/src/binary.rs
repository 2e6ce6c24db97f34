//! Binaries of other packages, for tests that start them: cargo builds only those of the tested package by itself.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Builds it, or finds it built.
pub fn built(package: &str, binary: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "-q", "-p", package, "--bin", binary, "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, because it runs this test");
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.unwrap_or_else(|| panic!("no {binary}: {}", String::from_utf8_lossy(&output.stderr)))
}
