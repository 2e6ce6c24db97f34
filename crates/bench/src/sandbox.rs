//! What the sandbox costs each process that a factory starts for a job: from its start to its end, with and without.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use giga_factory::sandbox::{InitProgram, Sandbox, SandboxConfig, SandboxMode};

use crate::SandboxArgs;
use crate::table::{Row, Series, Table};

const TARGET: &str = "below 30 ms";

pub(crate) async fn measure(args: &SandboxArgs, table: &mut Table) -> Result<()> {
    let giga = std::env::current_exe()?.with_file_name("giga");
    ensure!(giga.exists(), "{} is not there: `cargo xtask bench sandbox` builds it", giga.display());
    let init = InitProgram { program: giga, args: vec!["sandbox-init".into()] };
    let config = SandboxConfig { mode: SandboxMode::Require, ..SandboxConfig::new(init) };
    let enclosed = Sandbox::start(config).await?;
    let times = if args.quick { 5 } else { usize::from(args.times) };
    for (who, sandbox) in [("in the sandbox", &enclosed), ("without", &Sandbox::off())] {
        let folder = tempfile::tempdir().context("a folder for the runs")?;
        let mut figures = Vec::new();
        // The first one finds nothing in the kernel's caches.
        for number in 0..=times {
            let took = once(sandbox, folder.path(), number).await?;
            if number > 0 {
                figures.push(took);
            }
        }
        let figures = Series::of(figures);
        let p95 = Series::of([figures.at(0.95)]);
        let what = "start to end of `true`".to_owned();
        table.add(Row {
            who,
            what: format!("{what}, p95"),
            unit: "ms",
            figures: p95,
            target: TARGET,
            ..Row::default()
        });
        table.add(Row { who, what, unit: "ms", figures, ..Row::default() });
    }
    Ok(())
}

/// In milliseconds, with a work tree and a home of its own, as a job has them.
async fn once(sandbox: &Sandbox, folder: &Path, number: usize) -> Result<f64> {
    let (tree, home): (PathBuf, PathBuf) =
        (folder.join(format!("tree-{number}")), folder.join(format!("home-{number}")));
    std::fs::create_dir(&tree)?;
    let begun = Instant::now();
    let trial = sandbox.try_out(Path::new("true"), &[] as &[OsString], tree, home)?;
    let status = tokio::task::spawn_blocking(move || trial.run()).await??;
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    ensure!(status.success(), "`true` failed in the sandbox: {status}");
    Ok(took)
}
