//! Handing in several jobs at once, or children of a job: all or none.

use giga_api::client::{ClientError, Idempotency};
use giga_api::wire::{BatchItem, BatchedJob};

use super::manifest_file::ManifestFile;
use super::wait::{Wait, wait_for};
use crate::args::SubmitArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::CliError;
use crate::output::{Columns, printable, say, stage_cell, warn};

pub(super) async fn submit_many(args: SubmitArgs, context: &Context) -> Done {
    let client = context.client()?;
    let mut files = Vec::with_capacity(args.files.len());
    for file in &args.files {
        files.push(ManifestFile::read(file).await?);
    }
    let (items, repeatable): (Vec<BatchItem>, Vec<bool>) = files.iter().map(item).unzip();
    let repeatable = repeatable.into_iter().all(|repeatable| repeatable);
    let answer = match &args.parent {
        Some(parent) => {
            let parent = context.job_id(&client, parent).await?;
            client.submit_children(&parent, items, repeatable).await
        }
        None => client.submit_many(items, repeatable).await,
    };
    let answer = answer.map_err(|error| refused(&files, error))?;
    context.output.list(&answer.json, ("/jobs", "/job/id"), "no jobs", || table(&answer.jobs))?;
    for made in &answer.jobs {
        if !made.created {
            say(&format!("{} already existed: its key was used before", printable(&made.job.name)));
        }
        for warning in &made.warnings {
            warn(&format!("{}: {warning}", made.job.name));
        }
    }
    let ids = answer.jobs.iter().map(|made| made.job.id.clone()).collect();
    if args.wait { wait_for(&client, ids, &Wait::until_shipped(), context).await } else { Ok(()) }
}

/// The document as it is, and whether sending it twice makes one job.
fn item(file: &ManifestFile) -> (BatchItem, bool) {
    let idempotency = file.idempotency();
    let repeatable = idempotency != Idempotency::Nothing;
    let idempotency_key = match idempotency {
        Idempotency::Key(key) => Some(key),
        Idempotency::Nothing | Idempotency::InManifest => None,
    };
    let markdown = Some(String::from_utf8_lossy(&file.bytes).into_owned());
    (BatchItem { markdown, idempotency_key, ..BatchItem::default() }, repeatable)
}

/// `jobs[1].deps[0]` is `deps[0]` of the second file.
fn refused(files: &[ManifestFile], error: ClientError) -> CliError {
    let ClientError::Problem(mut problem) = error else { return error.into() };
    let place = problem.errors.first().and_then(|error| place_in(&error.field));
    let Some((file, prefix)) = place.and_then(|(place, prefix)| Some((files.get(place)?, prefix))) else {
        return ClientError::Problem(problem).into();
    };
    for error in &mut problem.errors {
        if let Some(own) = error.field.strip_prefix(&prefix) {
            error.field = own.trim_start_matches('.').to_owned();
        }
    }
    let detail = problem.detail.trim_start_matches(&prefix).trim_start_matches([':', ' ', '.']).to_owned();
    problem.detail = detail;
    CliError::Manifest { file: file.name.clone(), problem }
}

fn place_in(field: &str) -> Option<(usize, String)> {
    let (list, rest) = field.split_once('[')?;
    let (place, _) = rest.split_once(']')?;
    let known = matches!(list, "jobs" | "children");
    place.parse().ok().filter(|_| known).map(|number| (number, format!("{list}[{place}]")))
}

fn table(jobs: &[BatchedJob]) -> String {
    let mut table = Columns::new(&["ID", "STAGE", "NAME~"]);
    for made in jobs {
        table.row([
            comfy_table::Cell::new(printable(&made.job.id)),
            stage_cell(made.job.stage),
            comfy_table::Cell::new(printable(&made.job.name)),
        ]);
    }
    table.render()
}
