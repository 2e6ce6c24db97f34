//! What the dispatcher counts and measures.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::metrics::{SECONDS, metrics};

metrics! {
    pub(crate) struct DispatchMetrics {
        leader: Gauge, "dispatch_leader", "1 where this coordinator dispatches";
        term: Gauge, "dispatch_term", "The last term that this coordinator led in";
        streams: Gauge, "factory_streams", "Factory streams open here";
        offers: Counter, "offers", "Offers made to factories";
        reoffers: Counter, "reoffers", "Offers of jobs that were offered before";
        pickup_expiries: Counter, "pickup_expiries", "Offers that nobody picked up in time and that were made again";
        lag: Histogram = Histogram::new(SECONDS), "dispatch_lag_seconds", "From being ready in the queue to being offered";
        pickup: Histogram = Histogram::new(SECONDS), "offer_pickup_seconds", "From being offered to being claimed for the factory";
        undelivered: Counter, "grants_undelivered", "Jobs claimed for a stream that was gone, and released";
        offers_age_ms: Gauge, "outbox_age_ms", "How long the oldest unsent offer has waited, 0 for none; known by the leader";
        agreements: Counter, "shadow_agreements", "Claims where the dispatcher would have sent them; known by the leader";
        divergences: Counter, "shadow_divergences", "Claims elsewhere than where the dispatcher would have sent them";
        shadow_lag: Histogram = Histogram::new(SECONDS), "shadow_lag_seconds", "How long the broker takes for an offer";
    }
}
