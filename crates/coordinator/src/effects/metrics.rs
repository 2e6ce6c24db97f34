//! How telling the world outside goes.

use giga_domain::EffectOutcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    target: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct EffectMetrics {
    attempts: Family<Attempt, Counter>,
}

impl EffectMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "effect_attempts",
            "Deliveries to webhooks and trackers, by outcome",
            self.attempts.clone(),
        );
    }

    pub(super) fn count(&self, target: &'static str, outcome: &EffectOutcome) {
        let outcome = match outcome {
            EffectOutcome::Delivered { .. } => "delivered",
            EffectOutcome::Failed { .. } => "failed",
            EffectOutcome::Refused { .. } => "refused",
            EffectOutcome::Postponed { .. } => "postponed",
        };
        self.attempts.get_or_create(&Attempt { target, outcome }).inc();
    }
}
