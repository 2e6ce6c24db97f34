//! The page in `web/`: its packages, its own checks, its tests in a real browser, its pictures, and the types that it has
//! of the API.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{cargo, root, run, setup, target};

/// Every cargo command of one run gets this: a page that cannot be built is an error here, and switching between the
/// ways of building it would build everything above it again.
pub(crate) const PAGE_IS_REQUIRED: (&str, &str) = ("GIGA_WEB", "require");

/// Its packages, and the page itself. The build script of `giga-web` knows how, and that nobody else does it meanwhile.
pub(crate) fn install() -> Result<()> {
    let (name, value) = PAGE_IS_REQUIRED;
    run(cargo().args(["build", "--quiet", "--locked", "-p", "giga-web"]).env(name, value))
}

/// What can be checked without a browser: format, lints, types, unit tests, and that its types of the API are those of the
/// document. That the document is the coordinator's is checked with the other references.
pub(crate) fn check() -> Result<()> {
    npm(&["run", "--silent", "check"])?;
    run(Command::new("node").args(["scripts/types.mjs", "--check"]).current_dir(folder()))?;
    npm(&["test", "--silent"])
}

/// Real coordinators and factories of this binary, a real browser.
pub(crate) fn browse(giga: &Path) -> Result<()> {
    with_browser("e2e", giga)
}

/// Writes the pictures in docs/images anew.
pub(crate) fn screenshots() -> Result<()> {
    with_browser("screenshots", &build()?)
}

fn with_browser(script: &str, giga: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", script]).current_dir(folder()).env("GIGA_BIN", giga);
    run(npm.env(setup::BROWSER, setup::browser()?))
}

/// Writes docs/openapi.json and what the page makes of it.
pub(crate) fn types() -> Result<()> {
    install()?;
    let (name, value) = PAGE_IS_REQUIRED;
    // Of the workspace, so that it is made of what the other tests are made of.
    let words = ["test", "--quiet", "--locked", "--workspace", "--test", "references"];
    run(cargo().args(words).env(name, value).env("GIGA_UPDATE_DOCS", "1"))?;
    run(Command::new("node").arg("scripts/types.mjs").current_dir(folder()))
}

/// The binary with the page in it, as new as the sources.
pub(crate) fn build() -> Result<PathBuf> {
    let (name, value) = PAGE_IS_REQUIRED;
    // The features of some dependencies depend on whether tests are built as well. With a test among what is asked for
    // (a small one) it is the binary of `cargo test --workspace`, and nothing is built in two ways.
    let words = ["build", "--quiet", "--locked", "--workspace", "--bin", "giga", "--test", "tidy"];
    run(cargo().args(words).env(name, value))?;
    built()
}

/// Where `cargo test --workspace` leaves it too: the tests of the command line start it.
pub(crate) fn built() -> Result<PathBuf> {
    Ok(std::path::absolute(target().join("debug/giga"))?)
}

fn npm(words: &[&str]) -> Result<()> {
    run(Command::new("npm").args(words).current_dir(folder()))
}

fn folder() -> PathBuf {
    root().join("web")
}
