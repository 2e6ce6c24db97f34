//! Counters and histograms of what happens; gauges are read from the fleet when somebody asks.

use giga_domain::{Job, Stage, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::dispatch::DispatchMetrics;
use crate::topics::metrics::TopicMetrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ByProduct {
    product: String,
}

#[derive(Debug)]
pub struct Metrics {
    pub(crate) submitted: Family<ByProduct, Counter>,
    pub(crate) assigned: Counter,
    pub(crate) claim_conflicts: Counter,
    pub(crate) lease_expiries: Counter,
    pub(crate) dead_letters: Counter,
    pub(crate) pickup_seconds: Histogram,
    pub(crate) dispatch: DispatchMetrics,
    pub(crate) topics: TopicMetrics,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let buckets = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
        Self {
            submitted: Family::default(),
            assigned: Counter::default(),
            claim_conflicts: Counter::default(),
            lease_expiries: Counter::default(),
            dead_letters: Counter::default(),
            pickup_seconds: Histogram::new(buckets),
            dispatch: DispatchMetrics::new(),
            topics: TopicMetrics::new(),
        }
    }

    /// Puts all of them into a registry under their public names.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("jobs_submitted", "Jobs made, per product", self.submitted.clone());
        registry.register("jobs_assigned", "Claims that won a job", self.assigned.clone());
        registry.register("claim_conflicts", "Claims that lost a race", self.claim_conflicts.clone());
        registry.register("lease_expiries", "Leases that ended without a word", self.lease_expiries.clone());
        registry.register("jobs_dead_lettered", "Jobs given up", self.dead_letters.clone());
        registry.register(
            "pickup_seconds",
            "From being ready in the queue to being assigned",
            self.pickup_seconds.clone(),
        );
        self.dispatch.register(registry);
        self.topics.register(registry);
    }

    pub(crate) fn submitted(&self, job: &Job) {
        self.submitted.get_or_create(&ByProduct { product: job.product.to_string() }).inc();
    }

    pub(crate) fn assigned(&self, job: &Job) {
        self.assigned.inc();
        if let Some(lease) = job.lease() {
            self.pickup_seconds.observe(lease.granted_at.since(job.enqueued_at).as_secs_f64());
        }
    }

    /// A job that was on offer is held now.
    pub(crate) fn picked_up(&self, job: &Job, offered_at: Option<Timestamp>) {
        self.assigned(job);
        if let (Some(lease), Some(offered_at)) = (job.lease(), offered_at) {
            self.dispatch.pickup.observe(lease.granted_at.since(offered_at).as_secs_f64());
        }
    }

    pub(crate) fn settled(&self, job: &Job) {
        if job.stage() == Stage::DeadLetter {
            self.dead_letters.inc();
        }
    }
}
