//! What factories send and fetch beside the life of a job: logs, and orders to merge. People read the logs here too.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{MergeHolder, ProposedMerge, TakenMerge};
use giga_domain::job::{MergeBy, MergeSettings, MergeStrategy, Merging};
use giga_domain::{Epoch, Job, JobId, JobResult, MergeOutcome, limits, merge_message};

use super::{Answer, tagged};
use crate::app::App;
use crate::caller::Caller;
use crate::handlers::fleet::wait;
use crate::handlers::holders::holder;
use crate::problem::Problem;
use crate::request::{BytesBody, JsonBody, PathText, Query, check};

/// How much of a log one answer carries.
const PIECE: usize = 256 * 1024;

const BRANCH_CHARS: usize = 255;
const MOST_MERGES: usize = 50;

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

pub(crate) async fn claim_merges(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::ClaimMergesRequest>,
) -> Answer<Response> {
    let factory = check::id("factoryId", &request.factory_id)?;
    caller.speaks_for(&factory)?;
    let taken = app.coordinator.take_merges(factory).await?;
    if taken.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let orders = taken.into_iter().map(order).collect::<Answer<_>>()?;
    let lease_ms = app.coordinator.merge_lease().as_millis().try_into().unwrap_or(u64::MAX);
    Ok(Json(wire::MergeOrders { orders, lease_ms }).into_response())
}

fn order(taken: TakenMerge) -> Answer<wire::MergeOrder> {
    let TakenMerge { job, checks } = taken;
    let incomplete = || Problem::internal("an order to merge lacks what it is about");
    let result = job.result.as_ref().ok_or_else(incomplete)?;
    let merge = job.merge.as_ref().ok_or_else(incomplete)?;
    let Merging { repo, commit, base } = job.merging().ok_or_else(incomplete)?;
    let MergeSettings { strategy, by, feedback: _, message, author } = &job.spec.merge;
    Ok(wire::MergeOrder {
        job_id: job.id.to_string(),
        lease_epoch: result.epoch.0,
        name: job.spec.name.clone(),
        repo: repo.to_owned(),
        branch: result.branch.clone(),
        commit: commit.to_owned(),
        base: base.map(str::to_owned),
        attempt: merge.attempt,
        target: job.spec.target.clone(),
        by: by.unwrap_or(MergeBy::Push).into(),
        strategy: strategy.unwrap_or(MergeStrategy::Merge).into(),
        message: merge_message::render(message.as_deref(), &job),
        author: author.clone(),
        reviewers: merge_message::reviewers(&job),
        verify: checks,
        candidate: merge.candidate().cloned().map(Into::into),
        beside: beside(&job, result, merge.part),
    })
}

fn beside(job: &Job, result: &JobResult, part: usize) -> Vec<wire::BesideRepo> {
    if job.spec.more_repos.is_empty() {
        return Vec::new();
    }
    let now = result.repos.get(part).map(|now| now.repo.as_str());
    let later = result.repos.get(part + 1..).unwrap_or_default();
    let others = job.spec.repos().filter(|repo| Some(*repo) != now);
    let beside = others.map(|repo| {
        let later = later.iter().find(|later| later.repo == repo);
        wire::BesideRepo {
            repo: repo.to_owned(),
            commit: later.map(|later| later.commit.clone()),
            base: later.and_then(|later| later.base.clone()),
        }
    });
    beside.collect()
}

pub(crate) async fn renew_merges(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::RenewMergesRequest>,
) -> Answer<Json<wire::RenewMergesAnswer>> {
    let merges = request.merges.iter().map(|merge| (merge.job_id.as_str(), merge.attempt));
    let (holder, _) = merge_holder(&caller, &request.factory_id, merges)?;
    let held = app.coordinator.renew_merges(holder).await?.into_iter();
    let merges = held.map(|(job, attempt)| wire::HeldMerge { job_id: job.to_string(), attempt }).collect();
    Ok(Json(wire::RenewMergesAnswer { merges }))
}

