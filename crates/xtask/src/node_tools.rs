//! Programs that come from npm: servers for the tests (Azurite, Microsoft's emulator of Azure Blob storage, an OpenID
//! provider, and AMQP for a stand-in of Azure Service Bus), put where `giga_testkit` looks for them, and on demand the coding engines of the real-engine matrix, which are
//! large and kept outside of the repository. Each is pinned by its folder in `tests/`. Does nothing for what is there already.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{root, run};

pub(crate) fn install() -> Result<()> {
    for name in ["azurite", "oidc-provider", "servicebus-peer"] {
        let words = ["ci", "--no-audit", "--no-fund", "--silent", "--omit=dev", "--ignore-scripts"];
        install_one(name, &root().join("target/tools").join(name), &[&words])?;
    }
    Ok(())
}

/// Where the programs of the engines are then. `npm ci` would insist on their builds for every other system.
pub(crate) fn install_engines() -> Result<PathBuf> {
    let home = engines_home()?;
    let fetch = ["install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"];
    // These two put their program in place by a script.
    let place = ["rebuild", "--silent", "@anthropic-ai/claude-code", "opencode-ai"];
    install_one("engines", &home, &[&fetch, &place])?;
    Ok(home.join("node_modules/.bin"))
}

fn engines_home() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    Ok(cache.or_else(home).context("set HOME or XDG_CACHE_HOME")?.join("giga/engines"))
}

fn install_one(name: &str, home: &Path, steps: &[&[&str]]) -> Result<()> {
    let from = root().join("tests").join(name);
    let wanted = std::fs::read_to_string(from.join("package-lock.json"))
        .with_context(|| format!("{} has no package-lock.json", from.display()))?;
    // Written last, so that an interrupted run is not taken for a whole one.
    let stamp = home.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing {name} for the tests");
    std::fs::create_dir_all(home)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(file), home.join(file))?;
    }
    for words in steps {
        run(Command::new("npm").args(*words).current_dir(home))?;
    }
    std::fs::write(stamp, wanted)?;
    Ok(())
}
