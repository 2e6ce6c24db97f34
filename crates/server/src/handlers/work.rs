//! What factories send and fetch beside the life of a job: logs, and orders to merge. People read the logs here too.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::{Epoch, Job, MergeOutcome, limits};

use super::{Answer, tagged};
use crate::app::App;
use crate::caller::Caller;
use crate::handlers::fleet::wait;
use crate::handlers::holders::holder;
use crate::problem::Problem;
use crate::request::{BytesBody, JsonBody, PathText, Query, check};

/// How much of a log one answer carries.
const PIECE: usize = 256 * 1024;

pub(crate) async fn append_log(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
    BytesBody(bytes): BytesBody<{ limits::LOG_CHUNK_BYTES }>,
) -> Answer<Json<wire::AppendLogAnswer>> {
    let id = path.id()?;
    let required = |name: &str| {
        let missing = || Problem::field(name, "the query parameter is missing");
        query.number(name)?.ok_or_else(missing)
    };
    let holder = holder(&caller, required("leaseEpoch")?)?;
    match app.coordinator.append_log(id, &holder, required("offset")?, &bytes).await {
        Ok(length) => Ok(Json(wire::AppendLogAnswer { length })),
        Err(error) => Err(app.refused(&caller, id, error).await),
    }
}

pub(crate) async fn read_log(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
) -> Answer<Json<wire::LogPiece>> {
    let epoch = query.number("epoch")?.map(Epoch);
    let offset = query.number("offset")?.unwrap_or(0);
    let wait = wait(&app, &query)?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let piece = app.coordinator.read_log(job.id, epoch, offset, PIECE, wait).await?;
    Ok(Json(wire::LogPiece {
        lease_epoch: piece.epoch.0,
        offset: piece.offset,
        next_offset: piece.next_offset,
        total: piece.total,
        complete: piece.complete,
        text: piece.text,
    }))
}

pub(crate) async fn claim_merge(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::ClaimMergeRequest>,
) -> Answer<Response> {
    let factory = check::id("factoryId", &request.factory_id)?;
    caller.speaks_for(&factory)?;
    match app.coordinator.take_merge(factory).await? {
        Some(job) => Ok(Json(order(&job)?).into_response()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn order(job: &Job) -> Answer<wire::MergeOrder> {
    let incomplete = || Problem::internal("an order to merge lacks what it is about");
    let result = job.result.as_ref().ok_or_else(incomplete)?;
    let Some(giga_domain::Merge::Taken { attempt, .. }) = &job.merge else { return Err(incomplete()) };
    Ok(wire::MergeOrder {
        job_id: job.id.to_string(),
        lease_epoch: result.epoch.0,
        name: job.spec.name.clone(),
        repo: job.spec.repo.clone().ok_or_else(incomplete)?,
        branch: result.branch.clone(),
        commit: result.commit.clone(),
        attempt: *attempt,
    })
}

pub(crate) async fn settle_merge(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::SettleMergeRequest>,
) -> Answer<Response> {
    let factory = check::id("factoryId", &request.factory_id)?;
    caller.speaks_for(&factory)?;
    check::optional_text("commit", request.commit.as_ref(), 64)?;
    check::optional_text("detail", request.detail.as_ref(), limits::REASON_CHARS)?;
    let detail = request.detail.unwrap_or_default();
    let outcome = match (request.outcome, request.commit) {
        (wire::MergeOutcome::Merged, Some(commit)) => MergeOutcome::Merged { commit },
        (wire::MergeOutcome::Merged, None) => {
            return Err(Problem::field("commit", "`merged` comes with the merge commit"));
        }
        (wire::MergeOutcome::Conflict, _) => MergeOutcome::Conflict { detail },
        (wire::MergeOutcome::Failed, _) => MergeOutcome::Failed { detail },
    };
    let id = path.id()?;
    match app.coordinator.settle_merge(id, factory, request.attempt, outcome).await {
        Ok(job) => Ok(tagged(&job)),
        Err(error) => Err(app.refused(&caller, id, error).await),
    }
}
