//! `cargo giga ARGS`: builds `giga` for a first look and becomes it.
//!
//! The profile `quick` takes less than half of what `release` takes to build, and a person does not notice the rest.

use std::os::unix::process::CommandExt as _;

use anyhow::{Error, Result};

use crate::{cargo, target};

const PROFILE: &str = "quick";

/// Returns only where cargo could not be started: keys and signals are for `giga` alone.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let built = target().join(PROFILE).join("giga").exists();
    let mut build = cargo();
    build.args(["run", "--profile", PROFILE, "--locked", "--package", "giga"]);
    if built {
        build.arg("--quiet");
    } else {
        eprintln!(
            "Building giga, once: its dependencies, its own crates, and with Node.js the web page. \
             This takes a few minutes; later starts take none."
        );
    }
    Err(Error::new(build.arg("--").args(words).exec()).context("cargo could not be started"))
}
