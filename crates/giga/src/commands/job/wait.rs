//! Waiting for jobs. The job itself decides, events only say when to look again: a stage that was left between two
//! looks is not missed, because the event that led to it is seen.

use std::time::Duration;

use futures::future::join_all;
use giga_api::client::{Client, Signal};
use giga_api::wire::{FailReason, Job, Stage};
use giga_domain::Phase;
use serde_json::json;

use super::events::{last_seq, tell};
use crate::args::WaitArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::{self, CliError};
use crate::output::{Format, printable, progress, say};

pub(super) async fn wait(args: WaitArgs, context: &Context) -> Done {
    let client = context.client()?;
    let mut ids = Vec::with_capacity(args.jobs.len());
    for meant in &args.jobs {
        ids.push(context.job_id(&client, meant).await?);
    }
    wait_for(&client, ids, args.until, args.timeout, context).await
}

/// Waits for all of them at once. The first in the given order that did not make it decides the exit code.
pub(super) async fn wait_for(
    client: &Client,
    ids: Vec<String>,
    until: Stage,
    timeout: Option<Duration>,
    context: &Context,
) -> Done {
    let waiting = join_all(ids.iter().map(|id| wait_for_one(client, id, until, context)));
    // Without a timeout, as long as it takes.
    let ended = tokio::select! {
        ended = waiting => ended,
        () = sleep(timeout) => {
            let who = if ids.len() == 1 { "the job is" } else { "some jobs are" };
            say(&format!("timed out: {who} not {} yet", until.label()));
            return Err(CliError::Ended(exit::TIMEOUT));
        }
    };
    let mut code = exit::OK;
    for ended in ended {
        let ended = ended?;
        if code == exit::OK {
            code = ended;
        }
    }
    if code == exit::OK { Ok(()) } else { Err(CliError::Ended(code)) }
}

async fn sleep(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

async fn wait_for_one(client: &Client, id: &str, until: Stage, context: &Context) -> Result<u8, CliError> {
    // In this order nothing falls between: what happens after the count is in the stream.
    let seen = last_seq(client, id).await?;
    let mut job = client.job(id).await?.value;
    let mut follow = client.follow_job(id, seen);
    loop {
        if let Some(code) = verdict(&job, until) {
            return ended(&job, code, context);
        }
        loop {
            match follow.next().await? {
                Signal::Event(event) => {
                    let Some(to) = event.to else { continue };
                    progress(&format!("{} {}: {}", job.name, to.label(), event.cause));
                    job = client.job(id).await?.value;
                    // It was there, even if it has moved on since.
                    if to == until {
                        return ended(&job, exit::OK, context);
                    }
                    break;
                }
                other => tell(&other),
            }
        }
    }
}

/// The exit code for a job that needs no more waiting for; `None` while there is hope.
fn verdict(job: &Job, until: Stage) -> Option<u8> {
    if job.stage == until {
        return Some(exit::OK);
    }
    let reason = job.failure.as_ref().map(|failure| failure.reason);
    match job.stage.phase() {
        // Whatever was waited for, it is past it.
        Phase::Shipped => Some(exit::OK),
        Phase::Failed => Some(match reason {
            Some(FailReason::Rejected) => exit::REJECTED,
            Some(FailReason::BudgetExceeded) => exit::BUDGET,
            _ => exit::FAILED,
        }),
        Phase::Cancelled => Some(exit::FAILED),
        Phase::Queued | Phase::Blocked | Phase::Running | Phase::Review | Phase::Ready | Phase::Shipping => {
            None
        }
    }
}

fn ended(job: &Job, code: u8, context: &Context) -> Result<u8, CliError> {
    let output = &context.output;
    match output.format {
        Format::Table => {
            let why = job.failure.as_ref().map(|failure| match &failure.detail {
                Some(detail) => format!(" ({}: {detail})", failure.reason.label()),
                None => format!(" ({})", failure.reason.label()),
            });
            let line = format!("{}  {}  {}{}", job.id, job.stage.label(), job.name, why.unwrap_or_default());
            output.text(&printable(&line))?;
        }
        Format::Name => output.text(&job.id)?,
        Format::Json | Format::JsonLines => {
            let line = json!({"id": job.id, "stage": job.stage, "failure": job.failure, "exitCode": code});
            output.text(&line.to_string())?;
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use giga_api::wire::Failure;

    use super::*;

    fn job(stage: Stage, reason: Option<FailReason>) -> Job {
        let mut job: Job = serde_json::from_value(json!({
            "id": "01J9ZK3V5N8Q4W2E6R7T1Y0ABC", "productId": "demo", "name": "x", "kind": "agent", "stage": stage,
            "priority": "normal", "rev": 1, "leaseEpoch": 0, "capabilities": [], "deps": [], "depsMode": "all",
            "attempts": 0, "dispatchSeq": 0, "createdAt": "", "updatedAt": "", "enqueuedAt": "",
        }))
        .unwrap();
        job.failure = reason.map(|reason| Failure { reason, detail: None });
        job
    }

    #[test]
    fn the_stage_decides() {
        use Stage::{
            Assigned, Blocked, Building, Cancelled, DeadLetter, Failed, Queued, Review, Shipped, Testing,
        };
        for waiting in [Queued, Blocked, Assigned, Building, Review, Testing] {
            assert_eq!(verdict(&job(waiting, None), Shipped), None, "{waiting}");
            assert_eq!(verdict(&job(waiting, None), waiting), Some(exit::OK), "{waiting}");
        }
        assert_eq!(verdict(&job(Shipped, None), Review), Some(exit::OK), "past it");
        assert_eq!(verdict(&job(Cancelled, None), Shipped), Some(exit::FAILED));
        assert_eq!(verdict(&job(Failed, Some(FailReason::Crash)), Shipped), Some(exit::FAILED));
        assert_eq!(verdict(&job(Failed, Some(FailReason::Crash)), Failed), Some(exit::OK));
        assert_eq!(verdict(&job(Failed, Some(FailReason::Rejected)), Shipped), Some(exit::REJECTED));
        assert_eq!(verdict(&job(DeadLetter, Some(FailReason::BudgetExceeded)), Shipped), Some(exit::BUDGET));
    }
}
