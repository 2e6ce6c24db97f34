//! Budgets for people: how they stand, what they were spent on over time, and the switch.
//!
//! Nothing is admitted or charged here; that happens where jobs are claimed and end.

use std::time::Duration;

use giga_domain::{Actor, Budget, BudgetChange, JobId, Period, ProductId, RequestId, Rev, Timestamp, Usd};
use giga_ports::store::{ChangeBudget, EvictJobs, NewEviction, SpendBucket};

use crate::{Coordinator, Error, FieldProblem};

/// The most stretches that a series may have.
const MOST_BUCKETS: u64 = 1_000;
/// About so many are shown where nobody says how long they should be.
const USUAL_BUCKETS: u64 = 60;
/// How many holders are asked to let go in one transaction.
const TOGETHER: usize = 500;
/// How often holders whose jobs changed in between are asked again.
const ROUNDS: usize = 5;

/// A budget, and the moment at which it stands so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetView {
    pub budget: Budget,
    pub now: Timestamp,
}

/// What was spent, stretch by stretch; those in which nothing was are there too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Burndown {
    pub product: ProductId,
    pub from: Timestamp,
    pub to: Timestamp,
    pub bucket: Duration,
    /// Of the shortest period that everything shown lies in, where it has one.
    pub limit: Option<(Period, Usd)>,
    pub buckets: Vec<BurndownBucket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurndownBucket {
    pub from: Timestamp,
    /// Negative where corrections outweigh what was spent.
    pub usd: Usd,
    pub tokens: u64,
    pub runs: u64,
    /// From the beginning to the end of this stretch.
    pub cumulative: Usd,
}

impl Burndown {
    pub fn total(&self) -> Usd {
        self.buckets.last().map_or(Usd::ZERO, |bucket| bucket.cumulative)
    }
}

impl Coordinator {
    /// A product that nothing was ever claimed or set for has an empty one.
    pub async fn budget(&self, product: &ProductId) -> Result<BudgetView, Error> {
        let budget = self.core.store.read().budget(product).await?;
        let budget = budget.unwrap_or_else(|| Budget::new(product.clone()));
        Ok(BudgetView { budget, now: self.core.store_now() })
    }

    /// By product.
    pub async fn budgets(&self) -> Result<Vec<BudgetView>, Error> {
        let budgets = self.core.store.read().budgets().await?;
        let now = self.core.store_now();
        Ok(budgets.into_iter().map(|budget| BudgetView { budget, now }).collect())
    }

