//! Node and npm: are they there, are the packages there, and the build itself.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What Vite asks for.
const NODE_NEEDED: (u32, u32) = (20, 19);

pub(crate) fn check() -> Result<(), String> {
    let needed = format!("Node {}.{} or newer with npm", NODE_NEEDED.0, NODE_NEEDED.1);
    let remedy = "on Debian 13 or newer: apt-get install nodejs npm; elsewhere: nodejs.org";
    let printed = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    let printed =
        printed.map_err(|_| format!("there is no Node here, and the page takes {needed} ({remedy})"))?;
    let printed = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
    if version(&printed).is_none_or(|found| found < NODE_NEEDED) {
        return Err(format!("Node is {printed}, and the page takes {needed} ({remedy})"));
    }
    match Command::new("npm").arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!("there is Node but no npm here, and the page takes {needed} ({remedy})")),
    }
}

fn version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Held until it is dropped: one npm at a time in this folder, whoever builds.
pub(crate) fn lock(web: &Path) -> Result<File, String> {
    // It is always there, and `npm ci` neither writes nor replaces it.
    let path = web.join("package-lock.json");
    let failed = |error: std::io::Error| format!("{} cannot be locked: {error}", path.display());
    let file = File::open(&path).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

/// A copy of the lock file that the packages were installed from, written last, so that an interrupted installation is
/// not taken for a whole one.
pub(crate) fn mark(web: &Path) -> PathBuf {
    web.join("node_modules/.installed-from.json")
}

pub(crate) fn install(web: &Path) -> Result<(), String> {
    let path = web.join("package-lock.json");
    let wanted = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mark = mark(web);
    if std::fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if !is_installed_by_hand(web) {
        // Packages run nothing on this machine, and what is asked for is exactly what is locked.
        let words =
            ["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
        // Without a network this is to end soon.
        let patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"];
        run(Command::new("npm").args(words).args(patience), web, "npm ci")?;
    }
    let written = std::fs::write(&mark, &wanted).and_then(|()| {
        // As old as what it was made from: cargo must not take it for news.
        let made = std::fs::metadata(&path)?.modified()?;
        File::options().write(true).open(&mark)?.set_modified(made)
    });
    written.map_err(|error| format!("{} cannot be written: {error}", mark.display()))
}

/// Npm's own note of what it installed.
pub(crate) fn installed(web: &Path) -> PathBuf {
    web.join("node_modules/.package-lock.json")
}

/// Somebody who works on the page ran `npm install`: npm's note is then as new as the lock.
fn is_installed_by_hand(web: &Path) -> bool {
    let changed = |path: PathBuf| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    match (changed(installed(web)), changed(web.join("package-lock.json"))) {
        (Some(installed), Some(locked)) => installed >= locked,
        _ => false,
    }
}

pub(crate) fn build(web: &Path, dist: &Path) -> Result<(), String> {
    let mut command = Command::new("node");
    command.args(["scripts/build.mjs", "--outDir"]).arg(dist).env("NODE_ENV", "production");
    run(&mut command, web, "the build of the page")
}

/// What it printed is shown only where it failed, the line that says why first.
fn run(command: &mut Command, web: &Path, what: &str) -> Result<(), String> {
    command.current_dir(web).stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("FORCE_COLOR");
    let output = command.output().map_err(|error| format!("{what} could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stderr, output.stdout].concat();
    let printed = String::from_utf8_lossy(&printed);
    let is_npms = |line: &str| line.starts_with("npm error ") && !line.starts_with("npm error code");
    let telling = |line: &&str| line.contains("Error:") || is_npms(line);
    let first = printed.lines().find(telling).or(printed.lines().next()).unwrap_or_default().trim();
    Err(format!("{what} failed ({}): {first}\n{printed}", output.status))
}
