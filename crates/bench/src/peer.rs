//! A peer on the same machine in the same run: graphile-worker, from npm, as it comes and tuned.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::process::Command;

use crate::Size;
use crate::database::Server as DatabaseServer;
use crate::table::{Row, Series, Table};

/// `folder` holds its program with its packages installed (`npm ci`).
pub(crate) async fn graphile_worker(
    folder: &Path,
    server: &DatabaseServer,
    size: Size,
    table: &mut Table,
) -> Result<()> {
    for mode in ["plain", "tuned"] {
        let jobs = if mode == "plain" { size.jobs / 4 } else { size.jobs };
        let mut runs = Vec::new();
        for _ in 0..size.runs {
            let database = server.fresh().await?;
            runs.push(once(folder, mode, jobs, &database.url).await?);
            database.drop().await?;
        }
        let series =
            |path: &str| Series::of(runs.iter().filter_map(|run| run.pointer(path).and_then(Value::as_f64)));
        let row = |what: &str, unit, path: &str| Row {
            who: "graphile-worker",
            what: format!("{mode}: {what}"),
            unit,
            figures: series(path),
            target: "-",
            ..Row::default()
        };
        table.add(Row {
            transactions: Some(series("/transactionsPerJob").median()),
            rollbacks: Some(series("/rollbacks").median() as i64),
            ..row(&format!("drain {jobs} jobs, 1 process"), "jobs/s", "/drainPerSecond")
        });
        table.add(row("enqueue in batches of 1000, 1 caller", "jobs/s", "/enqueuePerSecond"));
        table.add(row("enqueue to handler start, idle, p50", "ms", "/pickupMs/p50"));
        table.add(row("enqueue to handler start, idle, p99", "ms", "/pickupMs/p99"));
    }
    Ok(())
}

async fn once(folder: &Path, mode: &str, jobs: usize, url: &str) -> Result<Value> {
    let mut command = Command::new("node");
    command.arg("bench.mjs").args([mode, &jobs.to_string()]).current_dir(folder).env("DATABASE_URL", url);
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output =
        command.output().await.context("the peer cannot be started: it needs Node.js and `npm ci`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).with_context(|| {
        format!("the peer in {} printed no figures; run `npm ci` there first", folder.display())
    })
}
