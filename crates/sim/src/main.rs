//! `giga-sim`: plays many seeds, or one of them with its trace.

use std::io::Write;
use std::process::ExitCode;

use giga_sim::{Bug, report, run, run_many};

const USAGE: &str = "usage: giga-sim [--seeds N] [--seed S] [--trace] [--bug NAME]
  --seeds N   play N seeds (default 10000), from S on where it is given
  --seed S    play this seed alone, unless --seeds says how many
  --trace     show every line of what happened; for a single seed
  --bug NAME  plant a bug and see it found";

/// So many seeds with a violation are enough to look at.
const ENOUGH: usize = 5;

#[derive(Default)]
struct Asked {
    seed: Option<u64>,
    seeds: Option<u64>,
    trace: bool,
    bug: Option<Bug>,
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg}: a value is missing\n{USAGE}"));
        let number =
            |text: String| text.parse::<u64>().map_err(|_| format!("{arg}: `{text}` is not a whole number"));
        match arg.as_str() {
            "--seed" => asked.seed = Some(number(value()?)?),
            "--seeds" => asked.seeds = Some(number(value()?)?),
            "--trace" => asked.trace = true,
            "--bug" => asked.bug = Some(value()?.parse()?),
            other => return Err(format!("`{other}` is not an option\n{USAGE}")),
        }
    }
    Ok(asked)
}

fn main() -> ExitCode {
    let asked = match parse(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            return ExitCode::from(2);
        }
    };
    let mut out = std::io::stdout().lock();
    if let (Some(seed), None | Some(1), true) = (asked.seed, asked.seeds, asked.trace) {
        let outcome = run(seed, asked.bug, true);
        for line in &outcome.trace {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "seed {seed}: {} violations, {:?}", outcome.violations.len(), outcome.tally);
        return if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let first = asked.seed.unwrap_or(0);
    let count = asked.seeds.unwrap_or(if asked.seed.is_some() { 1 } else { 10_000 });
    let (tally, failed) = run_many(first, count, asked.bug, ENOUGH);
    for outcome in &failed {
        let _ = writeln!(out, "{}\n", report(outcome.seed, asked.bug));
    }
    let _ =
        writeln!(out, "seeds {first} to {}: {} with a violation, {tally:?}", first + count - 1, failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
