//! What factories send and fetch beside the life of a job: logs, and orders to merge. People read the logs here too.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{Error, MergeHolder, TakenMerge};
use giga_domain::job::MergeCandidate;
use giga_domain::{Epoch, Job, JobId, MergeOutcome, MergeState, limits};

use super::{Answer, tagged};
use crate::app::App;
use crate::caller::Caller;
use crate::handlers::fleet::wait;
use crate::handlers::holders::holder;
use crate::problem::Problem;
use crate::request::{BytesBody, JsonBody, PathText, Query, check};

/// How much of a log one answer carries.
const PIECE: usize = 256 * 1024;

/// A hash, in hexadecimal digits.
const COMMIT_CHARS: usize = 64;
const BRANCH_CHARS: usize = 255;

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
        Some(taken) => Ok(Json(order(taken)?).into_response()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn order(taken: TakenMerge) -> Answer<wire::MergeOrder> {
    let TakenMerge { job, verify } = taken;
    let incomplete = || Problem::internal("an order to merge lacks what it is about");
    let result = job.result.as_ref().ok_or_else(incomplete)?;
    let merge = job.merge.as_ref().ok_or_else(incomplete)?;
    let candidate = match &merge.state {
        MergeState::Pushing { candidate, .. } => Some(candidate.clone()),
        _ => None,
    };
    Ok(wire::MergeOrder {
        job_id: job.id.to_string(),
        lease_epoch: result.epoch.0,
        name: job.spec.name.clone(),
        repo: job.spec.repo.clone().ok_or_else(incomplete)?,
        branch: result.branch.clone(),
        commit: result.commit.clone(),
        attempt: merge.attempt,
        verify,
        candidate: candidate.map(|MergeCandidate { commit, tip, into }| wire::MergeCandidate {
            commit,
            tip,
            into,
        }),
    })
}

pub(crate) async fn renew_merge(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::RenewMergeRequest>,
) -> Answer<Response> {
    let holder = merge_holder(&caller, &path, &request.factory_id, request.attempt)?;
    let job = holder.job;
    answered(&app, &caller, job, app.coordinator.renew_merge(holder).await).await
}

pub(crate) async fn push_merge(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::PushMergeRequest>,
) -> Answer<Response> {
    let holder = merge_holder(&caller, &path, &request.factory_id, request.attempt)?;
    let wire::MergeCandidate { commit, tip, into } = request.candidate;
    check::text("candidate.commit", &commit, COMMIT_CHARS)?;
    check::optional_text("candidate.tip", tip.as_ref(), COMMIT_CHARS)?;
    check::text("candidate.into", &into, BRANCH_CHARS)?;
    let job = holder.job;
    let pushed = app.coordinator.push_merge(holder, MergeCandidate { commit, tip, into }).await;
    answered(&app, &caller, job, pushed).await
}

pub(crate) async fn settle_merge(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::SettleMergeRequest>,
) -> Answer<Response> {
    let holder = merge_holder(&caller, &path, &request.factory_id, request.attempt)?;
    check::optional_text("commit", request.commit.as_ref(), COMMIT_CHARS)?;
    check::optional_text("into", request.into.as_ref(), BRANCH_CHARS)?;
    check::optional_text("detail", request.detail.as_ref(), limits::REASON_CHARS)?;
    let detail = request.detail.unwrap_or_default();
    let outcome = match (request.outcome, request.commit, request.into) {
        (wire::MergeOutcome::Merged, Some(commit), Some(into)) => MergeOutcome::Merged { commit, into },
        (wire::MergeOutcome::Merged, None, _) => {
            return Err(Problem::field("commit", "`merged` comes with the commit that brought it in"));
        }
        (wire::MergeOutcome::Merged, _, None) => {
            return Err(Problem::field("into", "`merged` comes with the branch that it is in"));
        }
        (wire::MergeOutcome::Conflict, ..) => MergeOutcome::Conflict { detail },
        (wire::MergeOutcome::ChecksFailed, ..) => MergeOutcome::ChecksFailed { detail },
        (wire::MergeOutcome::Refused, ..) => MergeOutcome::Refused { detail },
        (wire::MergeOutcome::Unreachable, ..) => MergeOutcome::Unreachable { detail },
        (wire::MergeOutcome::Outrun, ..) => MergeOutcome::Outrun,
    };
    let job = holder.job;
    answered(&app, &caller, job, app.coordinator.settle_merge(holder, outcome).await).await
}

fn merge_holder(caller: &Caller, path: &PathText, factory: &str, attempt: u32) -> Answer<MergeHolder> {
    let factory = check::id("factoryId", factory)?;
    caller.speaks_for(&factory)?;
    Ok(MergeHolder { job: path.id()?, factory, attempt })
}

async fn answered(app: &App, caller: &Caller, id: JobId, done: Result<Job, Error>) -> Answer<Response> {
    match done {
        Ok(job) => Ok(tagged(&job)),
        Err(error) => Err(app.refused(caller, id, error).await),
    }
}
