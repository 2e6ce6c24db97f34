//! Pools: set, looked at, joined.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{PoolState, PoolView};
use giga_domain::token::Lifetime;
use giga_domain::{FactoryId, Member, PoolName, PoolSettings};

use super::Answer;
use crate::app::App;
use crate::caller::{Caller, Who};
use crate::problem::Problem;
use crate::request::{JsonBody, PathText, check, header};

/// Of credentials that people hand out, where they do not say.
const CREDENTIAL_LIFE: Duration = Duration::from_hours(30 * 24);

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::PoolList>> {
    let sight = caller.sight();
    let all = app.coordinator.pools().all().await?;
    let seen = all.into_iter().filter(|view| sight.meets(&view.pool.settings.products));
    Ok(Json(wire::PoolList { pools: seen.map(shown).collect() }))
}

pub(crate) async fn get(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    let view = app.coordinator.pools().one(&name(&path)?).await?;
    if !caller.sight().meets(&view.pool.settings.products) {
        return Err(Problem::new(
            crate::problem::Code::NotFound,
            format!("there is no pool {}", view.pool.name),
        ));
    }
    Ok(tagged(view))
}

pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::PoolSettings>,
) -> Answer<Response> {
    let (name, settings) = (name(&path)?, settings(request)?);
    let if_rev = header::if_match(&headers)?;
    app.coordinator.pools().set(name.clone(), settings, if_rev, caller.actor()).await?;
    Ok(tagged(app.coordinator.pools().one(&name).await?))
}

