//! What the dispatcher counts and measures.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

const SECONDS: [f64; 13] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];

#[derive(Debug)]
pub(crate) struct DispatchMetrics {
    pub(crate) leader: Gauge,
    pub(crate) term: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) offers: Counter,
    pub(crate) reoffers: Counter,
    pub(crate) pickup_expiries: Counter,
    pub(crate) lag: Histogram,
    pub(crate) pickup: Histogram,
    pub(crate) undelivered: Counter,
    pub(crate) offers_age_ms: Gauge,
    pub(crate) agreements: Counter,
    pub(crate) divergences: Counter,
    pub(crate) shadow_lag: Histogram,
}

impl DispatchMetrics {
    pub(crate) fn new() -> Self {
        Self {
            leader: Gauge::default(),
            term: Gauge::default(),
            streams: Gauge::default(),
            offers: Counter::default(),
            reoffers: Counter::default(),
            pickup_expiries: Counter::default(),
            lag: Histogram::new(SECONDS),
            pickup: Histogram::new(SECONDS),
            undelivered: Counter::default(),
            offers_age_ms: Gauge::default(),
            agreements: Counter::default(),
            divergences: Counter::default(),
            shadow_lag: Histogram::new(SECONDS),
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("dispatch_leader", "1 where this coordinator dispatches", self.leader.clone());
        registry.register("dispatch_term", "The last term that this coordinator led in", self.term.clone());
        registry.register("factory_streams", "Factory streams open here", self.streams.clone());
        registry.register("offers", "Offers made to factories", self.offers.clone());
        registry.register("reoffers", "Offers of jobs that were offered before", self.reoffers.clone());
        registry.register(
            "pickup_expiries",
            "Offers that nobody picked up in time and that were made again",
            self.pickup_expiries.clone(),
        );
        registry.register(
            "dispatch_lag_seconds",
            "From being ready in the queue to being offered",
            self.lag.clone(),
        );
        registry.register(
            "offer_pickup_seconds",
            "From being offered to being claimed for the factory",
            self.pickup.clone(),
        );
        registry.register(
            "grants_undelivered",
            "Jobs claimed for a stream that was gone, and released",
            self.undelivered.clone(),
        );
        registry.register(
            "outbox_age_ms",
            "How long the oldest unsent offer has waited, 0 for none; known by the leader",
            self.offers_age_ms.clone(),
        );
        registry.register(
            "shadow_agreements",
            "Claims where the dispatcher would have sent them; known by the leader",
            self.agreements.clone(),
        );
        registry.register(
            "shadow_divergences",
            "Claims elsewhere than where the dispatcher would have sent them",
            self.divergences.clone(),
        );
        registry.register(
            "shadow_lag_seconds",
            "How long the broker takes for an offer",
            self.shadow_lag.clone(),
        );
    }
}
