//! Counters and histograms of what happens; gauges are read from the fleet when somebody asks.

use giga_domain::{Event, FailReason, Job, Stage, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::dispatch::DispatchMetrics;
use crate::effects::EffectMetrics;
use crate::topics::metrics::TopicMetrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ByProduct {
    product: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ByOutcome {
    outcome: &'static str,
}

#[derive(Debug)]
pub struct Metrics {
    pub(crate) submitted: Family<ByProduct, Counter>,
    pub(crate) assigned: Counter,
    pub(crate) claim_conflicts: Counter,
    pub(crate) budget_conflicts: Counter,
    pub(crate) evictions_asked: Counter,
    pub(crate) evictions_forced: Counter,
    pub(crate) composites: Family<ByOutcome, Counter>,
    pub(crate) lease_expiries: Counter,
    pub(crate) dead_letters: Counter,
    pub(crate) pickup_seconds: Histogram,
    pub(crate) dispatch: DispatchMetrics,
    pub(crate) topics: TopicMetrics,
    pub(crate) effects: EffectMetrics,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let buckets = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
        Self {
            submitted: Family::default(),
            assigned: Counter::default(),
            claim_conflicts: Counter::default(),
            budget_conflicts: Counter::default(),
            evictions_asked: Counter::default(),
            evictions_forced: Counter::default(),
            composites: Family::default(),
            lease_expiries: Counter::default(),
            dead_letters: Counter::default(),
            pickup_seconds: Histogram::new(buckets),
            dispatch: DispatchMetrics::new(),
            topics: TopicMetrics::new(),
            effects: EffectMetrics::default(),
        }
    }

    /// Puts all of them into a registry under their public names.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("jobs_submitted", "Jobs made, per product", self.submitted.clone());
        registry.register("jobs_assigned", "Claims that won a job", self.assigned.clone());
        registry.register("claim_conflicts", "Claims that lost a race", self.claim_conflicts.clone());
        registry.register(
            "claims_lost_to_budgets",
            "Claims that found a budget closed or too small",
            self.budget_conflicts.clone(),
        );
        registry.register(
            "evictions_asked",
            "Holders that this coordinator asked to release their jobs",
            self.evictions_asked.clone(),
        );
        registry.register(
            "evictions_forced",
            "Holders that did not release the job in time and lost it",
            self.evictions_forced.clone(),
        );
        registry.register(
            "composites_ended",
            "Composite jobs whose children are through",
            self.composites.clone(),
        );
        registry.register("lease_expiries", "Leases that expired", self.lease_expiries.clone());
        registry.register("jobs_dead_lettered", "Jobs given up", self.dead_letters.clone());
        registry.register(
            "pickup_seconds",
            "From being ready in the queue to being assigned",
            self.pickup_seconds.clone(),
        );
        self.dispatch.register(registry);
        self.topics.register(registry);
        self.effects.register(registry);
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

    /// Nothing but a composite leaves `blocked` for one of these: its children are through.
    pub(crate) fn sees(&self, event: &Event) {
        let outcome = match (event.from, event.to) {
            (Some(Stage::Blocked), Some(Stage::Review | Stage::Testing | Stage::Shipped)) => "done",
            (Some(Stage::Blocked), Some(Stage::Failed))
                if event.data.get("reason").is_some_and(|r| r == FailReason::ChildFailed.as_str()) =>
            {
                "failed"
            }
            _ => return,
        };
        self.composites.get_or_create(&ByOutcome { outcome }).inc();
    }

    pub(crate) fn lease_ended(&self, job: &Job) {
        if job.stage() == Stage::DeadLetter {
            self.dead_letters.inc();
        }
    }
}
