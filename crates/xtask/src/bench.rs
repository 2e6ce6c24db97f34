//! Benchmarks: those of single crates, and the whole system beside a peer.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, root, run, setup, target};

/// `bench` runs the crates' own; `bench dispatch [WORDS]` runs `giga-bench dispatch WORDS` beside a private PostgreSQL,
/// `bench merges [WORDS]` runs `giga-bench merges WORDS`, and so does `bench sandbox`.
pub(crate) fn bench(words: &[String]) -> Result<()> {
    setup::run()?;
    match words.split_first() {
        Some((what, rest)) if what == "dispatch" => dispatch(rest),
        Some((what, rest)) if what == "merges" || what == "sandbox" => alone(what, rest),
        _ => {
            run(cargo().args(["bench", "--locked", "-p", "giga-scheduler", "--bench", "plan"]))?;
            run(cargo().args(["bench", "--locked", "-p", "giga-store"]))
        }
    }
}

fn dispatch(words: &[String]) -> Result<()> {
    let built = build(&["giga", "giga-bench", "giga-testkit"])?;
    let mut command = Command::new(built.join("with-postgres"));
    command.arg(built.join("giga-bench")).arg("dispatch");
    if let Some(peer) = install_peer()? {
        command.arg("--peer").arg(peer);
    }
    run(command.args(words))
}

/// Those that need nothing beside them.
fn alone(what: &str, words: &[String]) -> Result<()> {
    let built = build(&["giga", "giga-bench"])?;
    run(Command::new(built.join("giga-bench")).arg(what).args(words))
}

/// The folder of the programs.
fn build(packages: &[&str]) -> Result<PathBuf> {
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    run(cargo().args(["build", "--release", "--locked"]).args(packages))?;
    Ok(target().join("release"))
}

/// The peer's packages, in the target folder. Without npm it is measured without a peer.
fn install_peer() -> Result<Option<PathBuf>> {
    if Command::new("npm").arg("--version").output().is_err() {
        eprintln!("there is no npm here: measuring without a peer");
        return Ok(None);
    }
    let from = root().join("benches/peers/graphile-worker");
    let to = target().join("peers/graphile-worker");
    std::fs::create_dir_all(&to).with_context(|| format!("{} cannot be made", to.display()))?;
    for file in ["package.json", "package-lock.json", "bench.mjs"] {
        std::fs::copy(from.join(file), to.join(file)).with_context(|| format!("{file} cannot be copied"))?;
    }
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&to))?;
    Ok(Some(to))
}
