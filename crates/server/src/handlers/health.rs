//! For machines that watch machines: probes, Prometheus, and the document of the API.
//!
//! Nobody authenticates for probes and the document, so these hold nothing that would help a stranger: what is wrong with
//! the store in its own words goes to the log only.

use std::cmp::Reverse;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::BudgetView;
use giga_domain::topic::TopicStage;
use giga_domain::{Period, Stage};
use giga_ports::StoreError;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Answer;
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;

/// How many products have figures of their own about money.
const PRODUCTS_MEASURED: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProductLabels {
    product: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    product: String,
    period: &'static str,
}

pub(crate) async fn document() -> Response {
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| crate::openapi().to_json().expect("the document has only string keys"));
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

pub(crate) async fn live() -> &'static str {
    "ok\n"
}

pub(crate) async fn ready(State(app): State<App>) -> Response {
    let problem = if app.stop.is_cancelled() {
        Some("the coordinator is shutting down".to_owned())
    } else {
        store_problem(&app).await
    };
    let status = if problem.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(wire::Readiness { ready: problem.is_none(), problem })).into_response()
}

/// The last look at the store. Anybody may ask without a token, so all who wait share the next look.
#[derive(Debug, Default)]
pub(crate) struct StorePing(Mutex<Option<(Instant, Option<String>)>>);

async fn store_problem(app: &App) -> Option<String> {
    let asked_at = Instant::now();
    let mut last = app.store_ping.0.lock().await;
    if let Some((began_at, problem)) = &*last
        && *began_at >= asked_at
    {
        return problem.clone();
    }
    let began_at = Instant::now();
    let problem = ping(app).await;
    *last = Some((began_at, problem.clone()));
    problem
}

async fn ping(app: &App) -> Option<String> {
    let timeout = app.options.ready_timeout;
    let Ok(answer) = tokio::time::timeout(timeout, app.coordinator.reads().ping()).await else {
        tracing::warn!(?timeout, "the store did not answer a ping in time");
        return Some("the store does not answer".to_owned());
    };
    let error = answer.err()?;
    tracing::warn!(%error, "the store is not well");
    Some(match error {
        StoreError::Unavailable { .. } => "the store cannot be reached".to_owned(),
        _ => "the store is broken".to_owned(),
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    product: String,
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FactoryLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TopicLabels {
    product: String,
    topic: String,
    state: &'static str,
}

async fn topic_depths(app: &App) -> Result<Family<TopicLabels, Gauge>, giga_coordinator::Error> {
    let depths = Family::<TopicLabels, Gauge>::default();
    for topic in app.coordinator.topics().overview(|_| true).await?.topics {
        let key = &topic.counts.key;
        for stage in TopicStage::ALL {
            let (product, name) = (key.product.to_string(), key.topic.to_string());
            let labels = TopicLabels { product, topic: name, state: stage.as_str() };
            let count = i64::try_from(topic.counts.count(stage)).unwrap_or(i64::MAX);
            depths.get_or_create(&labels).set(count);
        }
    }
    Ok(depths)
}

/// What products have spent and may spend, of the largest spenders: a fleet may have any number of products.
fn budget_gauges(budgets: &[BudgetView], registry: &mut Registry) {
    // A gauge: a correction takes something back.
    let spent = Family::<ProductLabels, Gauge<f64, AtomicU64>>::default();
    let reserved = Family::<ProductLabels, Gauge<f64, AtomicU64>>::default();
    let left = Family::<ProductLabels, Gauge<f64, AtomicU64>>::default();
    let paused = Family::<ProductLabels, Gauge>::default();
    let limits = Family::<LimitLabels, Gauge<f64, AtomicU64>>::default();
    let mut largest: Vec<&BudgetView> = budgets.iter().collect();
    largest.sort_by_key(|view| Reverse(view.budget.spent_in(Period::Total, view.now).usd));
    for BudgetView { budget, now } in largest.into_iter().take(PRODUCTS_MEASURED) {
        let product = || ProductLabels { product: budget.product.to_string() };
        spent.get_or_create(&product()).set(budget.spent_in(Period::Total, *now).usd.as_f64());
        reserved.get_or_create(&product()).set(budget.reserved.as_f64());
        paused.get_or_create(&product()).set(i64::from(budget.pause_now(*now).is_some()));
        if let Some((usd, _)) = budget.left(*now) {
            left.get_or_create(&product()).set(usd.as_f64());
        }
        for period in Period::ALL {
            if let Some(limit) = budget.settings.limits.of(period) {
                let labels = LimitLabels { product: budget.product.to_string(), period: period.as_str() };
                limits.get_or_create(&labels).set(limit.as_f64());
            }
        }
    }
    registry.register("spend_usd", "What the ledger says was spent, corrections included", spent);
    registry.register("budget_reserved_usd", "Reserved for what is held", reserved);
    registry.register("budget_left_usd", "What is left of the tightest limit", left);
    registry.register("budget_paused", "Whether nothing of the product is started", paused);
    registry.register("budget_ceiling_usd", "Limits by period", limits);
}

/// Everything for a token of all products; else the series of the caller's products.
pub(crate) async fn prometheus(State(app): State<App>, caller: Caller) -> Answer<Response> {
    let text = scrape(&app).await?;
    Ok(openmetrics(if caller.products == Products::All { text } else { cut(&text, &caller.products) }))
}

/// The same for a listener that serves nothing else: who reaches it is the network's business.
pub(crate) async fn metrics_for_the_network(State(app): State<App>) -> Answer<Response> {
    Ok(openmetrics(scrape(&app).await?))
}

fn openmetrics(text: String) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, content_type)], text).into_response()
}