pub(crate) async fn push_merges(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::PushMergesRequest>,
) -> Answer<StatusCode> {
    let merges = request.merges.iter().map(|merge| (merge.job_id.as_str(), merge.attempt));
    let (holder, first) = merge_holder(&caller, &request.factory_id, merges)?;
    let mut candidates = Vec::with_capacity(request.merges.len());
    for (at, merge) in request.merges.into_iter().enumerate() {
        let named = |field: &str| format!("merges[{at}].candidate.{field}");
        let wire::MergeCandidate { commit, tip, into, head } = &merge.candidate;
        check::text(&named("commit"), commit, limits::COMMIT_CHARS)?;
        check::optional_text(&named("tip"), tip.as_ref(), limits::COMMIT_CHARS)?;
        check::text(&named("into"), into, BRANCH_CHARS)?;
        check::optional_text(&named("head"), head.as_ref(), limits::COMMIT_CHARS)?;
        candidates.push(merge.candidate.into());
    }
    match app.coordinator.push_merges(holder, &candidates).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(app.refused(&caller, first, error).await),
    }
}

pub(crate) async fn settle_merge(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::SettleMergeRequest>,
) -> Answer<Response> {
    let merge = (path.text("id")?, request.attempt);
    let (holder, id) = merge_holder(&caller, &request.factory_id, std::iter::once(merge))?;
    check::optional_text("commit", request.commit.as_ref(), limits::COMMIT_CHARS)?;
    check::optional_text("into", request.into.as_ref(), BRANCH_CHARS)?;
    check::optional_text("detail", request.detail.as_ref(), limits::REASON_CHARS)?;
    if let Some(note) = &request.note {
        check::name("note", note, limits::NOTE_CHARS)?;
    }
    check::optional_text("branch", request.branch.as_ref(), BRANCH_CHARS)?;
    check::optional_text("origin", request.origin.as_ref(), limits::URL_CHARS)?;
    let (detail, note) = (request.detail.unwrap_or_default(), request.note);
    let outcome = match (request.outcome, request.commit, request.into) {
        (wire::MergeOutcome::Proposed, Some(commit), Some(into)) => {
            let Some(branch) = request.branch else {
                return Err(Problem::field("branch", "`proposed` comes with the branch of the pull request"));
            };
            let proposed = ProposedMerge { commit, into, branch, origin: request.origin };
            return match app.coordinator.propose_merge(holder, proposed).await {
                Ok(job) => Ok(tagged(&job)),
                Err(error) => Err(app.refused(&caller, id, error).await),
            };
        }
        (wire::MergeOutcome::Proposed, None, _) => {
            return Err(Problem::field("commit", "`proposed` comes with the commit of the result"));
        }
        (wire::MergeOutcome::Proposed, _, None) => {
            return Err(Problem::field(
                "into",
                "`proposed` comes with the branch that it is to be merged into",
            ));
        }
        (wire::MergeOutcome::Merged, Some(commit), Some(into)) => MergeOutcome::Merged { commit, into, note },
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
    match app.coordinator.settle_merge(holder, outcome).await {
        Ok(job) => Ok(tagged(&job)),
        Err(error) => Err(app.refused(&caller, id, error).await),
    }
}

/// Whose merges are meant, and the first of them, by which a refusal is answered.
fn merge_holder<'a>(
    caller: &Caller,
    factory: &str,
    merges: impl Iterator<Item = (&'a str, u32)>,
) -> Answer<(MergeHolder, JobId)> {
    let factory = check::id("factoryId", factory)?;
    caller.speaks_for(&factory)?;
    let merges = merges.map(|(job, attempt)| Ok((check::id("jobId", job)?, attempt)));
    let merges: Vec<(JobId, u32)> = merges.collect::<Answer<_>>()?;
    match merges.first() {
        Some(&(first, _)) if merges.len() <= MOST_MERGES => Ok((MergeHolder { factory, merges }, first)),
        _ => Err(Problem::field("merges", format!("name 1 to {MOST_MERGES} of them"))),
    }
}
