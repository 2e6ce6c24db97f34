//! Worker hosts: what they say of themselves, and what is done with them.
//!
//! A caller limited to products sees the factories that may serve one of them, and changes only those that serve
//! nobody else.

use std::collections::HashSet;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use giga_api::wire;
use giga_domain::factory::{Advertised, FactoryRepo, FactoryScope, Instance};
use giga_domain::{Factory, FactoryId, FactoryState, Timestamp, limits};

use super::{Answer, accounts};
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;
use crate::request::{JsonBody, OptionalJson, PathText, check};
use crate::shapes;

/// Which factories a caller may know of.
pub(crate) enum VisibleFactories {
    Everything,
    Only(HashSet<FactoryId>),
}

impl VisibleFactories {
    pub(crate) fn contains(&self, factory: &FactoryId) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(known) => known.contains(factory),
        }
    }
}

impl App {
    pub(crate) async fn visible_factories(&self, caller: &Caller) -> Answer<VisibleFactories> {
        if caller.products == Products::All {
            return Ok(VisibleFactories::Everything);
        }
        let factories = self.coordinator.reads().factories().await?.into_iter();
        let visible = factories.filter(|f| caller.products.meets(&f.scope.products));
        Ok(VisibleFactories::Only(visible.map(|f| f.id).collect()))
    }

    async fn visible_factory(&self, caller: &Caller, path: &PathText) -> Answer<Factory> {
        let id: FactoryId = path.id()?;
        let factory = self.coordinator.reads().factory(&id).await?;
        let visible = factory.filter(|f| caller.products.meets(&f.scope.products));
        visible.ok_or_else(|| Problem::no_factory(&id))
    }

    /// One that the caller may not only see but change.
    async fn own_factory(&self, caller: &Caller, path: &PathText) -> Answer<Factory> {
        let factory = self.visible_factory(caller, path).await?;
        if caller.scope.covers(&factory.scope.products) {
            return Ok(factory);
        }
        let own = caller.scope.listed();
        Err(Problem::forbidden(format!(
            "factory {} serves other products too; this needs a token for all of them, this one is for {own}",
            factory.id
        )))
    }

    async fn shown_factory(&self, caller: &Caller, factory: Factory) -> Answer<wire::Factory> {
        let mut shown = self.factories_for(caller, vec![factory]).await?;
        shown.pop().ok_or_else(|| Problem::internal("a factory vanished from its own answer"))
    }
}

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::FactoryList>> {
    let factories = app.coordinator.reads().factories().await?;
    Ok(Json(wire::FactoryList { factories: app.factories_for(&caller, factories).await? }))
}

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Factory>> {
    let factory = app.visible_factory(&caller, &path).await?;
    app.shown_factory(&caller, factory).await.map(Json)
}

pub(crate) async fn enroll(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::EnrollRequest>,
) -> Answer<(StatusCode, Json<wire::EnrollAnswer>)> {
    let id: FactoryId = check::id("factoryId", &request.factory_id)?;
    let products = check::products("products", &request.products)?;
    let capabilities = check::capabilities("capabilities", &request.capabilities)?;
    if !caller.scope.covers(&products) {
        let own = caller.scope.listed();
        return Err(Problem::forbidden(format!(
            "products: a factory cannot serve more than the one who enrolls it; this token is for {own}"
        )));
    }
    let scope = FactoryScope { products, capabilities: (!capabilities.is_empty()).then_some(capabilities) };
    let (factory, secret) = app.coordinator.enroll(id, scope, caller.actor()).await?;
    let factory = app.shown_factory(&caller, factory).await?;
    let token = secret.reveal().to_owned();
    Ok((StatusCode::CREATED, Json(wire::EnrollAnswer { factory, token })))
}

pub(crate) async fn leave(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::LeaveRequest>,
) -> Answer<Json<wire::LeaveAnswer>> {
    let id: FactoryId = check::id("factoryId", &request.factory_id)?;
    caller.speaks_for(&id)?;
    let holds = app.coordinator.leave(id, caller.actor()).await? as u64;
    Ok(Json(wire::LeaveAnswer { left: holds == 0, holds }))
}

pub(crate) async fn heartbeat(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::HeartbeatRequest>,
) -> Answer<Json<wire::HeartbeatAnswer>> {
    let id: FactoryId = check::id("factoryId", &request.factory_id)?;
    caller.speaks_for(&id)?;
    app.coordinator.keep_alive(&caller.secret, caller.actor()).await?;
    let take_over = request.take_over;
    let advertised = advertised(request, app.coordinator.store_time())?;
    let answer = if take_over {
        app.coordinator.take_over(id, advertised).await?
    } else {
        app.coordinator.heartbeat(id, advertised).await?
    };
    Ok(Json(wire::HeartbeatAnswer {
        heartbeat_interval_ms: answer.heartbeat_interval.as_millis() as u64,
        stale_after_ms: answer.stale_after.as_millis() as u64,
        delivery: answer.delivery.into(),
        directives: answer.directives.into_iter().map(shapes::directive).collect(),
    }))
}

