//! The last release beside this one: built from its revision, and replaced while jobs run.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{cargo, root, run, target};

/// Dependencies are built again for it, the first time: its target folder is its own, so that nothing of it is taken for ours.
pub(crate) fn check(words: &[String]) -> Result<()> {
    let file = root().join("tests/upgrade/last-release");
    let revision = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let program = last_release(revision.trim())?;
    let test = ["test", "--locked", "-p", "giga", "--test", "upgrade", "--", "--nocapture"];
    run(cargo().args(test).args(words).env("GIGA_LAST_RELEASE", program))
}

fn last_release(revision: &str) -> Result<PathBuf> {
    let folder = target().join("upgrade");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let (tree, built) = (folder.join(revision), folder.join("target"));
    if !tree.join("Cargo.toml").exists() {
        let git = |words: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.current_dir(root()).args(words);
            command
        };
        // One that was deleted by hand is still in git's list.
        run(&mut git(&["worktree", "prune"]))?;
        run(git(&["worktree", "add", "--detach"]).arg(&tree).arg(revision)).with_context(|| {
            format!("the last release is revision {revision}; a shallow clone gets it with `git fetch --unshallow`")
        })?;
    }
    let packages = ["-p", "giga", "-p", "giga-factory"];
    // Not ours, which a sanitizer or coverage may have set up for the tests.
    let mut build = cargo();
    build.current_dir(&tree).args(["build", "--locked", "--bins"]).args(packages);
    run(build.env("CARGO_TARGET_DIR", &built).env_remove("RUSTFLAGS"))?;
    Ok(built.join("debug/giga"))
}
