//! One job in full.

use std::fmt::Write;

use giga_api::wire::{Failure, Job, JobResult, Lease, Run};

use super::manifest_file::is_made_up;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{Columns, Output, ago, dash, joined, or_dash, printable};

pub(super) async fn show(meant: &str, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, meant).await?;
    let job = client.job(&id).await?;
    let runs = client.runs(&id).await?;
    context.output.one(&job.json, "/id", || {
        let mut text = job_text(&job, &runs.runs, &context.output);
        if let Some(body) = job.body_md.as_deref().filter(|body| !body.trim().is_empty()) {
            text.push_str("\nBody\n");
            for line in printable(body).trim_end().lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    })
}

/// The facts that are there, one per line, and a table of runs.
pub(crate) fn job_text(job: &Job, runs: &[Run], output: &Output) -> String {
    let when = |time: &str| format!("{} ({})", printable(time), ago(time, output.now));
    let lease = job.lease.as_ref();
    // Which is what the engine says.
    let needs: Vec<String> =
        job.capabilities.iter().filter(|needed| *needed != "engine:any").cloned().collect();
    let failure = job.failure.as_ref().map(Failure::words);
    let last_failure = job.last_failure.as_ref().map(Failure::words);
    let checkpoint = job.checkpoint.as_ref().map(|checkpoint| {
        let parts = [&checkpoint.wip_ref, &checkpoint.commit, &checkpoint.session_id, &checkpoint.note];
        parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", ")
    });
    let merge = job.merge.as_ref().map(|merge| {
        if let (Some(note), Some(commit)) = (&merge.note, &merge.commit) {
            return format!("{note} ({commit})");
        }
        let into = merge.into.as_ref().map(|into| format!("into {into}"));
        let on = merge.factory_id.as_ref().map(|id| format!("on {id}"));
        let again = merge.retry_at.as_ref().map(|at| format!("again at {at}:"));
        let request = merge.request.as_ref().map(|request| request.url.clone());
        let more = [merge.commit.clone(), into, on, again, request, merge.detail.clone()];
        let more = more.into_iter().flatten().collect::<Vec<_>>().join(" ");
        format!("{} {more}", merge.state).trim_end().to_owned()
    });
    let merged = job.merge.iter().flat_map(|merge| &merge.merged);
    let merged: Vec<String> =
        merged.map(|one| format!("{}: {} in {}", one.repo, one.commit, one.into)).collect();
    let merged = (!merged.is_empty()).then(|| joined(&merged));
    let waits_until = job.ready_at.as_ref().filter(|at| ago(at, output.now).starts_with("in "));
    let facts = [
        ("id", Some(job.id.clone())),
        ("stage", Some(job.stage.label().to_owned())),
        ("failure", failure),
        ("last attempt", last_failure),
        (
            "running on",
            lease.map(|l| format!("{} (lease ends {})", l.factory_id, ago(&l.expires_at, output.now))),
        ),
        ("spent", lease.filter(|l| !l.spent_usd.is_zero() || l.spent_tokens > 0).map(spent_so_far)),
        ("needs input", needs_input(job, output)),
        ("not before", waits_until.map(|at| when(at))),
        ("approved by", (!job.approvals.is_empty()).then(|| joined(&job.approvals))),
        ("product", Some(job.product_id.clone())),
        ("priority", Some(job.priority.to_string())),
        ("repo", job.repo.clone().filter(|_| job.repos.is_empty())),
        ("repos", (!job.repos.is_empty()).then(|| joined(&job.repos))),
        ("engine", Some(job.engine.clone().unwrap_or_else(|| "any".to_owned()))),
        ("needs", Some(joined(&needs))),
        ("depends on", (!job.deps.is_empty()).then(|| format!("{} of {}", job.deps_mode, joined(&job.deps)))),
        ("failed attempts", Some(job.attempts.to_string())),
        ("evictions", (job.evictions > 0).then(|| job.evictions.to_string())),
        ("epoch", Some(job.lease_epoch.to_string())),
        ("revision", Some(job.rev.to_string())),
        ("checkpoint", checkpoint),
        ("result", job.result.as_ref().map(result_of)),
        ("merge", merge),
        ("merged", merged),
        ("key", job.idempotency_key.clone().filter(|key| !is_made_up(key))),
        ("created", Some(when(&job.created_at))),
        ("updated", Some(when(&job.updated_at))),
    ];
    let mut text = format!("\x1b[1m{}\x1b[0m\n", printable(&job.name));
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<15}  {}", printable(&value));
        }
    }
    if !runs.is_empty() {
        text.push_str("\nRuns\n");
        for line in runs_table(runs, output).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

fn needs_input(job: &Job, output: &Output) -> Option<String> {
    let open = job.open_questions.iter().map(|question| {
        let text = question.text.trim().lines().next().unwrap_or_default();
        format!(
            "{} ({}; giga job answer {} --question {} …)",
            text,
            ago(&question.asked_at, output.now),
            job.id,
            question.number
        )
    });
    job.needs_input.then(|| open.collect::<Vec<_>>().join("; "))
}

fn result_of(result: &JobResult) -> String {
    let at = match result.repos.as_slice() {
        [] => result.commit.clone(),
        repos => {
            joined(&repos.iter().map(|one| format!("{} ({})", one.commit, one.repo)).collect::<Vec<_>>())
        }
    };
    format!("{} at {at}", result.branch)
}

/// What the run has spent so far, and what it may still spend.
fn spent_so_far(lease: &Lease) -> String {
    let Lease { spent_usd: spent, spent_tokens: tokens, reserved_usd: reserved, .. } = lease;
    if reserved.is_zero() {
        format!("{spent}, {tokens} tokens")
    } else {
        format!("{spent} of {reserved} reserved, {tokens} tokens")
    }
}

fn runs_table(runs: &[Run], output: &Output) -> String {
    let mut table = Columns::new(&["EPOCH", "FACTORY", "OUTCOME", "STARTED", "ENDED", "COST", "RESULT~"]);
    for run in runs {
        let time = |at: &Option<String>| at.as_deref().map_or("-".to_owned(), |at| ago(at, output.now));
        let failure = run.failure.as_ref().map(Failure::words);
        let result = failure.or_else(|| run.report.summary.clone()).or_else(|| run.report.branch.clone());
        table.row([
            run.lease_epoch.to_string(),
            printable(&run.factory_id),
            run.outcome.to_string(),
            time(&run.started_at),
            time(&run.ended_at),
            or_dash(run.report.cost_usd),
            printable(dash(result.as_deref())),
        ]);
    }
    table.render()
}
