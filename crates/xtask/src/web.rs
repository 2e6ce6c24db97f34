//! The page in `web/`: its packages, its own checks, its tests in a real browser, its pictures, and the types that it has
//! of the API.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{cargo, root, run, target};

/// Every cargo command of one run gets this: a page that cannot be built is an error here, and switching between the
/// ways of building it would build everything above it again.
pub(crate) const PAGE_IS_REQUIRED: (&str, &str) = ("GIGA_WEB", "require");

/// Its packages, and the page itself. The build script of `giga-web` knows how, and that nobody else does it meanwhile.
pub(crate) fn install() -> Result<()> {
    let (name, value) = PAGE_IS_REQUIRED;
    run(cargo().args(["build", "--quiet", "--locked", "-p", "giga-web"]).env(name, value))
}

/// What can be said without a browser: format, lints, types, unit tests, and that its types of the API are those of the
/// document. That the document is the coordinator's is checked with the other references.
pub(crate) fn check() -> Result<()> {
    npm(&["run", "--silent", "check"])?;
    run(Command::new("node").args(["scripts/types.mjs", "--check"]).current_dir(folder()))?;
    npm(&["test", "--silent"])
}

/// Real coordinators and factories, a real browser.
pub(crate) fn browse() -> Result<()> {
    run(Command::new("npm").args(["run", "--silent", "e2e"]).current_dir(folder()).env("GIGA_BIN", binary()?))
}

/// Writes the pictures in docs/images anew.
pub(crate) fn screenshots() -> Result<()> {
    run(Command::new("npm")
        .args(["run", "--silent", "screenshots"])
        .current_dir(folder())
        .env("GIGA_BIN", binary()?))
}

/// Writes docs/openapi.json and what the page makes of it.
pub(crate) fn types() -> Result<()> {
    // With or without a page: the document is the same, and nothing is built twice.
    let words = ["test", "--quiet", "--locked", "-p", "xtask", "--test", "references"];
    run(cargo().args(words).env("GIGA_UPDATE_DOCS", "1"))?;
    run(Command::new("node").arg("scripts/types.mjs").current_dir(folder()))
}

/// The binary with the page in it, as new as the sources.
fn binary() -> Result<PathBuf> {
    let (name, value) = PAGE_IS_REQUIRED;
    run(cargo().args(["build", "--quiet", "--locked", "-p", "giga"]).env(name, value))?;
    Ok(std::path::absolute(target().join("debug/giga"))?)
}

fn npm(words: &[&str]) -> Result<()> {
    run(Command::new("npm").args(words).current_dir(folder()))
}

fn folder() -> PathBuf {
    root().join("web")
}
