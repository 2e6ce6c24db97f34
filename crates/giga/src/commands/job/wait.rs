//! Waiting for jobs. The job itself decides, events only say when to look again: a stage that was left between two
//! looks is not missed, because the event that led to it is seen.

use std::time::Duration;

use futures::future::join_all;
use giga_api::client::{Client, Signal};
use giga_api::wire::{EventType, FailReason, Job, Stage};
use giga_domain::Phase;
use serde_json::json;

use super::events::{last_seq, tell};
use super::talk::{first_line, wanted};
use crate::args::WaitArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::commands::review::needed;
use crate::exit::{self, CliError};
use crate::output::{Format, printable, progress, say};

/// What is waited for, and for how long.
pub(super) struct Wait {
    pub(super) until: Stage,
    pub(super) timeout: Option<Duration>,
    /// Also while the job waits for a person.
    pub(super) keep_waiting: bool,
}

impl Wait {
    /// As `submit --wait` does it.
    pub(super) const fn until_shipped() -> Self {
        Self { until: Stage::Shipped, timeout: None, keep_waiting: false }
    }
}

pub(super) async fn wait(args: WaitArgs, context: &Context) -> Done {
    let client = context.client()?;
    let mut ids = Vec::with_capacity(args.jobs.len());
    for meant in &args.jobs {
        ids.push(context.job_id(&client, meant).await?);
    }
    let WaitArgs { jobs: _, until, timeout, keep_waiting } = args;
    wait_for(&client, ids, &Wait { until, timeout, keep_waiting }, context).await
}

