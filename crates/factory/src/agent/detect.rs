//! What this machine has, found by looking: the system, tools on the path, engines that are ready to run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use giga_domain::{Capability, CapabilitySet};

use crate::sandbox::Sandbox;

/// Programs that jobs ask for by `has:<name>`.
const TOOLS: &[&str] = &[
    "git",
    "cargo",
    "make",
    "gcc",
    "docker",
    "go",
    "java",
    "npm",
    "pnpm",
    "yarn",
    "pip",
    "uv",
    "gh",
    "psql",
    "xcodebuild",
];

/// Everything but engines and repositories, as far as a job would find it.
pub(super) async fn machine(sandbox: &Sandbox) -> CapabilitySet {
    let os = match std::env::consts::OS {
        "macos" => "mac",
        other => other,
    };
    let mut found = vec![format!("os:{os}"), format!("arch:{}", std::env::consts::ARCH)];
    found.push(Capability::SEVERAL_REPOS.to_owned());
    found.push(Capability::SECRETS.to_owned());
    found.push(Capability::ENGINE_CHOICE.to_owned());
    found.extend(
        TOOLS.iter().filter(|tool| on_path(tool, sandbox).is_some()).map(|tool| format!("has:{tool}")),
    );
    if let Some(version) = major_version("node", "v", sandbox).await {
        found.push(format!("node:{version}"));
    }
    if let Some(version) = python_version(sandbox).await {
        found.push(format!("python:{version}"));
    }
    found.iter().filter_map(|token| token.parse::<Capability>().ok()).collect()
}

fn on_path(program: &str, sandbox: &Sandbox) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| is_program(file) && sandbox.shows(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// `v20.1.0` is `20`.
async fn major_version(program: &str, prefix: &str, sandbox: &Sandbox) -> Option<String> {
    let text = version_text(program, sandbox).await?;
    let version = text.trim().strip_prefix(prefix)?;
    version.split('.').next().filter(|part| part.chars().all(|c| c.is_ascii_digit())).map(str::to_owned)
}

/// `Python 3.11.7` is `3.11`.
async fn python_version(sandbox: &Sandbox) -> Option<String> {
    let text = version_text("python3", sandbox).await?;
    let mut parts = text.trim().strip_prefix("Python ")?.split('.');
    Some(format!("{}.{}", parts.next()?, parts.next()?))
}

async fn version_text(program: &str, sandbox: &Sandbox) -> Option<String> {
    let mut command = tokio::process::Command::new(on_path(program, sandbox)?);
    command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(5), command.output()).await.ok()?.ok()?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_says_what_it_is() {
        let found = machine(&Sandbox::off()).await;
        assert!(found.iter().any(|c| c.as_str().starts_with("os:")), "{found:?}");
        assert!(found.iter().any(|c| c.as_str().starts_with("arch:")), "{found:?}");
        assert!(found.contains(&"has:git".parse().unwrap()), "the tests run from a checkout: {found:?}");
    }

    #[test]
    fn a_folder_or_a_plain_file_is_no_program() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_program(folder.path()));
        let file = folder.path().join("x");
        std::fs::write(&file, "x").unwrap();
        assert!(!is_program(&file));
    }
}
