//! One job, step by step: what a newcomer sees of it, and the one thing they are asked.

use std::time::Duration;

use giga_api::wire::{Explanation, ReviewRequest, ReviewVerdict, Stage};

use super::origin::BROKEN_GREETING;
use super::stage::DemoStage;
use super::{quote, step};
use crate::commands::ask::ask;
use crate::exit::{self, CliError};
use crate::output::{announce, say};

const MANIFEST: &str = include_str!("fix-greeting.md");

pub(super) async fn run(stage: &mut DemoStage, asks: bool) -> Result<(), CliError> {
    say("One job from manifest to merge. Everything is real, and it is all removed afterwards.");

    step("1  A repository with a failing test");
    let origin = stage.origin("hello", BROKEN_GREETING).await?;
    say("  $ sh test.sh");
    quote(&origin.test().await?.1);

    step("2  A coordinator and a factory");
    stage.factory("factory-1").await?;
    say(&format!("  The coordinator is listening on {}.", stage.client.url()));
    say("  factory-1, a separate process, has joined and reports its capabilities:");
    let factory = stage.client.factory("factory-1").await?;
    quote(&factory.capabilities.join(" "));

    step("3  A job: a Markdown file");
    quote(MANIFEST);
    let plan = stage.client.plan(MANIFEST.as_bytes().to_vec()).await?;
    say("  Where would it run, and why?");
    explain(&plan.explanation);
    let job = stage.submit(MANIFEST).await?.id;
    say(&format!("  Submitted as {job}."));

    step("4  Running and verified, live");
    stage.until(&job, |job| !matches!(job.stage, Stage::Queued | Stage::Assigned)).await?;
    follow_log(stage, &job).await?;

    step("5  Review");
    let reviewed = stage.until(&job, |job| job.stage == Stage::Review).await?;
    let change = reviewed.result.ok_or_else(|| CliError::failed("the run produced no result"))?;
    say(&format!("  It needs one approval. The change is on {}:", change.branch));
    quote(&origin.diff(&change.commit).await?);
    let approved = !asks || ask("  Approve it?", true).await;
    let verdict = if approved { ReviewVerdict::Approve } else { ReviewVerdict::Reject };
    let review = ReviewRequest {
        verdict,
        reviewer: Some("you".to_owned()),
        comment: None,
        lease_epoch: Some(change.lease_epoch),
        commit: None,
        acknowledge_unseen: false,
    };
    stage.client.review(&job, &review).await?;
    if !approved {
        say("  Rejected: nothing was merged.");
        return Err(CliError::Ended(exit::REJECTED));
    }
    say("  Approved.");

    step("6  Shipped and merged");
    let commit = stage.until_merged(&job).await?;
    quote(&origin.history().await?);
    say("  $ sh test.sh");
    let (passed, output) = origin.test().await?;
    quote(&output);
    if !passed {
        return Err(CliError::failed("the job was merged, but the test still fails"));
    }
    announce(&format!("merged fix-greeting {commit}"))?;
    say(
        "\nNext: \x1b[36mgiga demo --fleet\x1b[0m kills a factory in the middle of a job, \x1b[36mgiga up\x1b[0m starts a fleet of your own.",
    );
    Ok(())
}

fn explain(explanation: &Explanation) {
    quote(&explanation.summary);
    for factory in &explanation.factories {
        let terms = factory.terms.iter().filter(|(_, value)| **value != 0.0);
        let terms: Vec<String> = terms.map(|(name, value)| format!("{} {value:.2}", name.label())).collect();
        match (&factory.rejected_by, factory.score) {
            (Some(why), _) => quote(&format!("{}: no, {}", factory.factory_id, why.detail)),
            (None, Some(score)) => {
                quote(&format!("{}: fits, score {score:.2} ({})", factory.factory_id, terms.join(", ")));
            }
            (None, None) => quote(&format!("{}: fits", factory.factory_id)),
        }
    }
}

async fn follow_log(stage: &DemoStage, job: &str) -> Result<(), CliError> {
    let (mut offset, mut complete, mut rest) = (0, false, String::new());
    while !complete {
        let piece = stage.client.log(job, None, offset, Duration::from_secs(5)).await?;
        (offset, complete) = (piece.next_offset, piece.complete);
        rest.push_str(&piece.text);
        // Whole lines only; the last one is whole when the run is over.
        let end = if complete { rest.len() } else { rest.rfind('\n').map_or(0, |at| at + 1) };
        quote(&rest.drain(..end).collect::<String>());
    }
    Ok(())
}
