//! Counters of topics. Kept where things happen, per call and not per job, because thousands of jobs pass each second.

use giga_domain::Timestamp;
use giga_domain::topic::{Outcome, TopicKey};
use giga_ports::topics::{Enqueued, Settle, Settled, TopicClaim};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::Dealt;
use crate::metrics::metrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ByTopic {
    product: String,
    topic: String,
}

impl ByTopic {
    fn of(key: &TopicKey) -> Self {
        Self { product: key.product.to_string(), topic: key.topic.to_string() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ByOutcome {
    outcome: &'static str,
}

const SIZES: [f64; 8] = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// Finer below: most topic jobs leave within milliseconds.
const SECONDS: [f64; 13] =
    [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 100.0, 1000.0];

metrics! {
    pub(crate) struct TopicMetrics {
        enqueued: Family<ByTopic, Counter>, "topic_jobs_enqueued", "Topic jobs made";
        claimed: Family<ByTopic, Counter>, "topic_jobs_claimed", "Topic jobs claimed for workers";
        settled: Family<ByOutcome, Counter>, "topic_jobs_settled", "Final reports of workers, by outcome";
        dead: Family<ByTopic, Counter>, "topic_jobs_dead", "Topic jobs given up";
        expiries: Counter, "topic_lease_expiries", "Leases that expired";
        claim_jobs: Histogram = Histogram::new(SIZES), "topic_claim_jobs", "Jobs per claim";
        report_jobs: Histogram = Histogram::new(SIZES), "topic_report_jobs", "Results per report";
        pickup_seconds: Histogram = Histogram::new(SECONDS), "topic_pickup_seconds",
            "From enqueue to leaving for a worker, first attempts; waiting for a set time counts too";
        streams: Gauge, "topic_streams", "Streams of workers that are open here";
    }
}

impl TopicMetrics {
    pub(super) fn enqueued(&self, keys: &[TopicKey], enqueued: &[Enqueued]) {
        let made = |answer: &Enqueued| matches!(answer, Enqueued::Created { .. });
        let mut rest: Vec<_> = keys.iter().zip(enqueued).filter(|(_, answer)| made(answer)).collect();
        while let Some(&(key, _)) = rest.first() {
            let before = rest.len();
            rest.retain(|(other, _)| *other != key);
            self.enqueued.get_or_create(&ByTopic::of(key)).inc_by((before - rest.len()) as u64);
        }
    }

    pub(super) fn claimed(&self, claim: &TopicClaim, count: usize) {
        self.claim_jobs.observe(count as f64);
        if count > 0 {
            self.claimed.get_or_create(&ByTopic::of(&claim.key)).inc_by(count as u64);
        }
    }

    pub(super) fn picked_up(&self, dealt: &[Dealt], now: Timestamp) {
        for dealt in dealt.iter().filter(|dealt| dealt.job.epoch.0 == 1) {
            self.pickup_seconds.observe(now.since(dealt.job.created_at).as_secs_f64());
        }
    }

    pub(super) fn settled(&self, results: &[Settle], settled: &[Settled]) {
        self.report_jobs.observe(results.len() as f64);
        let mut counts = [("succeeded", 0), ("failed", 0), ("released", 0), ("fenced", 0), ("unknown", 0)];
        for (result, settled) in results.iter().zip(settled) {
            let index = match (settled, &result.outcome) {
                (Settled::Applied { repeated: true, .. }, _) => continue,
                (Settled::Applied { .. }, Outcome::Success) => 0,
                (Settled::Applied { .. }, Outcome::Failure { .. }) => 1,
                (Settled::Applied { .. }, Outcome::Release) => 2,
                (Settled::Fenced, _) => 3,
                (Settled::Unknown, _) => 4,
            };
            counts[index].1 += 1;
        }
        for (outcome, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            self.settled.get_or_create(&ByOutcome { outcome }).inc_by(count);
        }
    }

    pub(super) fn died(&self, key: &TopicKey) {
        self.dead.get_or_create(&ByTopic::of(key)).inc();
    }
}
