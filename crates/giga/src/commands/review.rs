//! Showing a job in review, and reviewing it.

use std::fmt::Write;

use giga_api::client::Client;
use giga_api::wire::{Artifact, Job, RequestReviewRequest, ReviewRequest, ReviewVerdict, Run, Stage};
use giga_domain::Usd;

use super::Done;
use super::context::Context;
use super::job::job_text;
use crate::args::{ReviewArgs, VerdictArgs};
use crate::exit::CliError;
use crate::output::{Output, ago, millis, printable};

pub(crate) async fn review(args: ReviewArgs, context: &Context) -> Done {
    let verdict = match args.verdict {
        VerdictArgs { approve: true, .. } => ReviewVerdict::Approve,
        VerdictArgs { request_changes: true, .. } => ReviewVerdict::RequestChanges,
        VerdictArgs { reject: true, .. } => ReviewVerdict::Reject,
        VerdictArgs { request: true, .. } => return request(args, context).await,
        _ if args.message.is_some() || args.reviewer.is_some() => {
            return Err(CliError::Usage(
                "a comment needs a verdict: --approve, --request-changes or --reject".to_owned(),
            ));
        }
        _ => return look(&args.job, context).await,
    };
    let says_something = args.message.as_ref().is_some_and(|message| !message.trim().is_empty());
    match verdict {
        ReviewVerdict::RequestChanges if !says_something => {
            let why = "--request-changes needs a comment: say what should change with -m TEXT; the next run is given it";
            return Err(CliError::Usage(why.to_owned()));
        }
        ReviewVerdict::Reject if !says_something => {
            return Err(CliError::Usage("--reject needs a comment: say why with -m TEXT".to_owned()));
        }
        _ => {}
    }
    let client = context.client()?;
    let id = context.job_id(&client, &args.job).await?;
    // About the result that stands there now: one that comes in between has to be looked at first.
    let seen = client.job(&id).await?.value.result;
    let request = ReviewRequest {
        verdict,
        reviewer: args.reviewer,
        comment: args.message,
        lease_epoch: seen.as_ref().map(|result| result.lease_epoch),
        commit: seen.map(|result| result.commit),
        acknowledge_unseen: args.acknowledge_unseen,
    };
    let job = client.review(&id, &request).await?;
    context.output.one(&job.json, "/id", || {
        let mut line = format!("{}  {}  {}", job.id, job.stage.label(), printable(&job.name));
        if job.stage == Stage::Review {
            let _ = write!(line, "  ({})", needed(&job));
        }
        line
    })
}

/// Asks for a review before the job goes on.
async fn request(args: ReviewArgs, context: &Context) -> Done {
    if args.message.is_some() || args.reviewer.is_some() {
        return Err(CliError::Usage("--request takes no comment and no --as".to_owned()));
    }
    let client = context.client()?;
    let id = context.job_id(&client, &args.job).await?;
    let request = RequestReviewRequest { quorum: args.quorum, reviewers: args.reviewers };
    let job = client.request_review(&id, &request).await?;
    context.output.one(&job.json, "/id", || {
        format!("{}  {}  {}  ({})", job.id, job.stage.label(), printable(&job.name), needed(&job))
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
        let _ = write!(text, "\nCost\n{}", cost(&job, &runs.runs));
        if let Some(run) = judged(&job, &runs.runs) {
            text.push_str(&checks(run));
        }
        text.push_str(&earlier(&job, &context.output));
        if let Some(diff) = &diff {
            let _ = write!(text, "\nChanges\n{}", shown_diff(diff));
        }
        if job.stage == Stage::Review {
            let _ = write!(text, "\n{}\n", needed(&job));
            let unseen = job.result.as_ref().and_then(|result| result.unseen.as_deref());
            if let Some(unseen) = unseen {
                let _ = writeln!(text, "The diff does not show everything: {}.", printable(unseen));
            }
            let approve = if unseen.is_some() { "--approve --acknowledge-unseen" } else { "--approve" };
            for verdict in [approve, "--request-changes -m TEXT", "--reject -m TEXT"] {
                let _ = writeln!(text, "  \x1b[36mgiga review {id} {verdict}\x1b[0m");
            }
        } else {
            let _ = write!(text, "\nNot in review: it is {}.\n", job.stage.label());
        }
        text
    })
}

