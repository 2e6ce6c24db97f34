//! Handing in a job, for real or as a dry run.

use std::fmt::Write;

use giga_api::client::{Client, Idempotency};
use giga_api::wire::{FailReason, Job, JobKind, PlanAnswer, Retries, Stage};

use super::explain::explanation_text;
use super::manifest_file::ManifestFile;
use super::wait::{Wait, meant, wait_for};
use crate::args::SubmitArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{Format, printable, say, warn};

pub(super) async fn submit(args: SubmitArgs, context: &Context) -> Done {
    let client = context.client()?;
    let file = args.files.first().map(String::as_str).unwrap_or_default();
    let file = ManifestFile::read(file).await?;
    let idempotency = file.idempotency();
    let submitted = client.submit(file.bytes.clone(), &idempotency).await;
    let answer = submitted.map_err(|error| file.refused(error))?;
    let job = &answer.job;
    context.output.one(&answer.json, "/job/id", || {
        format!("{}  {}  {}", job.id, job.stage.label(), printable(&job.name))
    })?;
    if answer.status == 200 && idempotency == Idempotency::InManifest {
        say(&format!("the key `{}` was used before; this is its job", key_of(job)));
    }
    for warning in &answer.warnings {
        warn(warning);
    }
    if !answer.routable {
        say(&format!("\x1b[36mhint:\x1b[0m giga job explain {}", job.id));
    }
    if args.wait {
        wait_for(&client, vec![job.id.clone()], &Wait::until_shipped(), context).await
    } else {
        say_what_comes(&client, job, context).await;
        Ok(())
    }
}

/// Only for people, and only where it can be found out: the job is submitted, whatever becomes of this.
async fn say_what_comes(client: &Client, job: &Job, context: &Context) {
    if context.output.format != Format::Table {
        return;
    }
    if let Ok(job) = client.job(&job.id).await {
        say(&printable(&what_comes(&job)));
    }
}

/// What happens next by itself, and what it then needs from somebody.
fn what_comes(job: &Job) -> String {
    let name = meant(job);
    if job.kind == JobKind::Composite {
        return format!("it ships when its children have: giga job submit FILE... --parent {name}");
    }
    let starts = match job.stage {
        Stage::Blocked => "starts when what it depends on has shipped",
        _ => "runs when a factory is free",
    };
    let says = |key: &str| job.manifest.as_ref().and_then(|manifest| manifest.get(key)?.as_str());
    let ships_itself = says("ship") == Some("auto");
    let ends = if job.repo.is_some() { "is merged" } else { "is done" };
    let then = match (job.gate.is_some(), ships_itself) {
        (true, true) => format!("waits for a review (giga review {name}), and {ends} once it is approved"),
        (true, false) => {
            format!("waits for a review (giga review {name}), and {ends} on your word (giga job ship {name})")
        }
        (false, true) => ends.to_owned(),
        (false, false) => format!("{ends} on your word (giga job ship {name})"),
    };
    format!("it {starts}; then it {then}")
}

fn key_of(job: &Job) -> String {
    printable(job.idempotency_key.as_deref().unwrap_or_default())
}

pub(super) async fn plan(file: &str, context: &Context) -> Done {
    let client = context.client()?;
    let file = ManifestFile::read(file).await?;
    let answer = client.plan(file.bytes.clone()).await.map_err(|error| file.refused(error))?;
    context.output.one(&answer.json, "/explanation/summary", || plan_text(&answer))?;
    for warning in &answer.warnings {
        warn(warning);
    }
    if answer.refused {
        warn(
            "submitting it would be refused: with the flag `strict`, some factory must be able to run the job",
        );
    }
    Ok(())
}

fn plan_text(plan: &PlanAnswer) -> String {
    let mut text = explanation_text("Nothing was submitted. This is what would happen:", &plan.explanation);
    if let Some(into) = &plan.merges_into {
        let _ = writeln!(text, "\nIts result would be merged into {}.", printable(into));
    }
    if let Some(usd) = plan.worst_case_usd {
        let _ = writeln!(text, "\nIt costs {usd} at most, including all retries.");
    }
    if let Some(retries) = &plan.retries {
        let _ = writeln!(text, "\n{}", retried(retries));
    }
    text
}

/// What a failure leads to.
fn retried(Retries { attempts, on, not_on }: &Retries) -> String {
    if *attempts == 1 {
        return "It is tried once: `retry.max` is 0.".to_owned();
    }
    let always = ["a lost factory", "a problem of the machine or the network", "an engine that breaks off"];
    let told = |reason: &FailReason| match reason {
        FailReason::Crash => "an exit code other than 0",
        FailReason::VerifyFailed => "a failed verification",
        FailReason::Timeout => "a run that takes too long",
        other => other.label(),
    };
    let retried: Vec<&str> = always.into_iter().chain(on.iter().map(told)).collect();
    let final_ones: Vec<&str> = not_on.iter().map(told).chain(["a spent budget"]).collect();
    format!(
        "It is tried up to {attempts} times. Retried: {}. Not retried: {}.",
        retried.join(", "),
        final_ones.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(stage: &str, more: serde_json::Value) -> String {
        let mut job = json!({
            "id": "01J9ZK3V5N8Q4W2E6R7T1Y0ABC", "productId": "demo", "name": "fix", "kind": "agent", "stage": stage,
            "priority": "normal", "rev": 1, "leaseEpoch": 0, "capabilities": [], "deps": [], "depsMode": "all",
            "attempts": 0, "dispatchSeq": 0, "createdAt": "", "updatedAt": "", "enqueuedAt": "",
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        what_comes(&serde_json::from_value(job).unwrap())
    }

    #[test]
    fn what_comes_next_is_what_the_manifest_says() {
        let gate = json!({"quorum": 1, "reviewers": []});
        assert_eq!(
            said("queued", json!({"repo": "hello", "gate": gate, "manifest": {"ship": "manual"}})),
            "it runs when a factory is free; then it waits for a review (giga review fix), and is merged on your word \
             (giga job ship fix)"
        );
        assert_eq!(
            said("queued", json!({"repo": "hello", "gate": gate, "manifest": {"ship": "auto"}})),
            "it runs when a factory is free; then it waits for a review (giga review fix), and is merged once it is \
             approved"
        );
        assert_eq!(
            said("blocked", json!({"repo": "hello", "manifest": {"ship": "auto"}})),
            "it starts when what it depends on has shipped; then it is merged"
        );
        assert_eq!(
            said("queued", json!({"manifest": {"ship": "manual"}})),
            "it runs when a factory is free; then it is done on your word (giga job ship fix)"
        );
        assert_eq!(
            said("blocked", json!({"kind": "composite", "manifest": {"ship": "auto"}})),
            "it ships when its children have: giga job submit FILE... --parent fix"
        );
    }
}
