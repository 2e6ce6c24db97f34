//! How telling the world outside goes.

use giga_domain::EffectOutcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::metrics::metrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Attempt {
    target: &'static str,
    outcome: &'static str,
}

metrics! {
    pub(crate) struct EffectMetrics {
        attempts: Family<Attempt, Counter>, "effect_attempts", "Deliveries to webhooks and trackers, by outcome";
    }
}

impl EffectMetrics {
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