/// Waits for all of them at once. The first in the given order that did not make it decides the exit code.
pub(super) async fn wait_for(client: &Client, ids: Vec<String>, wait: &Wait, context: &Context) -> Done {
    let waiting = join_all(ids.iter().map(|id| wait_for_one(client, id, wait, context)));
    // Without a timeout, as long as it takes.
    let ended = tokio::select! {
        ended = waiting => ended,
        () = sleep(wait.timeout) => {
            let who = if ids.len() == 1 { "the job is" } else { "some jobs are" };
            say(&format!("timed out: {who} not {} yet", wait.until.label()));
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

async fn wait_for_one(client: &Client, id: &str, wait: &Wait, context: &Context) -> Result<u8, CliError> {
    // In this order nothing falls between: what happens after the count is in the stream.
    let seen = last_seq(client, id).await?;
    let mut job = client.job(id).await?.value;
    let mut follow = client.follow_job(id, seen);
    let mut said = None;
    loop {
        match verdict(&job, wait.until) {
            Some(exit::WAITS) if wait.keep_waiting => {
                // Once for each time that it comes there, and for each question.
                let here =
                    (job.stage, job.lease_epoch, job.open_questions.first().map(|question| question.number));
                if said.replace(here) != Some(here) {
                    say(&waits_for(&job).unwrap_or_default());
                }
            }
            Some(code) => return ended(&job, code, context),
            None => {}
        }
        loop {
            match follow.next().await? {
                Signal::Event(event) => {
                    let Some(to) = event.to else {
                        if event.kind == EventType::QuestionAsked {
                            progress(&format!("{}: {}", job.name, event.cause));
                            job = client.job(id).await?.value;
                            break;
                        }
                        continue;
                    };
                    progress(&format!("{} {}: {}", job.name, to.label(), event.cause));
                    job = client.job(id).await?.value;
                    // It was there, even if it has moved on since.
                    if to == wait.until {
                        return ended(&job, exit::OK, context);
                    }
                    break;
                }
                other => tell(&other),
            }
        }
    }
}

/// What the job waits for, where that is a person, and how to answer.
pub(super) fn waits_for(job: &Job) -> Option<String> {
    let name = meant(job);
    if let Some(question) = job.open_questions.first() {
        let (text, how) = (first_line(&question.text), wanted(question));
        return Some(printable(&format!("{name} asks: {text}\n  giga job answer {name} {how}")));
    }
    match job.stage {
        Stage::Review => {
            Some(printable(&format!("{name} waits for a review ({}): giga review {name}", needed(job))))
        }
        Stage::Testing => {
            Some(printable(&format!("{name} is ready and waits for you: giga job ship {name}")))
        }
        _ => None,
    }
}

/// How to name the job in a command: by its name where a shell takes that as it is.
pub(super) fn meant(job: &Job) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_word = !job.name.starts_with('-') && job.name.chars().all(plain);
    if is_word { &job.name } else { &job.id }
}

/// The exit code for a job that needs no more waiting for; `None` while it goes on by itself.
fn verdict(job: &Job, until: Stage) -> Option<u8> {
    if job.stage == until || is_past(job.stage, until) {
        return Some(exit::OK);
    }
    if job.needs_input {
        return Some(exit::WAITS);
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
        Phase::Review | Phase::Ready => Some(exit::WAITS),
        Phase::Queued | Phase::Blocked | Phase::Running | Phase::Shipping => None,
    }
}

/// Whether a job in that stage has been where it is waited for. One that is queued may be so again after a run.
fn is_past(stage: Stage, until: Stage) -> bool {
    const WAY: [Stage; 6] =
        [Stage::Assigned, Stage::Building, Stage::Review, Stage::Testing, Stage::Shipping, Stage::Shipped];
    let place = |stage| WAY.iter().position(|step| *step == stage);
    place(stage).zip(place(until)).is_some_and(|(stage, until)| stage > until)
}

fn ended(job: &Job, code: u8, context: &Context) -> Result<u8, CliError> {
    let output = &context.output;
    match output.format {
        Format::Table => {
            let why = job.failure.as_ref().map(|failure| format!(" ({})", failure.words()));
            let line = format!("{}  {}  {}{}", job.id, job.stage.label(), job.name, why.unwrap_or_default());
            output.text(&printable(&line))?;
            if code == exit::WAITS {
                say(&waits_for(job).unwrap_or_default());
            }
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
            Assigned, Blocked, Building, Cancelled, DeadLetter, Failed, Queued, Review, Shipped, Shipping,
            Testing,
        };
        for moving in [Queued, Blocked, Assigned, Building, Shipping] {
            assert_eq!(verdict(&job(moving, None), Shipped), None, "{moving}");
            assert_eq!(verdict(&job(moving, None), moving), Some(exit::OK), "{moving}");
        }
        for waiting in [Review, Testing] {
            assert_eq!(verdict(&job(waiting, None), Shipped), Some(exit::WAITS), "{waiting}");
            assert_eq!(verdict(&job(waiting, None), waiting), Some(exit::OK), "{waiting}");
        }
        assert_eq!(verdict(&job(Review, None), Testing), Some(exit::WAITS), "somebody has to approve it");
        assert_eq!(verdict(&job(Testing, None), Building), Some(exit::OK), "past it");
        assert_eq!(verdict(&job(Shipped, None), Review), Some(exit::OK), "past it");
        assert_eq!(verdict(&job(Queued, None), Building), None, "it may be its first run");
        assert_eq!(verdict(&job(Cancelled, None), Shipped), Some(exit::FAILED));
        assert_eq!(verdict(&job(Failed, Some(FailReason::Crash)), Shipped), Some(exit::FAILED));
        assert_eq!(verdict(&job(Failed, Some(FailReason::Crash)), Failed), Some(exit::OK));
        assert_eq!(verdict(&job(Failed, Some(FailReason::Rejected)), Shipped), Some(exit::REJECTED));
        assert_eq!(
            waits_for(&job(Testing, None)).as_deref(),
            Some("x is ready and waits for you: giga job ship x")
        );
        let mut odd = job(Testing, None);
        odd.name = "it's $(rm)".to_owned();
        assert!(waits_for(&odd).unwrap().ends_with(&odd.id), "no name that a shell would read");
        assert_eq!(verdict(&job(DeadLetter, Some(FailReason::BudgetExceeded)), Shipped), Some(exit::BUDGET));
    }
}
