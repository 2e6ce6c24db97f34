//! Looking at jobs and steering them.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::job::ReviewGate;
use giga_domain::token::Role;
use giga_domain::{Epoch, Job, JobId, Judgement, limits};
use giga_ports::store::JobFilter;

use super::{Answer, tagged, tagged_with_reviews};
use crate::app::App;
use crate::caller::{Caller, Who};
use crate::problem::Problem;
use crate::request::{JsonBody, OptionalJson, PathText, Query, check, header, shown};
use crate::routes::{Param, query, words};
use crate::shapes;

/// What a list of jobs can be narrowed by, besides the product.
pub(crate) fn filters() -> [Param; 8] {
    [
        query(
            "id",
            "One or several ids, at most 100, separated by commas; those that are not found are left out",
        ),
        words::<wire::Stage>("stage", "In one of these stages"),
        words::<wire::Priority>("priority", "Of one of these priorities"),
        query("repo", "Exactly this repository"),
        query("factory", "Held by this factory now"),
        query("parent", "Children of this job"),
        query("name", "The name contains this, in upper or lower case"),
        query("needsInput", "`true`: a person has to answer a question of it"),
    ]
}

fn filter(query: &Query, caller: &Caller) -> Answer<JobFilter> {
    let ids = query.list("id", |text| check::id::<JobId>("id", text))?;
    check::at_most("id", ids.len(), limits::LISTED_IDS)?;
    Ok(JobFilter {
        ids,
        products: caller.products.as_filter().to_vec(),
        stages: query.list("stage", |text| check::word("stage", text))?,
        priorities: query.list("priority", |text| check::word("priority", text))?,
        repo: query.text("repo").map(str::to_owned),
        factory: query.id("factory")?,
        parent: query.id("parent")?,
        name_contains: query.text("name").map(str::to_owned),
        needs_input: match query.text("needsInput") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::field("needsInput", "it is true, or left out")),
        },
    })
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Answer<Json<wire::JobPage>> {
    let filter = filter(&query, &caller)?;
    let limit = query.limit()?;
    let before = query.text("cursor").map(from_cursor).transpose()?;
    // One more than asked for tells whether there is another page.
    let mut jobs = app.coordinator.reads().list_jobs(&filter, before, limit + 1).await?;
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next_cursor = jobs.last().filter(|_| more).map(to_cursor);
    Ok(Json(wire::JobPage { jobs: jobs.iter().map(Into::into).collect(), next_cursor }))
}

/// Only where they are: a factory cleans up after jobs that others ran.
pub(crate) async fn stages(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Answer<Json<wire::StageList>> {
    let ids = query.list("id", |text| check::id::<JobId>("id", text))?;
    if ids.is_empty() {
        return Err(Problem::field(
            "id",
            "the query parameter is missing: name the jobs, separated by commas",
        ));
    }
    check::at_most("id", ids.len(), limits::LISTED_IDS)?;
    let jobs = app.coordinator.reads().jobs_by_id(&ids).await?;
    let mut jobs: Vec<_> = jobs.iter().filter(|job| caller.products.allows(&job.product)).collect();
    jobs.sort_unstable_by_key(|job| job.id);
    Ok(Json(wire::StageList {
        jobs: jobs.into_iter().map(Into::into).collect(),
        branch_retention_hours: app.coordinator.branch_retention_hours(),
    }))
}

/// Opaque to clients: what follows may change, the prefix tells old ones apart.
fn to_cursor(last: &Job) -> String {
    format!("j1-{}", last.id)
}

fn from_cursor(text: &str) -> Answer<JobId> {
    text.strip_prefix("j1-").and_then(|id| id.parse().ok()).ok_or_else(|| {
        Problem::field("cursor", "it is malformed: send `nextCursor` of the page before as it came")
    })
}

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
) -> Answer<Response> {
    let job = app.visible_job(&caller, path.id()?).await?;
    let tag = header::job_tag(job.rev);
    if header::none_match(&headers, &tag)? {
        return Ok((StatusCode::NOT_MODIFIED, header::etag(&tag)).into_response());
    }
    let text = app.coordinator.reads().job_text(job.id).await?.ok_or_else(|| Problem::no_job(job.id))?;
    Ok((header::etag(&tag), Json(shapes::job_with_text(&job, text))).into_response())
}