fn advertised(request: wire::HeartbeatRequest, now: Timestamp) -> Answer<Advertised> {
    check::in_range("seatLimit", request.seat_limit, 1, limits::SEATS)?;
    check::in_range("load", request.load, 0.0, 1_000_000.0)?;
    check::at_most("repos", request.repos.len(), limits::FACTORY_REPOS)?;
    check::at_most("clones", request.clones.len(), limits::FACTORY_CLONES)?;
    for (index, prefix) in request.clones.iter().enumerate() {
        check::text(&format!("clones[{index}]"), prefix, limits::REPO_URL_CHARS)?;
    }
    if let Some(reason) = &request.health_reason {
        check::text("healthReason", reason, limits::NOTE_CHARS)?;
    }
    let instance = request.instance.map(instance).transpose()?;
    let cost = request
        .cost_usd_per_hour
        .map(|usd| check::dollars("costUsdPerHour", usd, check::MOST_PER_RUN))
        .transpose()?;
    Ok(Advertised {
        capabilities: check::capabilities("capabilities", &request.capabilities)?,
        repos: request.repos.into_iter().enumerate().map(repo).collect::<Answer<_>>()?,
        can_clone: request.can_clone,
        clones: request.clones,
        instance,
        seat_limit: request.seat_limit,
        load: request.load,
        health: request.health.into(),
        health_reason: request.health_reason,
        cost_per_hour: cost,
        delivery: request.delivery.map(Into::into),
        accounts: accounts::reported(request.accounts, now)?,
    })
}

/// Since when is the coordinator's to say.
fn instance(instance: wire::FactoryInstance) -> Answer<Instance> {
    check::name("instance.id", &instance.id, limits::NAME_CHARS)?;
    check::name("instance.host", &instance.host, limits::NAME_CHARS)?;
    Ok(Instance { id: instance.id, host: instance.host, since: Timestamp::ZERO })
}

fn repo((index, entry): (usize, wire::RepoEntry)) -> Answer<FactoryRepo> {
    let field = format!("repos[{index}]");
    let (name, url, last_used_at, merges_into) = match entry {
        wire::RepoEntry::Name(name) => (name, None, None, None),
        wire::RepoEntry::Used(repo) => (repo.name, repo.url, repo.last_used_at, repo.merges_into),
    };
    check::optional_text(&format!("{field}.url"), url.as_ref(), limits::REPO_URL_CHARS)?;
    check::name(&field, &name, limits::CONCURRENCY_KEY_CHARS)?;
    let last_used_at =
        last_used_at.map(|text| check::id(&format!("{field}.lastUsedAt"), &text)).transpose()?;
    if let Some(text) = &merges_into {
        check::name(&format!("{field}.mergesInto"), text, limits::NOTE_CHARS)?;
    }
    Ok(FactoryRepo { name, url, last_used_at, merges_into })
}

pub(crate) async fn prune(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::PruneRequest>,
) -> Answer<Json<wire::PruneAnswer>> {
    let idle = check::duration("idle", &request.idle)?;
    if idle < Duration::from_secs(1) {
        return Err(Problem::field("idle", "it must be at least 1s, so that no factory at work is removed"));
    }
    let pruned = app.coordinator.prune(idle, caller.actor()).await?;
    Ok(Json(wire::PruneAnswer { pruned: pruned.factories.iter().map(ToString::to_string).collect() }))
}

pub(crate) async fn drain(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    OptionalJson(request): OptionalJson<wire::DrainRequest>,
) -> Answer<Json<wire::Factory>> {
    let factory = app.own_factory(&caller, &path).await?;
    let state = if request.undo { FactoryState::Active } else { FactoryState::Draining };
    let factory = app.coordinator.set_factory_state(factory.id, state, caller.actor()).await?;
    app.shown_factory(&caller, factory).await.map(Json)
}

pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::RotateAnswer>> {
    let factory = app.own_factory(&caller, &path).await?;
    let secret = app.coordinator.rotate_factory_token(factory.id, caller.actor()).await?;
    Ok(Json(wire::RotateAnswer {
        token: secret.reveal().to_owned(),
        old_valid_for_ms: app.coordinator.rotation_grace().as_millis() as u64,
    }))
}

pub(crate) async fn revoke(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let factory = app.own_factory(&caller, &path).await?;
    app.coordinator.revoke_factory_tokens(factory.id, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn deregister(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let factory = app.own_factory(&caller, &path).await?;
    app.coordinator.deregister(factory.id, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
