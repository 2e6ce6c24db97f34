//! Graphs of jobs: many in one submit, children of a job, and how a whole tree stands.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use giga_api::wire;
use giga_coordinator::{DagJob, KnownProfiles, NewItem, Progress, Sight, SubmitAnswer};
use giga_domain::manifest::{Draft, Manifest, TRACKER_KEY};
use giga_domain::{Job, limits};

use super::Answer;
use super::submit::resolved_among;
use crate::app::App;
use crate::caller::{Caller, Who};
use crate::problem::Problem;
use crate::request::{LargeJson, PathText, check};

type Made = (StatusCode, Json<wire::BatchAnswer>);

pub(crate) async fn submit_many(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    LargeJson(request): LargeJson<wire::BatchRequest>,
) -> Answer<Made> {
    check_count("jobs", request.jobs.len())?;
    let mut items = Vec::with_capacity(request.jobs.len());
    let mut known = KnownProfiles::default();
    for (place, item) in request.jobs.into_iter().enumerate() {
        let here = |problem: Problem| problem.within(&format!("jobs[{place}]"));
        let read = async {
            let key = item.idempotency_key.clone();
            let draft = draft(item)?;
            let (product, mut manifest, body) =
                resolved_among(&mut known, &app, &caller, &headers, draft, key.as_deref()).await?;
            choose_key(key, &mut manifest)?;
            Ok((product, manifest, body))
        };
        let (product, manifest, body) = read.await.map_err(here)?;
        items.push(NewItem { product, manifest, body });
    }
    let sight = caller.sight();
    let answers = app.coordinator.submit_many(items, caller.actor()).await;
    Ok(made(&sight, answers.map_err(|error| Problem::told_to(&sight, error))?))
}

pub(crate) async fn submit_children(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    LargeJson(request): LargeJson<wire::ChildrenRequest>,
) -> Answer<Made> {
    let parent = app.visible_job(&caller, path.id()?).await?;
    check_count("children", request.children.len())?;
    let mut items = Vec::with_capacity(request.children.len());
    let mut known = KnownProfiles::default();
    for (place, item) in request.children.into_iter().enumerate() {
        let here = |problem: Problem| problem.within(&format!("children[{place}]"));
        items.push(child(&mut known, &app, &parent, item).await.map_err(here)?);
    }
    let answers = match &caller.who {
        Who::Job(inside) => {
            let holder = inside.holder.clone();
            app.coordinator.submit_from_inside(parent.id, holder, items, caller.actor()).await?
        }
        Who::User(_) | Who::Factory(_) | Who::Pool { .. } | Who::Scaler(_) => {
            app.coordinator.submit_children(parent.id, items, caller.actor()).await?
        }
    };
    Ok(made(&caller.sight(), answers))
}

async fn child(known: &mut KnownProfiles, app: &App, parent: &Job, item: wire::BatchItem) -> Answer<NewItem> {
    let key = item.idempotency_key.clone();
    let draft = draft(item)?;
    let product = parent.product.clone();
    if draft.product()?.is_some_and(|named| named != product) {
        return Err(Problem::field("product", format!("it must be {product}, its parent's; leave it out")));
    }
    let (mut manifest, body) = app.coordinator.resolve_among(known, &product, draft, key.as_deref()).await?;
    // Written out, so that naming the product or not makes the same job.
    manifest.product = Some(product.clone());
    choose_key(key, &mut manifest)?;
    Ok(NewItem { product, manifest, body })
}

/// Before any of them is read.
fn check_count(field: &str, count: usize) -> Answer<()> {
    match count {
        0 => Err(Problem::field(field, "it must have at least one job")),
        _ if count > limits::SUBMIT_JOBS => {
            let message = format!("it has {count} jobs; at most {} go into one call", limits::SUBMIT_JOBS);
            Err(Problem::field(field, message))
        }
        _ => Ok(()),
    }
}

fn draft(item: wire::BatchItem) -> Answer<Draft> {
    match item {
        wire::BatchItem { manifest: Some(manifest), body_md, markdown: None, .. } => {
            Ok(Draft::from_json(&manifest, body_md.unwrap_or_default())?)
        }
        wire::BatchItem { manifest: None, body_md: None, markdown: Some(text), .. } => {
            Ok(Draft::from_markdown(text.as_bytes())?)
        }
        _ => Err(Problem::field("manifest", "send `manifest` with `bodyMd`, or `markdown` alone")),
    }
}

/// Given beside the manifest or in it, not differently in both.
fn choose_key(given: Option<String>, manifest: &mut Manifest) -> Answer<()> {
    let Some(key) = given else { return Ok(()) };
    check::name("idempotencyKey", &key, limits::IDEMPOTENCY_KEY_CHARS)?;
    if key.starts_with(TRACKER_KEY) {
        let message =
            format!("it may not begin with `{TRACKER_KEY}`, which is reserved for items of trackers");
        return Err(Problem::field("idempotencyKey", message));
    }
    if manifest.idempotency_key.as_ref().is_some_and(|own| *own != key) {
        return Err(Problem::field("idempotencyKey", "the manifest has another one; leave one of them out"));
    }
    manifest.idempotency_key = Some(key);
    Ok(())
}

fn made(sight: &Sight, answers: Vec<SubmitAnswer>) -> Made {
    let created = answers.iter().any(|answer| answer.created);
    let jobs = answers
        .into_iter()
        .map(|answer| wire::BatchedJob {
            job: (&answer.job).into(),
            created: answer.created,
            routable: answer.routable.is_ok(),
            warnings: {
                let unroutable = answer.routable.err().map(|why| why.to_string());
                let foreign = answer.foreign_repo.map(|foreign| foreign.told_to(sight));
                unroutable.into_iter().chain(foreign).collect()
            },
        })
        .collect();
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    (status, Json(wire::BatchAnswer { jobs }))
}

pub(crate) async fn get(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Json<wire::Dag>> {
    let root = app.visible_job(&caller, path.id()?).await?;
    let dag = app.coordinator.dag(root.id).await?;
    let jobs: Vec<wire::DagJob> = dag.jobs.iter().map(node).collect();
    let outside = dag.outside.iter().map(|job| wire::DagDep {
        id: job.id.to_string(),
        name: job.spec.name.clone(),
        stage: job.stage().into(),
    });
    Ok(Json(wire::Dag {
        root_id: root.id.to_string(),
        progress: jobs.first().and_then(|job| job.progress.clone()).unwrap_or_default(),
        jobs,
        outside: outside.collect(),
        truncated: dag.truncated,
    }))
}

fn node(node: &DagJob) -> wire::DagJob {
    let job = wire::Job::from(&node.job);
    wire::DagJob {
        depth: node.depth,
        factory_id: job.lease.map(|lease| lease.factory_id),
        progress: node.progress.as_ref().map(progress),
        id: job.id,
        name: job.name,
        kind: job.kind,
        stage: job.stage,
        parent_id: job.parent_id,
        deps: job.deps,
        deps_mode: job.deps_mode,
        attempts: job.attempts,
        failure: job.failure,
    }
}

fn progress(progress: &Progress) -> wire::DagProgress {
    let stages = progress.by_stage.iter().filter(|(_, count)| **count > 0);
    wire::DagProgress {
        total: progress.total(),
        shipped: progress.shipped(),
        percent: progress.percent(),
        spent_usd: progress.spent,
        by_stage: stages.map(|(stage, count)| (stage.into(), *count)).collect(),
    }
}
