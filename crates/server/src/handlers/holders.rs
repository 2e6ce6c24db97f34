//! What factories say about the jobs that they take and hold.
//!
//! The holder is always the factory whose token this is, never one that a body names; whether it still holds the job
//! is judged by the epoch inside the store's write and nowhere before it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{Accept, Candidate, Error};
use giga_domain::{
    Check, Checkpoint, DispatchSeq, Epoch, FailReason, Failure, Holder, HolderAction, Job, JobId, Refusal,
    RepoCommit, RequestId, RunReport, Spend, Stage, limits,
};
use giga_ports::StoreError;

use super::{Answer, accounts, tagged};
use crate::app::App;
use crate::caller::{Caller, Products, Who};
use crate::problem::Problem;
use crate::request::{JsonBody, PathText, Query, check};
use crate::shapes;

/// Branches and commits: as long as git's own names can sensibly be.
const REF_CHARS: usize = 255;
/// A request that names jobs leaves room for a job id behind its own.
const REQUEST_CHARS: usize = 100;

pub(crate) async fn claim(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::ClaimRequest>,
) -> Answer<Response> {
    let factory = check::id("factoryId", &request.factory_id)?;
    let request_id = check::id("requestId", &request.request_id)?;
    caller.speaks_for(&factory)?;
    let claimed = match (request.job_ids.as_slice(), request.max) {
        ([], None) => app.coordinator.claims().claim(factory, request_id).await?,
        ([], Some(_)) => {
            return Err(Problem::field("max", "it goes with `jobIds`; without them a claim gives one job"));
        }
        (ids, max) => {
            let jobs = chosen_jobs(ids, &request_id)?;
            check::in_range("max", max.unwrap_or(1), 1, limits::CLAIM_JOBS as u32)?;
            let most = max.unwrap_or(1) as usize;
            let mut granted = app.coordinator.claims().claim_from(factory, &request_id, &jobs, most).await?;
            if max.is_some() {
                let grants = granted.iter().map(|job| claim_answer(&app, job));
                let grants = futures::future::try_join_all(grants).await?;
                return Ok(Json(wire::ClaimManyAnswer { grants }).into_response());
            }
            granted.pop()
        }
    };
    match claimed {
        Some(job) => granted(&app, &job).await,
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Jobs that a claim names.
fn chosen_jobs(ids: &[String], request: &RequestId) -> Answer<Vec<JobId>> {
    check::at_most("jobIds", ids.len(), limits::CLAIM_JOBS)?;
    if request.as_str().len() > REQUEST_CHARS {
        let message = format!("with `jobIds` it has at most {REQUEST_CHARS} characters");
        return Err(Problem::field("requestId", message));
    }
    ids.iter().enumerate().map(|(index, id)| check::id(&format!("jobIds[{index}]"), id)).collect()
}

pub(crate) async fn candidates(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Answer<Json<wire::CandidateList>> {
    let missing = || Problem::field("factoryId", "the query parameter is missing");
    let factory = query.id("factoryId")?.ok_or_else(missing)?;
    caller.speaks_for(&factory)?;
    let candidates = app.coordinator.claims().candidates(&factory, query.limit()?).await?;
    let shown = |candidate: Candidate| wire::Candidate {
        job_id: candidate.job.to_string(),
        product_id: candidate.product.to_string(),
        priority: candidate.priority.into(),
        capabilities: candidate.capabilities.tokens().collect(),
        repo: candidate.repo,
        more_repos: candidate.more_repos,
    };
    Ok(Json(wire::CandidateList { candidates: candidates.into_iter().map(shown).collect() }))
}

pub(crate) async fn accept(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::AcceptRequest>,
) -> Answer<Response> {
    let accept = Accept {
        job: check::id("jobId", &request.job_id)?,
        factory: check::id("factoryId", &request.factory_id)?,
        dispatch_seq: DispatchSeq(request.dispatch_seq),
        request: check::id("requestId", &request.request_id)?,
    };
    caller.speaks_for(&accept.factory)?;
    let id = accept.job;
    match app.coordinator.claims().accept(accept).await {
        Ok(job) => granted(&app, &job).await,
        // Another product's job looks exactly like one that does not exist.
        Err(Error::NotYours(_)) if !app.in_scope(&caller, id).await? => {
            Err(Error::NotYours("it is gone").into())
        }
        Err(error) => Err(error.into()),
    }
}

async fn granted(app: &App, job: &Job) -> Answer<Response> {
    Ok(Json(claim_answer(app, job).await?).into_response())
}

/// What a factory gets to know of a job that is claimed for it, whichever way it goes.
pub(crate) async fn claim_answer(app: &App, job: &Job) -> Answer<wire::ClaimAnswer> {
    let lease = job.lease().ok_or_else(|| Problem::internal("a granted job has no lease"))?;
    let text = app.coordinator.reads().job_text(job.id).await?;
    let text = text.ok_or_else(|| Problem::internal("a granted job has no text"))?;
    Ok(wire::ClaimAnswer {
        job: shapes::job_with_text(job, text),
        lease_epoch: job.epoch.0,
        expires_at: lease.expires_at.to_string(),
        job_token: app.coordinator.job_token(job.id, job.epoch).await?.reveal().to_owned(),
    })
}

pub(crate) async fn patch(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::PatchRequest>,
) -> Answer<Response> {
    let id = path.id()?;
    let engine = accounts::engine_use(&request, app.coordinator.store_time())?;
    let stage = request.stage.map(|stage| from_stage(stage.into())).transpose()?;
    let stage = engine.map(HolderAction::StartWith).or(stage);
    let checkpoint = checkpoint(request.checkpoint)?.map(HolderAction::Checkpoint);
    let actions: Vec<HolderAction> = checkpoint.into_iter().chain(stage).collect();
    if actions.is_empty() {
        return Err(Problem::field("body", "it changes nothing: give `stage`, `checkpoint` or both"));
    }
    let job = app.hold(&caller, id, request.lease_epoch, actions).await?;
    Ok(tagged(&job))
}

/// What a holder means by the stage that it asks for.
fn from_stage(stage: Stage) -> Answer<HolderAction> {
    let settable = "a holder can set building, review, testing or shipped";
    let refused = |instead: &str| Err(Problem::field("stage", format!("{settable}; {instead}")));
    match stage {
        Stage::Building => Ok(HolderAction::Start),
        Stage::Review | Stage::Testing | Stage::Shipping | Stage::Shipped => {
            Ok(HolderAction::Report(RunReport::default()))
        }
        Stage::Failed | Stage::DeadLetter => refused("to say that it failed, POST /api/fleet/fail"),
        Stage::Queued => refused("to give the job back, POST /api/fleet/jobs/{id}/lease/release"),
        Stage::Cancelled => {
            refused("only an operator cancels, with POST /api/fleet/jobs/{id}/actions/cancel")
        }
        Stage::Assigned => refused("a job is assigned by a claim, POST /api/fleet/claim"),
        Stage::Blocked => refused("a job is blocked by its deps alone"),
    }
}

pub(crate) async fn report(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::ReportRequest>,
) -> Answer<Response> {
    let id = path.id()?;
    let checkpoint = checkpoint(request.checkpoint)?.map(HolderAction::Checkpoint);
    let report = run_report(request.report.unwrap_or_default())?;
    let actions = checkpoint.into_iter().chain([HolderAction::Report(report)]).collect();
    let job = app.hold(&caller, id, request.lease_epoch, actions).await?;
    Ok(tagged(&job))
}

pub(crate) async fn fail(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::FailRequest>,
) -> Answer<Response> {
    let id = check::id("jobId", &request.job_id)?;
    let reason: FailReason = request.reason.into();
    if !may_be_reported(reason) {
        let allowed: Vec<&str> = FailReason::ALL
            .into_iter()
            .filter(|reason| may_be_reported(*reason))
            .map(FailReason::as_str)
            .collect();
        return Err(Problem::field("reason", check::none_of(reason.as_str(), &allowed)));
    }
    check::optional_text("detail", request.detail.as_ref(), limits::REASON_CHARS)?;
    let failure = Failure { reason, detail: request.detail };
    let checkpoint = checkpoint(request.checkpoint)?.map(HolderAction::Checkpoint);
    let spent = spend("spend", request.spend)?.map(HolderAction::Spend);
    let assumed = request.spend_assumed.then_some(HolderAction::Assumed);
    let failed = HolderAction::Fail { failure, retryable: request.retryable };
    let actions = spent.into_iter().chain(assumed).chain(checkpoint).chain([failed]).collect();
    if let Some(given) = request.accounts {
        let accounts = accounts::reported(given, app.coordinator.store_time())?;
        let factory = holder(&caller, request.lease_epoch)?.factory;
        app.coordinator.report_accounts(&factory, accounts).await?;
    }
    let job = app.hold(&caller, id, request.lease_epoch, actions).await?;
    Ok(tagged(&job))
}

/// The other reasons are the coordinator's own words.
fn may_be_reported(reason: FailReason) -> bool {
    use FailReason::{ChildFailed, DependencyFailed, LeaseExpired, Rejected};
    !matches!(reason, LeaseExpired | Rejected | DependencyFailed | ChildFailed)
}

pub(crate) async fn renew(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::RenewRequest>,
) -> Answer<Json<wire::RenewAnswer>> {
    let id = path.id()?;
    let holder = holder(&caller, request.lease_epoch)?;
    let spent = spend("spend", request.spend)?;
    let renewal = match app.coordinator.renew(id, holder, spent).await {
        Ok(renewal) => renewal,
        Err(error) => return Err(app.refused(&caller, id, error).await),
    };
    Ok(Json(wire::RenewAnswer {
        expires_at: renewal.expires_at.to_string(),
        directives: renewal.directives.into_iter().map(shapes::directive).collect(),
    }))
}

pub(crate) async fn release(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::ReleaseRequest>,
) -> Answer<Response> {
    let id = path.id()?;
    let checkpoint = checkpoint(request.checkpoint)?;
    let spent = spend("spend", request.spend)?.map(HolderAction::Spend);
    let assumed = request.spend_assumed.then_some(HolderAction::Assumed);
    let released = HolderAction::Release { checkpoint };
    let actions = spent.into_iter().chain(assumed).chain([released]).collect();
    let job = app.hold(&caller, id, request.lease_epoch, actions).await?;
    Ok(tagged(&job))
}

pub(crate) fn holder(caller: &Caller, epoch: u64) -> Answer<Holder> {
    let factory = match &caller.who {
        Who::Job(inside) => &inside.holder.factory,
        _ => caller.factory()?,
    };
    Ok(Holder { factory: factory.clone(), epoch: Epoch(epoch) })
}

impl App {
    async fn hold(&self, caller: &Caller, id: JobId, epoch: u64, actions: Vec<HolderAction>) -> Answer<Job> {
        match self.coordinator.hold(id, holder(caller, epoch)?, actions).await {
            Ok(job) => Ok(job),
            Err(error) => Err(self.refused(caller, id, error).await),
        }
    }

    /// A refused writer learns why and where the job stands, unless the job is none of its business: then there is no
    /// job.
    pub(crate) async fn refused(&self, caller: &Caller, id: JobId, error: Error) -> Problem {
        let tells =
            matches!(error, Error::NotYours(_) | Error::Store(StoreError::Refused(Refusal::Fenced { .. })));
        if !tells {
            return error.into();
        }
        match self.in_scope(caller, id).await {
            Ok(true) => error.into(),
            Ok(false) => Problem::no_job(id),
            Err(problem) => problem,
        }
    }

    /// Is it a job of one of the caller's products?
    async fn in_scope(&self, caller: &Caller, id: JobId) -> Answer<bool> {
        if caller.products == Products::All {
            return Ok(true);
        }
        let job = self.coordinator.reads().job(id).await?;
        Ok(job.is_some_and(|job| caller.products.allows(&job.product)))
    }
}

fn checkpoint(given: Option<wire::Checkpoint>) -> Answer<Option<Checkpoint>> {
    let Some(given) = given else { return Ok(None) };
    let fields = [
        ("checkpoint.wipRef", &given.wip_ref),
        ("checkpoint.commit", &given.commit),
        ("checkpoint.sessionId", &given.session_id),
        ("checkpoint.sessionEngine", &given.session_engine),
        ("checkpoint.note", &given.note),
    ];
    let bytes: usize = fields.iter().filter_map(|(_, text)| text.as_ref()).map(String::len).sum();
    if bytes > limits::CHECKPOINT_BYTES {
        let most = limits::CHECKPOINT_BYTES;
        return Err(Problem::field(
            "checkpoint",
            format!("it may have at most {most} bytes; it has {bytes}"),
        ));
    }
    for (field, text) in fields {
        check::optional_text(field, text.as_ref(), limits::CHECKPOINT_BYTES)?;
    }
    let repos = repo_commits("checkpoint.repos", given.repos)?;
    let factory = given.factory_id.as_deref().map(|id| check::id("checkpoint.factoryId", id)).transpose()?;
    let session_spend = spend("checkpoint.sessionSpend", given.session_spend)?;
    Ok(Some(Checkpoint {
        wip_ref: given.wip_ref,
        commit: given.commit,
        session_id: given.session_id,
        session_engine: given.session_engine,
        session_spend,
        repos,
        factory,
        note: given.note,
    }))
}

fn run_report(given: wire::RunReport) -> Answer<RunReport> {
    check::optional_text("report.summary", given.summary.as_ref(), limits::REASON_CHARS)?;
    check::optional_text("report.model", given.model.as_ref(), limits::NAME_CHARS)?;
    check::optional_text("report.branch", given.branch.as_ref(), REF_CHARS)?;
    check::optional_text("report.commit", given.commit.as_ref(), REF_CHARS)?;
    check::optional_text("report.base", given.base.as_ref(), REF_CHARS)?;
    check::optional_text("report.unseen", given.unseen.as_ref(), limits::NOTE_CHARS)?;
    check::optional_text("report.pullRequest", given.pull_request.as_ref(), 2_000)?;
    // Databases count in signed numbers.
    let most = i64::MAX.cast_unsigned();
    check::in_range("report.tokens", given.tokens.unwrap_or(0), 0, most)?;
    let cost =
        given.cost_usd.map(|usd| check::dollars("report.costUsd", usd, check::MOST_PER_RUN)).transpose()?;
    Ok(RunReport {
        summary: given.summary,
        branch: given.branch,
        commit: given.commit,
        base: given.base,
        unseen: given.unseen,
        pull_request: given.pull_request,
        model: given.model,
        tokens: given.tokens,
        cost,
        cost_assumed: given.cost_assumed,
        files_changed: given.files_changed,
        lines_added: given.lines_added,
        lines_removed: given.lines_removed,
        repos: repo_commits("report.repos", given.repos)?,
        checks: checks(given.checks)?,
    })
}

fn repo_commits(field: &str, given: Vec<wire::RepoCommit>) -> Answer<Vec<RepoCommit>> {
    check::at_most(field, given.len(), limits::JOB_REPOS)?;
    for (at, wire::RepoCommit { repo, commit, base }) in given.iter().enumerate() {
        check::text(&format!("{field}[{at}].repo"), repo, limits::REPO_URL_CHARS)?;
        check::text(&format!("{field}[{at}].commit"), commit, REF_CHARS)?;
        check::optional_text(&format!("{field}[{at}].base"), base.as_ref(), REF_CHARS)?;
    }
    Ok(given.into_iter().map(Into::into).collect())
}

/// The output of the verify commands. Of a command that prints more than is kept, the end counts; the agent cuts it, and
/// whoever does not is cut here, because a report must not fail for it. Nor for how a manifest spells its commands.
fn checks(given: Vec<wire::Check>) -> Answer<Vec<Check>> {
    check::at_most("report.checks", given.len(), limits::VERIFY_COMMANDS)?;
    let kept = |(index, given): (usize, wire::Check)| {
        let field = format!("report.checks[{index}]");
        check::in_range(&format!("{field}.wallMs"), given.wall_ms, 0, i64::MAX.cast_unsigned())?;
        let output = given.output.replace('\0', "\u{fffd}");
        let from = output.ceil_char_boundary(output.len().saturating_sub(limits::CHECK_OUTPUT_BYTES));
        Ok(Check {
            command: check::cleaned(&given.command, limits::REASON_CHARS),
            passed: given.passed,
            wall_ms: given.wall_ms,
            output: output[from..].to_owned(),
        })
    };
    given.into_iter().enumerate().map(kept).collect()
}

/// What a run has used up so far.
fn spend(field: &str, given: Option<wire::Spend>) -> Answer<Option<Spend>> {
    let Some(given) = given else { return Ok(None) };
    // Databases count in signed numbers.
    check::in_range(&format!("{field}.tokens"), given.tokens, 0, i64::MAX.cast_unsigned())?;
    let usd = check::dollars(&format!("{field}.usd"), given.usd, check::MOST_PER_RUN)?;
    Ok(Some(Spend { usd, tokens: given.tokens }))
}
