//! Packages of Python that tests need, pinned by their requirements, in folders of the workspace: nothing of the machine is
//! changed, and the tests find them there. Does nothing when they are there already.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// Where the requirements are, and what the folder below target/tools is called.
const SETS: [(&str, &str); 4] = [
    ("examples/python-worker", "python-worker"),
    ("tests/deploy", "deploy"),
    ("tests/mcp-client", "mcp-client"),
    ("tests/servicebus-peer", "servicebus-client"),
];

pub(crate) fn install() -> Result<()> {
    SETS.iter().try_for_each(|(folder, name)| install_set(folder, name))
}

fn install_set(folder: &str, name: &str) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let requirements = root.join(folder).join("requirements.txt");
    let wanted = std::fs::read_to_string(&requirements)
        .with_context(|| format!("{} cannot be read", requirements.display()))?;
    let home = root.join("target/tools").join(name);
    // Written last, so that an interrupted run is not taken for a whole one.
    let stamp = home.join("requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut pip = Command::new("python3");
    if !pip.args(["-m", "pip", "--version"]).output().is_ok_and(|output| output.status.success()) {
        bail!("the tests need python3 with pip, to run programs in Python");
    }
    eprintln!("installing the Python packages of {folder}");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "--no-deps",
    ]);
    pip.arg("--target").arg(&home).arg("-r").arg(&requirements).env("PIP_ROOT_USER_ACTION", "ignore");
    run(&mut pip)?;
    std::fs::write(stamp, wanted)?;
    Ok(())
}