pub(crate) async fn remove(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    app.coordinator.pools().remove(name(&path)?, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn pause(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    set_paused(&app, &caller, &path, true).await
}

pub(crate) async fn resume(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    set_paused(&app, &caller, &path, false).await
}

async fn set_paused(app: &App, caller: &Caller, path: &PathText, paused: bool) -> Answer<Response> {
    let name = name(path)?;
    let pool = app.coordinator.pools().one(&name).await?.pool;
    let settings = PoolSettings { paused, ..pool.settings };
    // Whoever changes it at the same time wins, and this is refused.
    app.coordinator.pools().set(name.clone(), settings, Some(pool.rev), caller.actor()).await?;
    Ok(tagged(app.coordinator.pools().one(&name).await?))
}

pub(crate) async fn credential(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::PoolCredentialRequest>,
) -> Answer<(StatusCode, Json<wire::PoolCredential>)> {
    let name = name(&path)?;
    let lifetime = match &request.expires {
        Some(text) => text.parse().map_err(|error: giga_domain::token::LifetimeError| {
            Problem::field("expires", error.to_string())
        })?,
        None => Lifetime::For(CREDENTIAL_LIFE),
    };
    let pools = app.coordinator.pools();
    let (record, token) = match request.kind {
        wire::PoolCredentialKind::Enroll => pools.new_credential(&name, lifetime, caller.actor()).await?,
        wire::PoolCredentialKind::Scaler => pools.new_scaler(&name, lifetime, caller.actor()).await?,
    };
    let expires_at = record.expires_at.map(|at| at.to_string());
    let credential = wire::PoolCredential { id: record.id.to_string(), token, expires_at };
    Ok((StatusCode::CREATED, Json(credential)))
}

pub(crate) async fn enroll(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::PoolEnrollRequest>,
) -> Answer<(StatusCode, Json<wire::PoolEnrollAnswer>)> {
    let name = name(&path)?;
    let Who::Pool { pool, factory: bound_to } = &caller.who else {
        return Err(Problem::internal("the guard let another token through"));
    };
    if *pool != name {
        return Err(Problem::forbidden(format!("this credential is for pool {pool}, not for {name}")));
    }
    let given =
        request.factory_id.as_deref().map(|id| check::id::<FactoryId>("factoryId", id)).transpose()?;
    let pools = app.coordinator.pools();
    let (factory, secret) = pools.enroll(&name, bound_to.as_ref(), given, caller.token.clone()).await?;
    let answer =
        wire::PoolEnrollAnswer { factory_id: factory.id.to_string(), token: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(answer)))
}

fn name(path: &PathText) -> Answer<PoolName> {
    check::id("name", path.text("name")?)
}

fn settings(request: wire::PoolSettings) -> Answer<PoolSettings> {
    let cost = request.cost_usd_per_hour;
    let cost = cost.map(|usd| check::dollars("costUsdPerHour", usd, check::MOST_PER_RUN)).transpose()?;
    Ok(PoolSettings {
        driver: request.driver.into(),
        command: request.command,
        image: request.image,
        namespace: request.namespace,
        args: request.args,
        url: request.url,
        capabilities: check::capabilities("capabilities", &request.capabilities)?,
        products: check::products("products", &request.products)?,
        seats: request.seats,
        min: request.min,
        max: request.max,
        warm: request.warm,
        idle: Duration::from_millis(request.idle_ms),
        start_timeout: Duration::from_millis(request.start_timeout_ms),
        cost_per_hour: cost,
        charge_to: request.charge_to.as_deref().map(|id| check::id("chargeTo", id)).transpose()?,
        paused: request.paused,
    })
}

fn tagged(view: PoolView) -> Response {
    (header::etag(&header::job_tag(view.pool.rev)), Json(shown(view))).into_response()
}

fn shown(view: PoolView) -> wire::Pool {
    let (state, summary) = status(&view);
    let record = &view.pool.record;
    let failure = record.failure.clone().map(|reason| wire::PoolFailure {
        in_a_row: record.failed_in_a_row,
        reason,
        retry_at: record.retry_at.map(|at| at.to_string()),
    });
    wire::Pool {
        name: view.pool.name.to_string(),
        settings: (&view.pool.settings).into(),
        rev: view.pool.rev.0,
        state,
        summary,
        target: view.target,
        waiting: view.waiting,
        start_ms: record.start_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        starts: record.starts,
        failure,
        cost_usd: view.cost,
        members: view
            .members
            .iter()
            .map(|(member, activity)| shown_member(member, activity.as_ref()))
            .collect(),
    }
}

fn shown_member(member: &Member, activity: Option<&giga_coordinator::MemberActivity>) -> wire::PoolMember {
    wire::PoolMember {
        factory_id: member.factory.to_string(),
        state: member.state.into(),
        since: member.since.to_string(),
        ordered_at: member.ordered_at.to_string(),
        enrolled_at: member.enrolled_at.map(|at| at.to_string()),
        handle: member.handle.clone(),
        reason: member.reason.clone(),
        jobs: activity.map_or(0, |activity| activity.jobs),
        live: activity.is_some_and(|activity| activity.live),
        draining: activity.is_some_and(|activity| activity.draining),
        idle_since: activity.and_then(|activity| activity.idle_since).map(|at| at.to_string()),
    }
}

fn status(view: &PoolView) -> (wire::PoolStatus, String) {
    use wire::PoolStatus as Status;
    let (there, max) = (view.members.len(), view.pool.settings.max);
    let waiting = view.waiting;
    match &view.state {
        PoolState::Quiet => (Status::Quiet, "nothing is wanted of it".to_owned()),
        PoolState::Working => (Status::Working, format!("{there} of {max} factories")),
        PoolState::Starting(count) => {
            let about = giga_scheduler::scale::about(view.pool.start_time());
            let about = about.map(|about| format!(", {about} each")).unwrap_or_default();
            (Status::Starting, format!("{count} starting{about}; {there} of {max} factories"))
        }
        PoolState::Full => {
            (Status::Full, format!("it has all {max} factories that it may have; {waiting} jobs wait"))
        }
        PoolState::Paused => (Status::Paused, "paused: it starts nothing".to_owned()),
        PoolState::BackingOff { until, why } => {
            (Status::BackingOff, format!("the last start failed: {why}; trying again at {until}"))
        }
        PoolState::OutOfBudget(product) => {
            (Status::OutOfBudget, format!("the budget of {product}, which pays its hours, is closed"))
        }
    }
}
