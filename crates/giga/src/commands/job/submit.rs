//! Handing in a job, for real or as a dry run.

use std::fmt::Write;

use giga_api::client::Idempotency;
use giga_api::wire::{PlanAnswer, Stage};

use super::explain::explanation_text;
use super::manifest_file::ManifestFile;
use super::wait::wait_for;
use crate::args::SubmitArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::output::{printable, say, warn};

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
        wait_for(&client, vec![job.id.clone()], Stage::Shipped, None, context).await
    } else {
        Ok(())
    }
}

fn key_of(job: &giga_api::wire::Job) -> String {
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
    text
}
