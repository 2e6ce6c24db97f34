//! What a seed decides before anything happens: who takes part, how large, and how bad the weather gets.

mod rules;

pub(crate) use rules::{Rules, micros};

use std::time::Duration;

use giga_domain::{Capability, Delivery, FactoryId};

use crate::prng::Prng;
use crate::turnstile::{Kind, Verdict};

/// Capabilities that factories of a simulation may have. Nobody ever has `has:gold`.
pub(crate) const CAPABILITIES: [&str; 3] = ["os:linux", "has:git", "has:gpu"];
pub(crate) const NOBODY_HAS: &str = "has:gold";
/// In seeds with accounts every factory has both; in the others nobody names one.
pub(crate) const ENGINES: [&str; 2] = ["claude", "codex"];
const ENGINE_CAPABILITIES: [&str; 2] = ["engine:claude", "engine:codex"];

/// How wrong a coordinator's clock may be: by far more than a pickup deadline, which is the store's to judge.
const SKEW_MS: u64 = 3_000;

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub coordinators: usize,
    pub factories: Vec<FactoryPlan>,
    pub jobs: usize,
    pub topic_jobs: usize,
    pub topic_workers: usize,
    /// Each coordinator's clock is wrong by so much.
    pub skews_ms: Vec<i64>,
    pub lease: Duration,
    pub topic_lease: Duration,
    pub pickup: Duration,
    pub heartbeat: Duration,
    /// How long a store keeps trying before its callers hear of it.
    pub patience: Duration,
    pub lead_lease: Duration,
    /// How long the broker has to bring an offer before it is looked for without it.
    pub offer_grace: Duration,
    /// The longest a reconciler sleeps.
    pub sweep: Duration,
    pub storm: Duration,
    pub rates: Rates,
    pub rules: Rules,
}

#[derive(Debug, Clone)]
pub(crate) struct FactoryPlan {
    pub id: FactoryId,
    pub capabilities: Vec<&'static str>,
    pub seats: u32,
    pub delivery: Delivery,
}

impl FactoryPlan {
    /// One that names no engine is taken at its word.
    pub(crate) fn has(&self, wanted: &str) -> bool {
        wanted == "engine:any" || wanted == Capability::SEVERAL_REPOS || self.capabilities.contains(&wanted)
    }
}

/// How often things go wrong, out of a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    pub fail_before: u64,
    pub fail_after: u64,
    pub late_answer: u64,
    /// A single call that takes seconds while others overtake it.
    pub stuck: u64,
    /// Between factories or people and coordinators.
    pub request_lost: u64,
    pub reply_lost: u64,
    pub offer_lost: u64,
    pub offer_twice: u64,
    pub offer_late: u64,
    pub broker_wiped: u64,
    pub coordinator_killed: u64,
    pub coordinator_paused: u64,
    pub factory_killed: u64,
    /// A stream that breaks while both of its ends live on.
    pub stream_cut: u64,
    /// How jobs reach a factory is switched.
    pub switched: u64,
    /// A holder that sleeps past its lease and then goes on as if nothing had happened.
    pub zombie: u64,
    /// Receivers do not take what they are sent, or take it and do not say so.
    pub outside_fails: u64,
    pub outside_hangs: u64,
}

impl Rates {
    pub(crate) fn verdict(&self, kind: Kind, prng: &mut Prng) -> Verdict {
        if kind == Kind::Answer {
            return Verdict::Go;
        }
        let drawn = prng.below(1_000);
        let failing = self.fail_before + self.fail_after;
        if drawn < self.fail_before {
            Verdict::FailBefore
        } else if drawn < failing {
            if kind == Kind::Read { Verdict::FailBefore } else { Verdict::FailAfter }
        } else if drawn < failing + self.late_answer {
            Verdict::GoAndWait
        } else {
            Verdict::Go
        }
    }

    fn drawn(prng: &mut Prng) -> Self {
        // Most seeds have a few kinds of trouble, each of them in earnest; some have none at all.
        let weather = prng.below(10);
        let mut rate = |most: u64| match weather {
            0 => 0,
            1 => most,
            2 => (most * 2).min(700),
            _ if prng.chance(450) => 0,
            _ => prng.between(1, most),
        };
        Self {
            fail_before: rate(60),
            fail_after: rate(60),
            late_answer: rate(120),
            stuck: rate(20),
            request_lost: rate(100),
            reply_lost: rate(150),
            offer_lost: rate(300),
            offer_twice: rate(200),
            offer_late: rate(200),
            broker_wiped: rate(200),
            coordinator_killed: rate(250),
            coordinator_paused: rate(250),
            factory_killed: rate(80),
            stream_cut: rate(200),
            switched: rate(150),
            zombie: rate(150),
            outside_fails: rate(200),
            outside_hangs: rate(60),
        }
    }
}

impl Scenario {
    pub(crate) fn of(prng: &mut Prng) -> Self {
        let coordinators = prng.between(1, 3) as usize;
        let one_mode = prng.chance(500).then(|| *prng.pick(&Delivery::ALL));
        let mut factories: Vec<FactoryPlan> = (1..=prng.between(2, 5))
            .map(|number| {
                let mut capabilities: Vec<&str> = CAPABILITIES.to_vec();
                // The first one can do everything, so that every job but the impossible ones has a place.
                if number > 1 {
                    capabilities.retain(|_| prng.chance(600));
                }
                FactoryPlan {
                    id: format!("f{number}").parse().expect("a letter and a digit make a factory id"),
                    capabilities,
                    seats: prng.between(1, 3) as u32,
                    delivery: one_mode.unwrap_or_else(|| *prng.pick(&Delivery::ALL)),
                }
            })
            .collect();
        let has_jobs = prng.chance(850);
        let has_topics = !has_jobs || prng.chance(350);
        let skewed = prng.chance(400);
        let rules = Rules::drawn(has_jobs, prng);
        if rules.accounts {
            for factory in &mut factories {
                factory.capabilities.extend(ENGINE_CAPABILITIES);
            }
        }
        if rules.preemption && prng.chance(700) {
            // Seats are what jobs have to give each other.
            factories.truncate(2);
            for factory in &mut factories {
                factory.seats = 1;
            }
        }
        Self {
            coordinators,
            factories,
            jobs: if has_jobs { prng.between(3, 14) as usize } else { 0 },
            topic_jobs: if has_topics { prng.between(3, 24) as usize } else { 0 },
            topic_workers: if has_topics { prng.between(1, 3) as usize } else { 0 },
            skews_ms: (0..coordinators)
                .map(|_| if skewed { prng.between(0, 2 * SKEW_MS) as i64 - SKEW_MS as i64 } else { 0 })
                .collect(),
            lease: Duration::from_millis(prng.between(1_000, 4_000)),
            topic_lease: Duration::from_millis(prng.between(1_000, 3_000)),
            pickup: Duration::from_millis(prng.between(250, 1_500)),
            heartbeat: Duration::from_millis(prng.between(250, 1_500)),
            patience: Duration::from_millis(*prng.pick(&[0, 20, 200])),
            lead_lease: Duration::from_millis(prng.between(800, 2_500)),
            offer_grace: Duration::from_millis(prng.between(50, 500)),
            sweep: Duration::from_millis(prng.between(150, 600)),
            storm: Duration::from_millis(prng.between(3_000, 9_000)),
            rates: Rates::drawn(prng),
            rules,
        }
    }

    pub(crate) fn somebody_can(&self, capabilities: &[&str]) -> bool {
        self.factories.iter().any(|factory| capabilities.iter().all(|wanted| factory.has(wanted)))
    }
}