/// The series that are about one of these products, each with what is said about its family.
fn cut(text: &str, products: &Products) -> String {
    let is_seen = |line: &str| {
        let product = line.split_once("product=\"").and_then(|(_, rest)| rest.split_once('"'));
        product.and_then(|(product, _)| product.parse().ok()).is_some_and(|product| products.allows(&product))
    };
    let mut kept = String::new();
    let mut about: Vec<&str> = Vec::new();
    let mut was_about = false;
    for line in text.lines() {
        let is_about = line.starts_with("# ");
        if is_about && !was_about {
            about.clear();
        }
        was_about = is_about;
        if is_about {
            about.push(line);
        } else if is_seen(line) {
            for line in about.drain(..).chain([line]) {
                kept.push_str(line);
                kept.push('\n');
            }
        }
    }
    kept.push_str("# EOF\n");
    kept
}

/// Counters are kept where things happen; gauges are read from the fleet at each scrape.
async fn scrape(app: &App) -> Answer<String> {
    let mut registry = Registry::with_prefix("giga");
    app.coordinator.metrics().register(&mut registry);
    registry.register("http_requests", "Requests by route and status", app.http.requests.clone());
    let stats = app.coordinator.store_stats();
    for (name, help, value) in [
        ("store_commits", "Write transactions that were committed", stats.commits),
        ("store_commands", "Commands that the transactions carried", stats.commands),
        ("store_retries", "Transactions that had to be run again", stats.retries),
    ] {
        registry.register(name, help, ConstCounter::new(value));
    }
    let stats = app.coordinator.topics().store_stats();
    for (name, help, value) in [
        ("topic_store_commits", "Write transactions about topic jobs", stats.commits),
        ("topic_store_commands", "Commands that they carried", stats.commands),
        ("topic_store_retries", "Those that had to be run again", stats.retries),
    ] {
        registry.register(name, help, ConstCounter::new(value));
    }
    let reached = fleet_gauges(app, &mut registry).await;
    if let Err(error) = &reached {
        tracing::warn!(%error, "metrics of the fleet could not be read");
    }
    registry.register("store_up", "Whether the store answered", ConstGauge::new(i64::from(reached.is_ok())));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| Problem::internal(&error.to_string()))?;
    Ok(text)
}

async fn fleet_gauges(app: &App, registry: &mut Registry) -> Result<(), giga_coordinator::Error> {
    let fleet = app.coordinator.fleet_metrics().await?;
    let depth = Family::<QueueLabels, Gauge>::default();
    for product in &fleet.products {
        for stage in Stage::ALL {
            let labels = QueueLabels { product: product.product.to_string(), stage: stage.as_str() };
            depth.get_or_create(&labels).set(product.state.count(stage) as i64);
        }
    }
    registry.register("queue_depth", "Jobs by product and stage", depth);
    let factories = Family::<FactoryLabels, Gauge>::default();
    for (state, count) in [
        ("live", fleet.factories_live),
        ("stale", fleet.factories_stale),
        ("draining", fleet.factories_draining),
    ] {
        factories.get_or_create(&FactoryLabels { state }).set(count as i64);
    }
    registry.register("factories", "Factories; a draining one is also live or stale", factories);
    let accounts = Family::<FactoryLabels, Gauge>::default();
    for (state, count) in fleet.accounts {
        accounts.get_or_create(&FactoryLabels { state: state.as_str() }).set(count as i64);
    }
    registry.register("engine_accounts", "Accounts that engines are signed in with", accounts);
    budget_gauges(&fleet.budgets, registry);
    registry.register("topic_depth", "Topic jobs by state", topic_depths(app).await?);
    let (effects, oldest) = app.coordinator.effects().counts().await?;
    for (name, help, value) in [
        ("effects_pending", "Messages to webhooks and trackers that wait to be delivered", effects.pending),
        ("effects_dead", "Messages to webhooks and trackers that could not be delivered", effects.dead),
        ("effects_oldest_pending_seconds", "How long the longest waiting of it has waited", oldest.as_secs()),
    ] {
        registry.register(name, help, ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)));
    }
    let head = i64::try_from(fleet.feed_head.0).unwrap_or(i64::MAX);
    for (name, help, value) in [
        ("seats", "Seats of live factories", i64::from(fleet.seats)),
        ("seats_used", "Seats that are taken", i64::from(fleet.seats_used)),
        ("feed_head", "The last position of the event feed", head),
        (
            "oldest_queued_seconds",
            "How long the longest waiting job has waited",
            fleet.oldest_queued.map_or(0, |age| age.as_secs() as i64),
        ),
    ] {
        registry.register(name, help, ConstGauge::new(value));
    }
    Ok(())
}
