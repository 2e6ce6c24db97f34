//! Whether bubblewrap works here, found by running it as a job would be run.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::bubblewrap::Bubblewrap;
use super::cgroup::Cgroups;
use super::config::SandboxConfig;
use super::view::{Enclosed, View};
use crate::engines::HostEnvironment;

const PATIENCE: Duration = Duration::from_secs(20);

/// In words why not.
pub(super) async fn bubblewrap(config: SandboxConfig, host: &HostEnvironment) -> Result<Bubblewrap, String> {
    if !cfg!(target_os = "linux") {
        return Err("bubblewrap is for Linux only".to_owned());
    }
    let program = host.find_program(Path::new("bwrap")).ok_or("bubblewrap is not installed")?;
    let version = version(&program).await;
    let groups = Cgroups::of_this_process();
    let found = Bubblewrap { program, version, config, host: host.clone(), groups };
    match attempt(&found, host).await {
        Ok(()) => Ok(found),
        Err(why) => Err(format!("bubblewrap does not work here: {why}")),
    }
}

async fn version(program: &PathBuf) -> String {
    let mut command = tokio::process::Command::new(program);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let printed = tokio::time::timeout(PATIENCE, command.output()).await;
    let text = printed.ok().and_then(Result::ok).map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.trim().rsplit(' ').next().filter(|word| !word.is_empty()).unwrap_or("of unknown version").to_owned()
}

async fn attempt(found: &Bubblewrap, host: &HostEnvironment) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).map_err(|error| error.to_string())?;
    let inside = Enclosed {
        program: host.find_program(Path::new("true")).ok_or("there is no program `true`")?,
        args: Vec::new(),
        env: host.for_engine([], &[]),
        dir: tree,
        view: View::in_folder(folder.path()),
    };
    let (mut command, _guard) = found.command(inside).map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let output =
        ended.map_err(|_| format!("no end within {PATIENCE:?}"))?.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().next().map_or_else(|| output.status.to_string(), str::to_owned))
}