    pub async fn change_budget(
        &self,
        product: ProductId,
        change: BudgetChange,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<BudgetView, Error> {
        self.change_budget_once(product, change, if_rev, None, actor).await
    }

    /// Under a key of the caller's: the same one again is answered and does nothing.
    pub async fn change_budget_once(
        &self,
        product: ProductId,
        change: BudgetChange,
        if_rev: Option<Rev>,
        key: Option<RequestId>,
        actor: Actor,
    ) -> Result<BudgetView, Error> {
        let request = key.unwrap_or_else(|| self.core.new_request());
        let budget =
            self.core.store.change_budget(ChangeBudget { product, change, if_rev, request, actor }).await?;
        Ok(BudgetView { budget, now: self.core.store_now() })
    }

    /// Nothing of the product is started from here on. With `stop_running`, what runs is asked to save its work and let
    /// go too; says how many were asked.
    pub async fn pause_budget(
        &self,
        product: ProductId,
        reason: Option<String>,
        stop_running: bool,
        actor: Actor,
    ) -> Result<(BudgetView, usize), Error> {
        let pause = BudgetChange::Pause { reason };
        let paused = self.change_budget(product.clone(), pause, None, actor.clone()).await?;
        let asked = if stop_running { self.stop_running(&product, &actor).await? } else { 0 };
        Ok((paused, asked))
    }

    /// Nothing new is started meanwhile, so whoever changed while it was asked is simply asked again.
    async fn stop_running(&self, product: &ProductId, actor: &Actor) -> Result<usize, Error> {
        let grace = self.fleet.eviction_grace();
        let mut asked = 0;
        for _ in 0..ROUNDS {
            self.fleet.refresh().await?;
            let held = self.held_and_not_asked(product);
            if held.is_empty() {
                break;
            }
            for some in held.chunks(TOGETHER) {
                let answers = self
                    .core
                    .store
                    .evict(EvictJobs { term: None, asked: some.to_vec(), grace, actor: actor.clone() })
                    .await?;
                asked += answers.into_iter().filter(|asked| *asked).count();
            }
        }
        self.core.metrics.jobs.evictions_asked.inc_by(asked as u64);
        Ok(asked)
    }

    fn held_and_not_asked(&self, product: &ProductId) -> Vec<NewEviction> {
        let state = self.fleet.view.lock();
        let held = state.running.iter().filter(|(_, r)| r.product == *product && r.evict.is_none());
        let mut held: Vec<NewEviction> =
            held.map(|(id, running)| NewEviction { job: *id, rev: running.rev, for_job: None }).collect();
        held.sort_unstable_by_key(|eviction: &NewEviction| -> JobId { eviction.job });
        held
    }

    /// What was spent between two moments, in stretches of `bucket`. Left out: this month so far, in stretches of a length
    /// that suits it.
    pub async fn burndown(
        &self,
        product: ProductId,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        bucket: Option<Duration>,
    ) -> Result<Burndown, Error> {
        let now = self.core.store_now();
        let to = to.unwrap_or(now);
        // The moment at which a month begins still shows the one that ended.
        let from = from.unwrap_or_else(|| Period::Month.start(to.minus(Duration::from_millis(1))));
        if from >= to {
            return Err(FieldProblem::new("from", "it must be before `to`").into());
        }
        let span = to.since(from);
        let bucket = bucket.unwrap_or_else(|| usual_bucket(span));
        let count = buckets_in(span, bucket)?;
        let budget = self.budget(&product).await?.budget;
        let spent = self.core.store.read().burndown(&product, from, to, bucket).await?;
        let buckets = series(from, bucket, count, &spent);
        Ok(Burndown { product, from, to, bucket, limit: limit_over(&budget, from, to), buckets })
    }
}

/// Minutes, hours or days, so that there are not too many.
fn usual_bucket(span: Duration) -> Duration {
    let usual =
        [Duration::from_mins(1), Duration::from_mins(10), Duration::from_hours(1), Duration::from_hours(6)];
    let most = u128::from(USUAL_BUCKETS);
    let fits = |bucket: &Duration| span.as_millis().div_ceil(bucket.as_millis()) <= most;
    usual.into_iter().find(fits).unwrap_or_else(|| {
        let days = span.as_millis().div_ceil(Duration::from_hours(24).as_millis() * most);
        Duration::from_hours(24) * u32::try_from(days.max(1)).unwrap_or(u32::MAX)
    })
}

fn buckets_in(span: Duration, bucket: Duration) -> Result<usize, FieldProblem> {
    let second = Duration::from_secs(1);
    if bucket < second {
        return Err(FieldProblem::new("bucket", "a stretch is one second long at least, such as 10m or 1h"));
    }
    let count = span.as_millis().div_ceil(bucket.as_millis());
    if count > u128::from(MOST_BUCKETS) {
        let least = Duration::from_secs(span.as_secs() / MOST_BUCKETS + 1);
        let message = format!(
            "these would be {count} stretches, and {MOST_BUCKETS} are shown at most; ask for {} s or longer, or for less time",
            least.as_secs()
        );
        return Err(FieldProblem::new("bucket", message));
    }
    usize::try_from(count).map_err(|_| FieldProblem::new("bucket", "it is too short"))
}

fn series(from: Timestamp, bucket: Duration, count: usize, spent: &[SpendBucket]) -> Vec<BurndownBucket> {
    let mut spent = spent.iter().peekable();
    let (mut at, mut cumulative) = (from, Usd::ZERO);
    let mut buckets = Vec::with_capacity(count);
    for _ in 0..count {
        let end = at.plus(bucket);
        let mut this = BurndownBucket { from: at, usd: Usd::ZERO, tokens: 0, runs: 0, cumulative };
        while let Some(charged) = spent.next_if(|charged| charged.from < end) {
            this.usd += charged.usd;
            this.tokens = this.tokens.saturating_add(charged.tokens);
            this.runs += charged.runs;
        }
        cumulative += this.usd;
        this.cumulative = cumulative;
        buckets.push(this);
        at = end;
    }
    buckets
}

/// Only a period that began with what is shown, or before: the sum of a part says nothing against the whole's limit,
/// but it can be drawn below it.
fn limit_over(budget: &Budget, from: Timestamp, to: Timestamp) -> Option<(Period, Usd)> {
    let last = to.minus(Duration::from_millis(1));
    let covers = |period: &Period| period.start(last) <= from;
    let of = |period: Period| Some((period, (*budget.settings.limits.of(period))?));
    Period::ALL.into_iter().filter(covers).find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_every_stretch_and_ends_at_the_sum() {
        let at = Timestamp::from_millis;
        let second = Duration::from_secs(1);
        let charge = |from: i64, micros: i64| SpendBucket {
            from: at(from),
            usd: Usd::from_micros(micros),
            tokens: 2,
            runs: 1,
        };
        let series = series(at(500), second, 4, &[charge(1_500, 7), charge(3_500, -2)]);
        let figures: Vec<(i64, i64, i64)> =
            series.iter().map(|b| (b.from.as_millis(), b.usd.micros(), b.cumulative.micros())).collect();
        assert_eq!(figures, [(500, 0, 0), (1_500, 7, 7), (2_500, 0, 7), (3_500, -2, 5)]);
    }

    #[test]
    fn the_number_of_stretches_is_bounded() {
        let (year, hour) = (Duration::from_hours(24 * 365), Duration::from_hours(1));
        assert_eq!(buckets_in(hour, Duration::from_mins(7)), Ok(9), "the last one may be short");
        let error = buckets_in(year, hour).unwrap_err();
        assert_eq!(error.field, "bucket");
        assert!(error.message.contains("8760 stretches"), "{}", error.message);
        assert!(buckets_in(hour, Duration::ZERO).is_err());
        for span in [hour, hour * 30, year, year * 40] {
            assert!(buckets_in(span, usual_bucket(span)).unwrap() <= 60, "{span:?}");
        }
    }
}
