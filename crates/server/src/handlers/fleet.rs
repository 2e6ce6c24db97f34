//! The state of the fleet, cut to what the caller may see.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{BudgetView, Diverged};
use giga_domain::{Period, Stage};
use giga_ports::store::QueueState;
use tokio::time::Instant;

use super::Answer;
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;
use crate::request::{Query, check, header};
use crate::shapes;

pub(crate) async fn metrics(State(app): State<App>, caller: Caller) -> Answer<Json<wire::FleetMetrics>> {
    let fleet = app.coordinator.fleet_metrics().await?;
    let visible: Vec<_> = fleet.products.iter().filter(|p| caller.products.allows(&p.product)).collect();
    let oldest = visible.iter().filter_map(|p| p.oldest_queued).max();
    let factories = match &caller.products {
        Products::All => {
            let (live, stale) = (fleet.factories_live as u64, fleet.factories_stale as u64);
            let draining = fleet.factories_draining as u64;
            utilised(live, stale, draining, fleet.seats, fleet.seats_used)
        }
        Products::Only(_) => {
            let all = app.coordinator.reads().factories().await?;
            let seen = app.factories_for(&caller, all).await?;
            let live = seen.iter().filter(|f| f.live).count() as u64;
            let draining = seen.iter().filter(|f| f.state == wire::FactoryState::Draining).count() as u64;
            let seats = seen.iter().filter(|f| f.live).map(|f| f.seat_limit).sum();
            let used = seen.iter().map(|f| f.seats_used).sum();
            utilised(live, seen.len() as u64 - live, draining, seats, used)
        }
    };
    let stats = app.coordinator.store_stats();
    Ok(Json(wire::FleetMetrics {
        products: visible
            .into_iter()
            .map(|depth| wire::ProductMetrics {
                product_id: depth.product.to_string(),
                by_stage: Stage::ALL.map(|s| (s.into(), depth.state.count(s))).into(),
                budget: fleet.budgets.iter().find(|view| view.budget.product == depth.product).map(spending),
            })
            .collect(),
        factories,
        oldest_queued_ms: oldest.map(|age| age.as_millis() as u64),
        feed_head: fleet.feed_head.0,
        store: wire::StoreMetrics {
            commits: stats.commits,
            commands: stats.commands,
            retries: stats.retries,
        },
    }))
}

fn utilised(live: u64, stale: u64, draining: u64, seats: u32, seats_used: u32) -> wire::FactoryMetrics {
    let utilisation = if seats == 0 { 0.0 } else { (f64::from(seats_used) / f64::from(seats)).min(1.0) };
    wire::FactoryMetrics { live, stale, draining, seats, seats_used, utilisation }
}

pub(crate) async fn shadow(State(app): State<App>, caller: Caller) -> Answer<Json<wire::Shadow>> {
    let report = app.coordinator.dispatch().shadow_report();
    let visible = |diverged: &Diverged| match &diverged.product {
        Some(product) => caller.products.allows(product),
        None => caller.products == Products::All,
    };
    Ok(Json(wire::Shadow {
        agreements: report.agreements,
        divergences: report.divergences,
        recent: report.recent.into_iter().filter(visible).map(shapes::divergence).collect(),
    }))
}

fn spending(view: &BudgetView) -> wire::ProductSpending {
    wire::ProductSpending {
        spent_usd: view.budget.spent_in(Period::Total, view.now).usd,
        reserved_usd: view.budget.reserved,
        left_usd: view.budget.left(view.now).map(|(left, _)| left),
        paused: view.budget.pause_now(view.now).is_some(),
    }
}

pub(crate) async fn alerts(State(app): State<App>, caller: Caller) -> Answer<Json<wire::AlertList>> {
    let alerts = app.coordinator.alerts_for(&caller.sight()).await?;
    Ok(Json(wire::AlertList { alerts: alerts.into_iter().map(shapes::alert).collect() }))
}

pub(crate) async fn queue_state(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    let wait = wait(&app, &query)?;
    let mut listener = app.feed_watch.listen();
    let mut budgets = app.coordinator.budgets_changed();
    let mut state = summed(&app, &caller.products).await?;
    if !header::none_match(&headers, &tag(&state))? {
        return Ok(found(&state));
    }
    let ends = Instant::now() + wait;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(ends) => return Ok(unchanged(&state)),
            () = app.stop.cancelled() => return Ok(unchanged(&state)),
            // The queue is the same, but more of it may be had.
            Ok(()) = budgets.changed() => return Ok(unchanged(&state)),
            grown = listener.grown() => {
                let states = app.feed_watch.queue_states(grown?).await?;
                let visible = states.iter().filter(|(product, _)| caller.products.allows(product));
                state = sum(visible.map(|(_, state)| *state));
                if !header::none_match(&headers, &tag(&state))? {
                    return Ok(found(&state));
                }
            }
        }
    }
}

pub(crate) fn wait(app: &App, query: &Query) -> Answer<Duration> {
    let Some(text) = query.text("wait") else { return Ok(Duration::ZERO) };
    let wait = check::duration("wait", text)?;
    if wait > app.options.longest_wait {
        let most = app.options.longest_wait.as_secs();
        return Err(Problem::field("wait", format!("it may be at most {most}s; ask again after that")));
    }
    Ok(wait)
}

/// One point read per product that the caller is limited to.
async fn summed(app: &App, products: &Products) -> Answer<wire::QueueState> {
    let reads = app.coordinator.reads();
    match products {
        Products::All => Ok(sum(reads.queue_states().await?.into_iter().map(|(_, state)| state))),
        Products::Only(own) => {
            let mut states = Vec::with_capacity(own.len());
            for product in own {
                states.push(reads.queue_state(product).await?);
            }
            Ok(sum(states.into_iter()))
        }
    }
}

/// Versions only rise, so their sum changes whenever one of them does.
fn sum(states: impl Iterator<Item = QueueState>) -> wire::QueueState {
    let none = wire::QueueState { version: 0, pending_count: 0 };
    states.fold(none, |total, state| wire::QueueState {
        version: total.version + state.version,
        pending_count: total.pending_count + state.count(Stage::Queued),
    })
}

fn tag(state: &wire::QueueState) -> String {
    format!("\"queue-{}\"", state.version)
}

fn found(state: &wire::QueueState) -> Response {
    (header::etag(&tag(state)), Json(state.clone())).into_response()
}

fn unchanged(state: &wire::QueueState) -> Response {
    (StatusCode::NOT_MODIFIED, header::etag(&tag(state))).into_response()
}
