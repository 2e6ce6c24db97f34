//! Questions of jobs, answers and messages of people. A job's own token asks and listens; it never answers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::{Ask, JobId, QuestionKind, limits};

use super::{Answer, tagged};
use crate::app::App;
use crate::caller::Caller;
use crate::handlers::fleet::wait;
use crate::handlers::holders::holder;
use crate::problem::Problem;
use crate::request::{JsonBody, PathText, Query, check};

/// Places that one call may name.
const MOST_SEQS: usize = 100;

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
) -> Answer<Json<wire::Conversation>> {
    let after = query.number("after")?.unwrap_or(0);
    let wait = wait(&app, &query)?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let talk = app.coordinator.conversation(job.id, after, wait).await?;
    Ok(Json((&talk).into()))
}

pub(crate) async fn ask(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::AskRequest>,
) -> Answer<Response> {
    let id = own_job(&caller, path.id()?)?;
    let holder = holder(&caller, request.lease_epoch)?;
    let ask = question(request)?;
    match app.coordinator.ask(id, holder, ask).await {
        Ok((_, question)) => {
            let question = wire::Question::from(&question);
            let status = if question.state == wire::QuestionState::Open {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((status, Json(question)).into_response())
        }
        Err(error) => Err(app.refused(&caller, id, error).await),
    }
}

fn question(request: wire::AskRequest) -> Answer<Ask> {
    let wire::AskRequest { lease_epoch: _, text, kind, options, default, key, deadline } = request;
    let words = |field: &str, given: &str, most| {
        if given.trim().is_empty() {
            return Err(Problem::field(field, "it is empty: write what people should read"));
        }
        check::text(field, given, most)
    };
    words("text", &text, limits::QUESTION_CHARS)?;
    check::at_most("options", options.len(), limits::QUESTION_OPTIONS)?;
    for (at, option) in options.iter().enumerate() {
        let field = format!("options[{at}]");
        check::name(&field, option, limits::QUESTION_OPTION_CHARS)?;
        if options[..at].contains(option) {
            return Err(Problem::field(field, "it stands there twice; name each option once"));
        }
    }
    if let Some(default) = &default {
        words("default", default, limits::QUESTION_CHARS)?;
    }
    if kind == wire::QuestionKind::Permission {
        if options.is_empty() {
            return Err(Problem::field("options", "a permission needs options, such as allow and reject"));
        }
        if default.as_ref().is_some_and(|default| !options.contains(default)) {
            return Err(Problem::field("default", format!("it must be one of {}", options.join(", "))));
        }
    }
    if let Some(key) = &key {
        check::name("key", key, limits::QUESTION_KEY_CHARS)?;
    }
    let deadline = deadline.map(|text| check::duration("deadline", &text)).transpose()?;
    Ok(Ask { kind: QuestionKind::from(kind), key, text, options, default, deadline })
}

pub(crate) async fn delivered(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::DeliveredRequest>,
) -> Answer<StatusCode> {
    let id = own_job(&caller, path.id()?)?;
    check::at_most("seqs", request.seqs.len(), MOST_SEQS)?;
    let holder = holder(&caller, request.lease_epoch)?;
    match app.coordinator.delivered(id, holder, request.seqs).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(app.refused(&caller, id, error).await),
    }
}

pub(crate) async fn answer(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::AnswerRequest>,
) -> Answer<Response> {
    let wire::AnswerRequest { question, answer } = request;
    if answer.trim().is_empty() {
        return Err(Problem::field("answer", "it is empty: write an answer, or one of the options"));
    }
    check::text("answer", &answer, limits::QUESTION_CHARS)?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let job = app.coordinator.answer(job.id, question, answer, name_of(&caller), caller.actor()).await?;
    Ok(tagged(&job))
}

pub(crate) async fn say(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::SayRequest>,
) -> Answer<Response> {
    let wire::SayRequest { text, request_id } = request;
    if text.trim().is_empty() {
        return Err(Problem::field("text", "it is empty: write what the engine should read"));
    }
    check::text("text", &text, limits::MESSAGE_CHARS)?;
    let request_id = request_id.map(|id| check::id("requestId", &id)).transpose()?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let job = app.coordinator.say(job.id, request_id, text, name_of(&caller), caller.actor()).await?;
    Ok(tagged(&job))
}

/// A job token speaks for its own job and no other, whoever holds that.
fn own_job(caller: &Caller, job: JobId) -> Answer<JobId> {
    if caller.is_kept_from(job) { Err(Problem::no_job(job)) } else { Ok(job) }
}

/// People go by the label of their token, as in reviews.
fn name_of(caller: &Caller) -> String {
    if caller.label.is_empty() { caller.token.to_string() } else { caller.label.clone() }
}
