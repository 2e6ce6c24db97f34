//! What a product may do and how much it counts, as a plan needs it.
//!
//! Made from what people set and what the ledger says, for one moment: a period that ends makes another policy. Nothing
//! here reserves anything; the claim does that, by the same rule.

use giga_domain::budget::PauseCause;
use giga_domain::{Budget, Period, ProductSettings, Timestamp, Usd, Weights};

use crate::JobView;

#[derive(Debug, Clone, PartialEq)]
pub struct ProductPolicy {
    /// Its share against the other products'.
    pub share: f64,
    pub weights: Weights,
    /// What is left of the tightest limit. `None`: there is no limit.
    pub budget_left: Option<Usd>,
    /// The cap of a job that names none.
    pub job_cap: Option<Usd>,
    /// Nothing of it is started.
    pub paused: bool,
    /// For texts only: nothing is decided by what follows.
    pub pause: Option<PauseCause>,
    pub limits: Vec<Limit>,
}

/// A limit, and how much of it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub period: Period,
    pub usd: Usd,
    pub spent: Usd,
    /// By what is held or on offer.
    pub reserved: Usd,
    /// When the period starts over.
    pub ends_at: Option<Timestamp>,
}

impl Default for ProductPolicy {
    fn default() -> Self {
        Self {
            share: 1.0,
            weights: Weights::default(),
            budget_left: None,
            job_cap: None,
            paused: false,
            pause: None,
            limits: Vec::new(),
        }
    }
}

impl ProductPolicy {
    /// A product without settings, and one without a budget, are ordinary ones.
    pub fn new(settings: Option<&ProductSettings>, budget: Option<&Budget>, now: Timestamp) -> Self {
        let mut policy = settings.map_or_else(Self::default, |settings| Self {
            share: settings.share,
            weights: settings.weights,
            ..Self::default()
        });
        let Some(budget) = budget else { return policy };
        let pause = budget.pause_now(now);
        policy.paused = pause.is_some();
        policy.pause = pause.map(|pause| pause.cause);
        policy.job_cap = budget.settings.job_cap;
        policy.budget_left = budget.left(now).map(|(left, _)| left);
        let limit = |period: Period| {
            Some(Limit {
                period,
                usd: (*budget.settings.limits.of(period))?,
                spent: budget.spent_in(period, now).usd,
                reserved: budget.reserved,
                ends_at: period.end(now),
            })
        };
        policy.limits = Period::ALL.into_iter().filter_map(limit).collect();
        policy
    }

    /// What a claim of the job takes from the budget.
    pub fn reserve_for(&self, job: &JobView) -> Usd {
        job.cost_cap.or(self.job_cap).unwrap_or_default()
    }

    /// Counts what is promised beside the ledger.
    pub fn reserve(&mut self, usd: Usd) {
        if let Some(left) = &mut self.budget_left {
            *left = left.less(usd);
        }
        for limit in &mut self.limits {
            limit.reserved += usd;
        }
    }

    /// Whether a job may be started as far as money goes.
    pub fn admits(&self, job: &JobView) -> bool {
        !self.paused && self.affords(job, self.budget_left)
    }

    /// The rule of the claim itself: one that reserves nothing needs that something is left.
    pub(crate) fn affords(&self, job: &JobView, left: Option<Usd>) -> bool {
        left.is_none_or(|left| self.reserve_for(job).max(Usd::LEAST) <= left)
    }

    /// The limits that leave too little for the job.
    pub(crate) fn short_for<'a>(&'a self, job: &JobView) -> impl Iterator<Item = &'a Limit> {
        let needed = self.reserve_for(job).max(Usd::LEAST);
        self.limits.iter().filter(move |limit| limit.used() + needed > limit.usd)
    }
}

impl Limit {
    pub fn used(&self) -> Usd {
        self.spent + self.reserved
    }
}
