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

pub(crate) const SECONDS: [f64; 13] =
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];

/// A struct of metrics: for each its field, its public name and its help. `= …` where it is not its default.
macro_rules! metrics {
    ($(#[$about:meta])* $vis:vis struct $struct:ident {
        $($field:ident: $kind:ty $(= $made:expr)?, $name:literal, $help:literal;)*
    }) => {
        $(#[$about])*
        #[derive(Debug)]
        $vis struct $struct { $(pub(crate) $field: $kind,)* }

        impl Default for $struct {
            fn default() -> Self {
                Self { $($field: $crate::metrics::metrics!(@made $kind $(, $made)?),)* }
            }
        }

        impl $struct {
            /// Puts all of them into a registry under their public names.
            pub(crate) fn register(&self, registry: &mut ::prometheus_client::registry::Registry) {
                $(registry.register($name, $help, self.$field.clone());)*
            }
        }
    };
    (@made $kind:ty) => { <$kind>::default() };
    (@made $kind:ty, $made:expr) => { $made };
}
pub(crate) use metrics;

metrics! {
    pub(crate) struct JobMetrics {
        submitted: Family<ByProduct, Counter>, "jobs_submitted", "Jobs made, per product";
        assigned: Counter, "jobs_assigned", "Claims that won a job";
        claim_conflicts: Counter, "claim_conflicts", "Claims that lost a race";
        budget_conflicts: Counter, "claims_lost_to_budgets", "Claims that found a budget closed or too small";
        evictions_asked: Counter, "evictions_asked", "Holders that this coordinator asked to release their jobs";
        evictions_forced: Counter, "evictions_forced", "Holders that did not release the job in time and lost it";
        composites: Family<ByOutcome, Counter>, "composites_ended", "Composite jobs whose children are through";
        lease_expiries: Counter, "lease_expiries", "Leases that expired";
        dead_letters: Counter, "jobs_dead_lettered", "Jobs given up";
        pickup_seconds: Histogram = Histogram::new(SECONDS), "pickup_seconds", "From being ready in the queue to being assigned";
    }
}

#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) jobs: JobMetrics,
    pub(crate) dispatch: DispatchMetrics,
    pub(crate) topics: TopicMetrics,
    pub(crate) effects: EffectMetrics,
}

impl Metrics {
    /// Puts all of them into a registry under their public names.
    pub fn register(&self, registry: &mut Registry) {
        self.jobs.register(registry);
        self.dispatch.register(registry);
        self.topics.register(registry);
        self.effects.register(registry);
    }

    pub(crate) fn submitted(&self, job: &Job) {
        self.jobs.submitted.get_or_create(&ByProduct { product: job.product.to_string() }).inc();
    }

    pub(crate) fn assigned(&self, job: &Job) {
        self.jobs.assigned.inc();
        if let Some(lease) = job.lease() {
            self.jobs.pickup_seconds.observe(lease.granted_at.since(job.enqueued_at).as_secs_f64());
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
        self.jobs.composites.get_or_create(&ByOutcome { outcome }).inc();
    }

    pub(crate) fn lease_ended(&self, job: &Job) {
        if job.stage() == Stage::DeadLetter {
            self.jobs.dead_letters.inc();
        }
    }
}
