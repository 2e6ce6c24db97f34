//! Installs what the tests need and is not there yet. Safe to run again; does nothing when all is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::run as run_command;

fn run_as_root(program: &str) -> Command {
    if is_root() {
        Command::new(program)
    } else {
        let mut command = Command::new("sudo");
        command.arg(program);
        command
    }
}

pub(crate) fn run() -> Result<()> {
    if postgres_server().is_some() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "the tests need PostgreSQL 13 or newer with its server programs (initdb, postgres) on the PATH"
        );
    }
    eprintln!("installing PostgreSQL for the tests");
    // The cluster that the package would make and start is not wanted: each test run has its own.
    let apt = |words: &[&str]| {
        run_command(run_as_root("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(words))
    };
    apt(&["update", "-q"])?;
    apt(&["install", "-q", "-y", "--no-install-recommends", "postgresql-common"])?;
    let no_cluster = "create_main_cluster = false\n";
    let drop_in = Path::new("/etc/postgresql-common/createcluster.d/no-main-cluster.conf");
    if drop_in.parent().is_some_and(Path::exists) {
        run_command(
            run_as_root("sh").args(["-c", &format!("printf '{no_cluster}' > {}", drop_in.display())]),
        )?;
    }
    apt(&["install", "-q", "-y", "--no-install-recommends", "postgresql"])?;
    if postgres_server().is_none() {
        bail!("PostgreSQL was installed but its server program is not where it is expected");
    }
    Ok(())
}

/// The newest installed server.
fn postgres_server() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|v| v.path().join("bin/postgres")).filter(|path| path.exists()).collect();
    found.sort();
    let mut on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).map(|dir| dir.join("postgres")).collect::<Vec<_>>());
    found.pop().or_else(|| on_path.find(|path| path.exists()))
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|ids| ids.split_whitespace().next().map(|id| id == "0")).unwrap_or(false)
}
