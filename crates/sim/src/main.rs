//! `giga-sim`: plays many seeds, or one of them with its trace.

use std::io::Write;
use std::process::ExitCode;

use giga_sim::{Bug, Outcome, replay_command, run, run_many};

const USAGE: &str = "usage: giga-sim [--seeds N] [--seed S] [--trace] [--bug NAME]
  --seeds N   play N seeds (default 10000), from S on where it is given
  --seed S    play this seed alone, unless --seeds says how many
  --trace     show every line of what happened
  --bug NAME  plant a bug and see it found";

/// The end of a trace that is worth reading.
const LAST: usize = 60;

struct Asked {
    seed: Option<u64>,
    seeds: Option<u64>,
    trace: bool,
    bug: Option<Bug>,
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { seed: None, seeds: None, trace: false, bug: None };
    while let Some(arg) = args.next() {
        let mut value = |name: &str| args.next().ok_or(format!("{name}: a value is missing"));
        let number = |name: &str, text: String| {
            text.parse::<u64>().map_err(|_| format!("{name}: `{text}` is not a whole number"))
        };
        match arg.as_str() {
            "--seed" => asked.seed = Some(number("--seed", value("--seed")?)?),
            "--seeds" => asked.seeds = Some(number("--seeds", value("--seeds")?)?),
            "--trace" => asked.trace = true,
            "--bug" => asked.bug = Some(value("--bug")?.parse()?),
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
    let (first, count) = match (asked.seed, asked.seeds) {
        (Some(seed), None) => (seed, 1),
        (seed, seeds) => (seed.unwrap_or(0), seeds.unwrap_or(10_000)),
    };
    if count == 1 {
        let outcome = run(first, asked.bug, true);
        let from = if asked.trace { 0 } else { outcome.trace.len().saturating_sub(LAST) };
        if asked.trace || !outcome.violations.is_empty() {
            for line in &outcome.trace[from..] {
                let _ = writeln!(out, "{line}");
            }
        }
        return verdict(&mut out, &outcome, asked.bug);
    }
    let (tally, failed) = run_many(first, count, asked.bug, 5);
    let _ = writeln!(out, "{count} seeds from {first}: {tally:?}");
    for outcome in &failed {
        let again = run(outcome.seed, asked.bug, true);
        for line in &again.trace[again.trace.len().saturating_sub(LAST)..] {
            let _ = writeln!(out, "{line}");
        }
        verdict(&mut out, &again, asked.bug);
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn verdict(out: &mut impl Write, outcome: &Outcome, bug: Option<Bug>) -> ExitCode {
    for violation in &outcome.violations {
        let _ = writeln!(out, "seed {}: {violation}", outcome.seed);
    }
    if outcome.violations.is_empty() {
        let _ = writeln!(out, "seed {}: every promise was kept; {:?}", outcome.seed, outcome.tally);
        ExitCode::SUCCESS
    } else {
        let _ = writeln!(out, "replay it with: {}", replay_command(outcome.seed, bug));
        ExitCode::FAILURE
    }
}
