//! The real coding engines: installed on demand, and run through the matrix.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{cargo, node_tools, root, run, target};

/// `engines` installs them; `engines matrix [WORDS]` runs `giga-engine-matrix WORDS` with them, and `engines quota [JOBS]` its
/// fleet whose account runs out.
pub(crate) fn run_engines(words: &[String]) -> Result<()> {
    let programs = node_tools::install_engines()?;
    match words.split_first() {
        None => {
            eprintln!("{}", programs.display());
            Ok(())
        }
        Some((what, words)) if what == "matrix" => {
            let mut matrix = matrix(&programs)?;
            for word in words {
                match word.as_str() {
                    "--record" => {
                        let samples = root().join("crates/factory/tests/factory/engines/fixtures");
                        matrix.arg(word).arg(samples)
                    }
                    "--write" => matrix.arg("--page").arg(root().join("docs/engines.md")),
                    _ => matrix.arg(word),
                };
            }
            run(&mut matrix)
        }
        Some((what, [])) if what == "quota" => run(matrix(&programs)?.args(["--quota", "50"])),
        Some((what, [jobs])) if what == "quota" => run(matrix(&programs)?.args(["--quota", jobs])),
        Some((what, _)) => {
            bail!("`engines {what}` is not known; say `engines`, `engines matrix` or `engines quota [JOBS]`")
        }
    }
}

fn matrix(programs: &Path) -> Result<Command> {
    let packages = ["-p", "giga", "-p", "giga-engine-matrix", "-p", "giga-factory"];
    run(cargo().args(["build", "--locked", "--bins"]).args(packages))?;
    let mut matrix = Command::new(target().join("debug/giga-engine-matrix"));
    matrix.arg("--programs").arg(programs).arg("--scratch").arg(target().join("engine-matrix"));
    Ok(matrix)
}