/// The run that is up for review: the one that handed its result over.
fn judged<'a>(job: &Job, runs: &'a [Run]) -> Option<&'a Run> {
    let epoch = job.result.as_ref().map(|result| result.lease_epoch);
    match epoch {
        Some(epoch) => runs.iter().find(|run| run.lease_epoch == epoch),
        None => runs.last(),
    }
}

/// Of the run that is judged, and of all of them.
fn cost(job: &Job, runs: &[Run]) -> String {
    let all = (
        runs.iter().filter_map(|run| run.report.cost_usd).sum::<Usd>(),
        runs.iter().filter_map(|run| run.report.tokens).sum::<u64>(),
    );
    let shown = |(usd, tokens): (Usd, u64)| format!("{usd}, {tokens} tokens");
    let this = judged(job, runs).map(|run| match (run.report.cost_usd, run.report.tokens) {
        (None, None) => "cost unknown".to_owned(),
        (usd, tokens) => shown((usd.unwrap_or_default(), tokens.unwrap_or(0))),
    });
    let count = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    format!(
        "  this run   {}\n  whole job  {} in {count}\n",
        this.unwrap_or_else(|| "-".to_owned()),
        shown(all)
    )
}

/// The results of the manifest's verify commands.
fn checks(run: &Run) -> String {
    if run.report.checks.is_empty() {
        return String::new();
    }
    let mut text = "\nVerified\n".to_owned();
    for check in &run.report.checks {
        let (colour, word) = if check.passed { ("\x1b[32m", "passed") } else { ("\x1b[31m", "failed") };
        let (command, took) = (printable(&check.command), millis(check.wall_ms));
        let _ = writeln!(text, "  {colour}{word}\x1b[0m  {command}  ({took})");
        for line in printable(&check.output).trim_end().lines() {
            let _ = writeln!(text, "    \x1b[2m│\x1b[0m {line}");
        }
    }
    text
}

/// The reviews so far.
fn earlier(job: &Job, output: &Output) -> String {
    if job.reviews.is_empty() {
        return String::new();
    }
    let mut text = "\nReviews\n".to_owned();
    for note in &job.reviews {
        let verdict = match note.verdict {
            ReviewVerdict::Approve => "approved",
            ReviewVerdict::RequestChanges => "requested changes",
            ReviewVerdict::Reject => "rejected",
        };
        let when = ago(&note.at, output.now);
        let comment =
            note.comment.as_ref().map_or_else(String::new, |comment| format!(": {}", comment.trim_end()));
        let line = format!("{} {verdict} (run {}, {when}){comment}", note.reviewer, note.lease_epoch);
        for (index, line) in printable(&line).lines().enumerate() {
            let _ = writeln!(text, "  {}{line}", if index == 0 { "" } else { "  " });
        }
    }
    text
}

/// The diff that the run which is up for review left behind.
async fn changes(client: &Client, job: &Job) -> Result<Option<String>, CliError> {
    let Some(result) = &job.result else { return Ok(None) };
    let kept = client.artifacts(&job.id).await?;
    let of_run =
        |a: &&Artifact| a.lease_epoch == result.lease_epoch && a.name == giga_domain::ArtifactName::CHANGES;
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
pub(super) fn needed(job: &Job) -> String {
    let quorum = job.gate.as_ref().map_or(1, |gate| gate.quorum).max(1);
    let reviewers = job.gate.as_ref().map(|gate| gate.reviewers.as_slice()).unwrap_or_default();
    let who = if reviewers.is_empty() { "anyone".to_owned() } else { reviewers.join(" or ") };
    let approvals = if quorum == 1 { "approval" } else { "approvals" };
    printable(&format!("{} of {quorum} {approvals}, from {who}", job.approvals.len()))
}
