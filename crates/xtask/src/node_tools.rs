//! Servers for the tests that come from npm: Azurite, Microsoft's emulator of Azure Blob storage, and an OpenID provider. Each
//! is pinned by its folder in `tests/`, and put where `giga_testkit` looks for it. Does nothing for what is there already.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run;

pub(crate) fn install() -> Result<()> {
    install_one("azurite")?;
    install_one("oidc-provider")
}

fn install_one(name: &str) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let from = root.join("tests").join(name);
    let wanted = std::fs::read_to_string(from.join("package-lock.json"))
        .with_context(|| format!("{} has no package-lock.json", from.display()))?;
    let home = root.join("target/tools").join(name);
    // Written last, so that an interrupted run is not taken for a whole one.
    let stamp = home.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing {name} for the tests");
    std::fs::create_dir_all(&home)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(file), home.join(file))?;
    }
    let words = ["ci", "--no-audit", "--no-fund", "--silent", "--omit=dev", "--ignore-scripts"];
    run(Command::new("npm").args(words).current_dir(&home))?;
    std::fs::write(stamp, wanted)?;
    Ok(())
}