pub(crate) async fn act(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<wire::ActionRequest>,
) -> Answer<Response> {
    let action = check::word("action", path.text("action")?)?;
    check::optional_text("reason", request.reason.as_ref(), limits::REASON_CHARS)?;
    let if_rev = header::if_match(&headers)?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let job = app.coordinator.operate(job.id, action, request.reason, if_rev, caller.actor()).await?;
    Ok(tagged(&job))
}

pub(crate) async fn review(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::ReviewRequest>,
) -> Answer<Response> {
    if let Some(reviewer) = &request.reviewer {
        check::name("reviewer", reviewer, limits::NAME_CHARS)?;
    }
    let reviewer = reviewer(&caller, request.reviewer)?;
    check::optional_text("comment", request.comment.as_ref(), limits::REASON_CHARS)?;
    let says_something = request.comment.as_ref().is_some_and(|comment| !comment.trim().is_empty());
    if request.verdict != wire::ReviewVerdict::Approve && !says_something {
        return Err(Problem::field("comment", no_words(request.verdict)));
    }
    let if_rev = header::if_match(&headers)?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let epoch = request.lease_epoch.map(Epoch);
    check::optional_text("commit", request.commit.as_ref(), limits::COMMIT_CHARS)?;
    let judgement = Judgement {
        verdict: request.verdict.into(),
        reviewer,
        comment: request.comment,
        epoch,
        commit: request.commit,
        acknowledge_unseen: request.acknowledge_unseen,
    };
    let job = app.coordinator.review(job.id, judgement, if_rev, caller.actor()).await?;
    Ok(tagged_with_reviews(&job))
}

/// Whoever has to act on a verdict has to know what is wrong.
const fn no_words(verdict: wire::ReviewVerdict) -> &'static str {
    match verdict {
        wire::ReviewVerdict::RequestChanges => "say what should change: the next run is given this comment",
        _ => "say why it is rejected",
    }
}

/// Whoever reviews goes by the label of the token, so that a quorum is as many people as it says. The event keeps both:
/// the token that spoke, and the name that it spoke for.
fn reviewer(caller: &Caller, named: Option<String>) -> Answer<String> {
    let own = if caller.label.is_empty() { caller.token.to_string() } else { caller.label.clone() };
    match named {
        Some(named) if named != own && caller.who != Who::User(Role::Admin) => {
            Err(Problem::forbidden(format!(
                "reviewer: this token reviews as `{}`; only an admin may speak for somebody else, leave it out or use a token with that label",
                shown(&own)
            )))
        }
        Some(named) => Ok(named),
        None => Ok(own),
    }
}

pub(crate) async fn request_review(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<wire::RequestReviewRequest>,
) -> Answer<Response> {
    let gate = gate(request)?;
    let if_rev = header::if_match(&headers)?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let may_weaken = caller.who == Who::User(Role::Admin);
    let job = app.coordinator.request_review(job.id, gate, may_weaken, if_rev, caller.actor()).await?;
    Ok(tagged_with_reviews(&job))
}

fn gate(request: wire::RequestReviewRequest) -> Answer<ReviewGate> {
    let wire::RequestReviewRequest { quorum, reviewers } = request;
    check::at_most("reviewers", reviewers.len(), limits::REVIEWERS)?;
    for (index, name) in reviewers.iter().enumerate() {
        let field = format!("reviewers[{index}]");
        check::name(&field, name, limits::NAME_CHARS)?;
        if reviewers[..index].contains(name) {
            return Err(Problem::field(field, format!("it repeats `{}`; name each once", shown(name))));
        }
    }
    let quorum = quorum.unwrap_or(1);
    let most = if reviewers.is_empty() { limits::REVIEWERS } else { reviewers.len() };
    check::in_range("quorum", quorum, 1, most as u32)?;
    Ok(ReviewGate { quorum, reviewers })
}

pub(crate) async fn runs(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::RunList>> {
    let job = app.visible_job(&caller, path.id()?).await?;
    let runs = app.coordinator.reads().runs(job.id).await?;
    Ok(Json(wire::RunList { runs: runs.iter().map(Into::into).collect() }))
}

pub(crate) async fn explain(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Explanation>> {
    let job = app.visible_job(&caller, path.id()?).await?;
    let (_, explanation) = app.coordinator.explain_for(&caller.sight(), job.id).await?;
    let visible = app.visible_factories(&caller).await?;
    Ok(Json(shapes::explanation(explanation, |verdict| visible.contains(&verdict.factory_id))))
}
