//! What makes one factory better than another for a job, term by term.
//!
//! `total = w1·capabilityFit + w2·affinity + w3/(1+load) + w4·costFit + w5·health + w6·engineFit − w7·starvation(age)`
//!
//! This module never decides feasibility and knows neither queue nor order. Every formula uses only operations that
//! IEEE 754 defines to the bit (no `ln`, no `exp`), so a plan is the same on every machine.

use std::time::Duration;

use giga_domain::{Health, PerTerm, ScoreTerm, Timestamp, Usd, Weights};
use serde::Serialize;

use crate::FactoryView;

/// Each the weighted contribution to the total; starvation is zero or negative.
pub type Terms = PerTerm<f64>;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    pub total: f64,
    pub terms: Terms,
}

impl From<Terms> for Score {
    fn from(terms: Terms) -> Self {
        Self { total: rank(&terms) + terms[ScoreTerm::Starvation], terms }
    }
}

/// All that does not change while seats fill.
pub(crate) fn fixed(terms: &Terms) -> f64 {
    let fixed = terms.iter().filter(|(term, _)| !matches!(term, ScoreTerm::Load | ScoreTerm::Starvation));
    fixed.fold(0.0, |sum, (_, value)| sum + value)
}

/// What factories are ranked by: starvation is the same on each of them.
pub(crate) fn rank(terms: &Terms) -> f64 {
    fixed(terms) + terms[ScoreTerm::Load]
}

/// A factory as a place for jobs of one kind: what its terms are computed from.
pub(crate) struct Place<'a> {
    pub(crate) factory: &'a FactoryView,
    /// The rarity of the capabilities that the job needs, and of those that the factory offers.
    pub(crate) rarity: (f64, f64),
    pub(crate) affinity: f64,
    pub(crate) idleness: f64,
    /// What the dearest factory of the fleet costs.
    pub(crate) dearest: Usd,
    /// How many engines the job would rather have than the one that is open there.
    pub(crate) passed_over: usize,
}

impl Place<'_> {
    /// Starvation is zero here: whoever knows the job's age adds it.
    pub(crate) fn terms(&self, weights: &Weights) -> Terms {
        Terms::of(|term| weights[term] * self.unweighted(term))
    }

    fn unweighted(&self, term: ScoreTerm) -> f64 {
        match term {
            ScoreTerm::CapabilityFit => capability_fit(self.rarity.0, self.rarity.1),
            ScoreTerm::Affinity => self.affinity,
            ScoreTerm::Load => self.idleness,
            ScoreTerm::CostFit => cost_fit(self.factory.cost_per_hour, self.dearest),
            ScoreTerm::Health => health(self.factory.health),
            ScoreTerm::EngineFit => engine_fit(self.passed_over),
            ScoreTerm::Starvation => 0.0,
        }
    }
}

/// Affinity is the sum of these three: 1 where the job itself last ran in a repository that was just used.
const REPO_PRESENT: f64 = 0.3;
const REPO_RECENTLY_USED: f64 = 0.3;
pub(crate) const RAN_HERE: f64 = 0.4;
const WARM_FOR: Duration = Duration::from_hours(24);

/// The warmth of a repository that is at hand; recent use fades linearly over a day.
pub(crate) fn repo_warmth(last_used_at: Option<Timestamp>, now: Timestamp) -> f64 {
    let recent = last_used_at.map_or(0.0, |used| faded(now.since(used), WARM_FOR));
    REPO_PRESENT + REPO_RECENTLY_USED * recent
}

/// 1 for a job that just arrived, 0 from an age of `after` on.
pub(crate) fn starvation(age: Duration, after: Duration) -> f64 {
    faded(age, after)
}

/// How much a capability weighs: 1 where every factory has it, 100 where one of a hundred does.
pub(crate) fn rarity(factories: usize, holders: usize) -> f64 {
    factories as f64 / holders.max(1) as f64
}

/// 1 where the factory offers nothing beyond what is needed; the rarer what would lie idle, the lower.
fn capability_fit(needed: f64, offered: f64) -> f64 {
    (1.0 + needed) / (1.0 + offered)
}

/// `1/(1+load)`, where load is the share of seats in use plus what the factory says of itself.
pub(crate) fn idleness(seats_used: u32, seat_limit: u32, own_load: f64) -> f64 {
    let seats = f64::from(seats_used) / f64::from(seat_limit.max(1));
    let own_load = if own_load.is_finite() { own_load.max(0.0) } else { 0.0 };
    1.0 / (1.0 + seats + own_load)
}

/// 1 where no cost is declared or it is free, 0 at the dearest factory of the fleet.
fn cost_fit(cost: Option<Usd>, dearest: Usd) -> f64 {
    match cost {
        Some(cost) if !dearest.is_zero() => 1.0 - cost.part_of(dearest),
        _ => 1.0,
    }
}

/// 1 for the engine that the job prefers, less for each that it has to do without.
fn engine_fit(passed_over: usize) -> f64 {
    1.0 / (1.0 + passed_over as f64)
}

fn health(health: Health) -> f64 {
    match health {
        Health::Ok => 1.0,
        Health::Degraded => 0.5,
        Health::Down => 0.0,
    }
}

/// Weights below zero, and nonsense, count as nothing: a plan relies on scores that never rise while seats fill.
pub(crate) fn sane(weights: Weights) -> Weights {
    let sane = |weight: f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
    PerTerm::of(|term| sane(weights[term])).into()
}

fn faded(age: Duration, over: Duration) -> f64 {
    (1.0 - age.as_millis() as f64 / over.as_millis().max(1) as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starvation_is_gone_at_its_age() {
        let after = Duration::from_mins(30);
        let at = |seconds| starvation(Duration::from_secs(seconds), after);
        assert!((at(0) - 1.0).abs() < 1e-12 && (at(900) - 0.5).abs() < 1e-12);
        assert!(at(1800) <= 0.0 && at(9999) <= 0.0);
        assert!(starvation(Duration::ZERO, Duration::ZERO).is_finite());
    }

    #[test]
    fn the_tightest_fit_is_best_and_a_rare_extra_costs_more_than_a_common_one() {
        let (common, rare) = (rarity(100, 100), rarity(100, 1));
        assert!((capability_fit(common, common) - 1.0).abs() < 1e-12);
        assert!(capability_fit(common, common + rare) < capability_fit(common, common + common));
    }

    #[test]
    fn warmth_fades_over_a_day_but_a_checkout_stays_a_checkout() {
        let now = Timestamp::from_millis(10 * 86_400_000);
        let used = |hours: u64| repo_warmth(Some(now.minus(Duration::from_secs(hours * 3600))), now);
        assert!(used(0) > used(12) && used(12) > used(24));
        assert!((used(48) - repo_warmth(None, now)).abs() < 1e-12 && repo_warmth(None, now) > 0.0);
        assert!(used(0) + RAN_HERE <= 1.0);
    }

    #[test]
    fn busier_and_dearer_is_worse() {
        assert!(idleness(0, 4, 0.0) > idleness(1, 4, 0.0) && idleness(1, 4, 0.0) > idleness(1, 4, 0.5));
        assert!(idleness(1, 4, f64::NAN).is_finite());
        let [cheap, dear] = [3, 9].map(Usd::from_dollars);
        assert!(cost_fit(None, dear) > cost_fit(Some(cheap), dear));
        assert!(cost_fit(Some(cheap), dear) > cost_fit(Some(dear), dear));
    }
}
