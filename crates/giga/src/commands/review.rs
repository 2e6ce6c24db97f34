//! Looking at a job in review, and saying what one thinks of it.

use std::fmt::Write;

use giga_api::client::Client;
use giga_api::wire::{Artifact, Job, ReviewRequest};
use serde_json::Value;

use super::Done;
use super::context::Context;
use super::job::job_text;
use crate::args::{ReviewArgs, VerdictArgs};
use crate::exit::CliError;
use crate::output::printable;

pub(crate) async fn review(args: ReviewArgs, context: &Context) -> Done {
    let verdict = match args.verdict {
        VerdictArgs { approve: true, .. } => "approve",
        VerdictArgs { request_changes: true, .. } => "request_changes",
        VerdictArgs { reject: true, .. } => "reject",
        _ if args.message.is_some() || args.reviewer.is_some() => {
            return Err(CliError::Usage(
                "a comment needs a verdict: --approve, --request-changes or --reject".to_owned(),
            ));
        }
        _ => return look(&args.job, context).await,
    };
    let client = context.client()?;
    let id = context.job_id(&client, &args.job).await?;
    let request =
        ReviewRequest { verdict: verdict.to_owned(), reviewer: args.reviewer, comment: args.message };
    let job = client.review(&id, &request).await?;
    context.output.one(&job.json, "/id", || {
        let mut line = format!("{}  {}  {}", job.id, printable(&job.stage), printable(&job.name));
        if job.stage == "review" {
            let _ = write!(line, "  ({})", needed(&job));
        }
        line
    })
}

async fn look(meant: &str, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, meant).await?;
    let job = client.job(&id).await?;
    let runs = client.runs(&id).await?;
    let diff = changes(&client, &job).await?;
    context.output.one(&job.json, "/id", || {
        let mut text = job_text(&job, &runs.runs, &context.output);
        if let Some(diff) = &diff {
            let _ = write!(text, "\nChanges\n{}", shown_diff(diff));
        }
        if job.stage == "review" {
            let _ = write!(text, "\nNeeded: {}\n", needed(&job));
            for verdict in ["--approve", "--request-changes -m TEXT", "--reject -m TEXT"] {
                let _ = writeln!(text, "  \x1b[36mgiga review {id} {verdict}\x1b[0m");
            }
        } else {
            let _ = write!(text, "\nNot in review: it is {}.\n", printable(&job.stage));
        }
        text
    })
}

/// The diff that the run which is up for review left behind.
async fn changes(client: &Client, job: &Job) -> Result<Option<String>, CliError> {
    let Some(result) = &job.result else { return Ok(None) };
    let kept = client.artifacts(&job.id).await?;
    let of_run = |a: &&Artifact| a.lease_epoch == result.lease_epoch && a.name == "changes.diff";
    let Some(artifact) = kept.artifacts.iter().find(of_run) else { return Ok(None) };
    let bytes = client.artifact_bytes(&artifact.id).await?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Added and removed lines in their colours; nothing that a file contains reaches the terminal as a command to it.
fn shown_diff(diff: &str) -> String {
    let mut text = String::new();
    for line in diff.lines() {
        let line = printable(line);
        let colour = match line.as_bytes().first() {
            Some(b'+') => "\x1b[32m",
            Some(b'-') => "\x1b[31m",
            Some(b'@') => "\x1b[36m",
            _ => "",
        };
        let _ = writeln!(text, "  {colour}{line}\x1b[0m");
    }
    text
}

/// `1 of 2 approvals, from ana or bo`.
fn needed(job: &Job) -> String {
    let gate = job.manifest.as_ref().and_then(|manifest| manifest.get("review"));
    let quorum = gate.and_then(|gate| gate.get("quorum")).and_then(Value::as_u64).unwrap_or(1).max(1);
    let reviewers = gate.and_then(|gate| gate.get("reviewers")).and_then(Value::as_array);
    let reviewers: Vec<&str> = reviewers.into_iter().flatten().filter_map(Value::as_str).collect();
    let who = if reviewers.is_empty() { "anyone".to_owned() } else { reviewers.join(" or ") };
    let approvals = if quorum == 1 { "approval" } else { "approvals" };
    printable(&format!("{} of {quorum} {approvals}, from {who}", job.approvals.len()))
}
