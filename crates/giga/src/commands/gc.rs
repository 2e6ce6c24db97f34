//! `giga gc`: the sweep that factories do by themselves, now, and with an account of it.

use std::path::{Path, PathBuf};

use giga_factory::agent::{CoordinatorStages, DISK_FLOOR_BYTES};
use giga_factory::workspace::gc::{GcItem, GcKind};
use giga_factory::workspace::{GcOptions, GcReport, GitPolicy, Workspace};
use giga_ports::Clock;
use serde_json::{Value, json};

use super::Done;
use super::context::Context;
use crate::args::GcArgs;
use crate::exit::CliError;
use crate::output::{Columns, printable, say, span};
use crate::system::SystemClock;

pub(crate) async fn gc(args: GcArgs, context: &Context) -> Done {
    let word = CoordinatorStages(context.client()?);
    let bases = match args.base {
        Some(base) if base.join("mirrors").is_dir() => vec![base],
        Some(base) => {
            return Err(CliError::failed(format!("{} is not a factory's folder", base.display())));
        }
        None => bases_in(&context.settings.factories_folder()),
    };
    let options = GcOptions {
        dry_run: args.dry_run,
        disk_floor_bytes: DISK_FLOOR_BYTES,
        ..GcOptions::at(SystemClock.now())
    };
    let mut reports = Vec::new();
    for base in bases {
        let swept = async {
            let workspace = Workspace::open(base.clone(), GitPolicy::default())?;
            workspace.gc(&word, options.clone()).await
        };
        let report = swept.await.map_err(|error| CliError::failed(format!("{}: {error}", base.display())))?;
        reports.push((base, report));
    }
    print(&reports, args.dry_run, context)
}

/// Every folder that a factory has worked in.
fn bases_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut bases: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("mirrors").is_dir()).collect();
    bases.sort();
    bases
}

fn print(reports: &[(PathBuf, GcReport)], dry_run: bool, context: &Context) -> Done {
    let gone = if dry_run { "would remove" } else { "removed" };
    let rows: Vec<(&PathBuf, &str, &GcItem)> = reports
        .iter()
        .flat_map(|(base, report)| {
            let removed = report.removed.iter().map(move |item| (base, gone, item));
            removed.chain(report.kept.iter().map(move |item| (base, "kept", item)))
        })
        .collect();
    let items: Vec<Value> = rows
        .iter()
        .map(|(base, what, item)| {
            let GcItem { name, job, age, why, .. } = item;
            let age = age.map(|age| age.as_secs());
            json!({
                "base": base, "outcome": what, "kind": kind(item.kind), "name": name, "jobId": job,
                "endedSecondsAgo": age, "why": why,
            })
        })
        .collect();
    let json = json!({"dryRun": dry_run, "items": items});
    context.output.list(&json, ("/items", "/name"), "nothing to clean up", || {
        let mut table = Columns::new(&["FACTORY", "OUTCOME", "KIND", "NAME", "ENDED", "REASON~"]);
        for (base, what, item) in &rows {
            let factory = base.file_name().unwrap_or_default().to_string_lossy();
            let ended = item.age.map_or_else(|| "-".to_owned(), |age| format!("{} ago", span(age)));
            let cells = [&factory, *what, kind(item.kind), &item.name, &ended, &item.why];
            table.row(cells.map(printable));
        }
        table.render()
    })?;
    if reports.is_empty() {
        say(&format!(
            "no factory has run in {}; choose another folder with --base DIR",
            context.settings.factories_folder().display()
        ));
    }
    Ok(())
}

const fn kind(kind: GcKind) -> &'static str {
    match kind {
        GcKind::Worktree => "work folder",
        GcKind::LocalBranch => "local branch",
        GcKind::OriginBranch => "origin branch",
        GcKind::Mirror => "mirror",
    }
}
