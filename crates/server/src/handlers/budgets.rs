//! Budgets: what a product may spend, what it has spent, and the switch that stops it.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::BudgetView;
use giga_domain::budget::PerPeriod;
use giga_domain::{BudgetChange, BudgetSettings, RequestId, Timestamp, Usd, limits};

use super::{Answer, product_in_path};
use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::request::{JsonBody, OptionalJson, PathText, Query, check, header};
use crate::shapes;

const KEY_HEADER: &str = "idempotency-key";

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::BudgetList>> {
    let budgets = app.coordinator.budgets().await?;
    let own = budgets.iter().filter(|view| caller.products.allows(&view.budget.product));
    Ok(Json(wire::BudgetList { budgets: own.map(shapes::budget).collect() }))
}

pub(crate) async fn get(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    let product = product_in_path(&caller, &path)?;
    Ok(tagged(&app.coordinator.budget(&product).await?))
}

pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::SetBudgetRequest>,
) -> Answer<Response> {
    let product = product_in_path(&caller, &path)?;
    let limit = |field: &str, usd: Option<Usd>| {
        usd.map(|usd| check::dollars(field, usd, check::MOST_PER_BUDGET)).transpose()
    };
    let settings = BudgetSettings {
        limits: PerPeriod {
            day: limit("ceilings.day", request.ceilings.day)?,
            week: limit("ceilings.week", request.ceilings.week)?,
            month: limit("ceilings.month", request.ceilings.month)?,
            total: limit("ceilings.total", request.ceilings.total)?,
        },
        job_cap: limit("jobUsd", request.job_usd)?,
    };
    let if_rev = header::if_match(&headers)?;
    let change = BudgetChange::Set(settings);
    Ok(tagged(&app.coordinator.change_budget(product, change, if_rev, caller.actor()).await?))
}

pub(crate) async fn pause(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    OptionalJson(request): OptionalJson<wire::PauseBudgetRequest>,
) -> Answer<Response> {
    let product = product_in_path(&caller, &path)?;
    check::optional_text("reason", request.reason.as_ref(), limits::REASON_CHARS)?;
    let wire::PauseBudgetRequest { reason, stop_running } = request;
    let (view, stopped) = app.coordinator.pause_budget(product, reason, stop_running, caller.actor()).await?;
    let answer = wire::PauseBudgetAnswer { budget: shapes::budget(&view), stopped: stopped as u64 };
    Ok((header::etag(&header::job_tag(view.budget.rev)), Json(answer)).into_response())
}

pub(crate) async fn resume(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    let product = product_in_path(&caller, &path)?;
    Ok(tagged(&app.coordinator.change_budget(product, BudgetChange::Resume, None, caller.actor()).await?))
}

pub(crate) async fn correct(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::CorrectBudgetRequest>,
) -> Answer<Response> {
    let product = product_in_path(&caller, &path)?;
    let usd = request.usd;
    check::dollars("usd", usd.abs(), check::MOST_PER_BUDGET)?;
    if usd.is_zero() {
        return Err(Problem::field("usd", "it corrects nothing: say by how much, such as 0.42 or -0.42"));
    }
    check::text("reason", &request.reason, limits::REASON_CHARS)?;
    if request.reason.trim().is_empty() {
        return Err(Problem::field("reason", "say why: it stands in the history of the product"));
    }
    let change = BudgetChange::Correct { usd, reason: request.reason };
    let if_rev = header::if_match(&headers)?;
    let key = header::single(&headers, KEY_HEADER)?.map(str::parse::<RequestId>).transpose();
    let key = key.map_err(|error| Problem::field(KEY_HEADER, error.to_string()))?;
    let corrected = app.coordinator.change_budget_once(product, change, if_rev, key, caller.actor());
    Ok(tagged(&corrected.await?))
}

pub(crate) async fn burndown(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
) -> Answer<Json<wire::Burndown>> {
    let product = product_in_path(&caller, &path)?;
    let from = query.id::<Timestamp>("from")?;
    let to = query.id::<Timestamp>("to")?;
    let bucket = query.text("bucket").map(|text| check::duration("bucket", text)).transpose()?;
    let burndown = app.coordinator.burndown(product, from, to, bucket).await?;
    Ok(Json(shapes::burndown(&burndown)))
}

fn tagged(view: &BudgetView) -> Response {
    (header::etag(&header::job_tag(view.budget.rev)), Json(shapes::budget(view))).into_response()
}
