//! Alerts: what somebody should look at, how bad it is, what it is called and what to do about it.
//!
//! The table ([`rule`] and [`Alert::remedy`]) is the only one: control planes show what they are given. A new kind is a
//! variant of [`AlertKind`], which the compiler asks for here, and the place that raises it.

use std::collections::BTreeMap;
use std::time::Duration;

use giga_domain::budget::{NEAR_PERCENT, PauseCause};
use giga_domain::{
    Access, AccountId, AlertKind, Budget, ClosedEngine, FactoryId, Health, JobId, Period, ProductId,
    Severity, Timestamp,
};
use giga_ports::store::EffectCounts;
use giga_scheduler::{Fix, Remedy, Snapshot, routable};

use crate::view::{Asking, FailedMerge, ViewState, Whom};
use crate::{Coordinator, Error, Sight};

/// A message to a webhook or tracker that has waited for so long is worth a look, retries or not.
const EFFECTS_WAIT_LONG: Duration = Duration::from_mins(15);

#[derive(Debug, Clone)]
pub struct Alert {
    pub kind: AlertKind,
    pub message: String,
    pub product: Option<ProductId>,
    pub job: Option<JobId>,
    pub factory: Option<FactoryId>,
    pub since: Option<Timestamp>,
}

/// Kinds are ordered worst first, so severities only ever get better from one kind to the next.
const fn rule(kind: AlertKind) -> (Severity, &'static str) {
    use Severity::{Critical, Info, Warning};
    match kind {
        AlertKind::DeadLetters => (Critical, "Dead letters"),
        AlertKind::BudgetExhausted => (Critical, "Budget exhausted"),
        AlertKind::FactoryDown => (Critical, "Factory down"),
        AlertKind::MergeConflict => (Critical, "Merge conflict"),
        AlertKind::EffectsGivenUp => (Critical, "Deliveries failed"),
        AlertKind::NeedsInput => (Warning, "Needs input"),
        AlertKind::NoEligibleFactory => (Warning, "No eligible factory"),
        AlertKind::Starvation => (Warning, "Waiting too long"),
        AlertKind::StaleFactory => (Warning, "Factory offline"),
        AlertKind::AccountSignedOut => (Warning, "Engine signed out"),
        AlertKind::AccountOutOfQuota => (Warning, "Out of quota"),
        AlertKind::PoolStartFailed => (Warning, "Factories of a pool do not start"),
        AlertKind::BudgetNear => (Info, "Budget near limit"),
        AlertKind::BudgetPaused => (Info, "Budget paused"),
        AlertKind::EffectsWaiting => (Info, "Deliveries delayed"),
    }
}

impl Alert {
    fn new(kind: AlertKind, message: String) -> Self {
        Self { kind, message, product: None, job: None, factory: None, since: None }
    }

    pub fn severity(&self) -> Severity {
        rule(self.kind).0
    }

    pub fn title(&self) -> &'static str {
        rule(self.kind).1
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        let (job, product, factory) = (self.job, self.product.as_ref(), self.factory.as_ref());
        Some(match self.kind {
            AlertKind::DeadLetters => Remedy::command(
                "find out what they have in common before you submit them again",
                "giga job list --stage dead_letter",
            ),
            AlertKind::BudgetExhausted | AlertKind::BudgetNear => Remedy::command(
                "raise the limit, or wait for the next period",
                format!("giga budget show {}", product?),
            ),
            AlertKind::BudgetPaused => {
                Remedy::fix("resume it when the reason is gone", Fix::ResumeBudget(product?.clone()))
            }
            AlertKind::FactoryDown => Remedy::command(
                "look at its log; it takes jobs again once it is healthy",
                format!("giga factory show {}", factory?),
            ),
            // Without the id, so that control planes can group such factories; the coordinator does not know its own URL.
            AlertKind::StaleFactory if self.since.is_none() => Remedy::command(
                "start it on its machine; if it runs there, check the URL of this coordinator and that the token file holds \
                 what `giga factory enroll` printed",
                format!("giga factory run --id {id} --url URL --token-file {id}.token", id = factory?),
            ),
            AlertKind::StaleFactory => Remedy::command(
                "check its machine; remove it if it will not come back",
                format!("giga factory show {}", factory?),
            ),
            AlertKind::MergeConflict => Remedy::command(
                "try the merge again, do the work again, or give it up",
                format!("giga job explain {}", job?),
            ),
            AlertKind::NeedsInput => {
                Remedy::command("see what it asks, and answer", format!("giga job questions {}", job?))
            }
            AlertKind::NoEligibleFactory => Remedy::command(
                "start a factory that has what it needs, or submit it without",
                format!("giga job explain {}", job?),
            ),
            AlertKind::Starvation => Remedy::command(
                "see what holds it up; more seats or a higher share help",
                format!("giga job explain {}", job?),
            ),
            AlertKind::AccountSignedOut => Remedy::command(
                "sign in on the machine, or renew its key; `giga doctor` says there what is wrong",
                format!("giga factory show {}", factory?),
            ),
            AlertKind::AccountOutOfQuota => Remedy::command(
                "wait until it opens, or allow another engine: `engine: [claude, codex]`",
                "giga account list",
            ),
            AlertKind::PoolStartFailed => {
                Remedy::command("see why, and change the pool; that tries it again at once", "giga pool list")
            }
            AlertKind::EffectsGivenUp => {
                Remedy::command("repair the receiver, then send them again", "giga effects list --state dead")
            }
            AlertKind::EffectsWaiting => Remedy::command(
                "the receiver does not answer; deliveries are retried automatically",
                "giga effects list --state pending",
            ),
        })
    }
}

impl Coordinator {
    /// What somebody should look at, worst first.
    pub async fn alerts(&self) -> Result<Vec<Alert>, Error> {
        self.alerts_for(&Sight::Everything).await
    }

    /// The same from what a caller may see.
    pub async fn alerts_for(&self, sight: &Sight) -> Result<Vec<Alert>, Error> {
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        let effects = self.core.store.read().effect_counts().await?;
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        let mut snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
        sight.cut(&mut snapshot, &state.tenants, None);
        let mut alerts = of_effects(&effects, now);
        alerts.extend(state.tenants.budgets().filter_map(|budget| of_budget(budget, now)));
        alerts.extend(of_queue(&mut state, &snapshot, now));
        alerts.extend(self.of_factories(&state, &snapshot));
        alerts.extend(of_questions(&state));
        alerts.extend(of_accounts(&snapshot));
        alerts.extend(of_pools(&state));
        alerts.extend(of_merges(&mut state, now));
        alerts.extend(of_dead_letters(&mut state, now));
        alerts.retain(|alert| match (&alert.product, &alert.factory) {
            (Some(product), _) => sight.allows(product),
            // Those that the picture shows.
            (None, Some(_)) => true,
            // Counted over all products.
            (None, None) => *sight == Sight::Everything,
        });
        alerts
            .sort_by(|a, b| (a.kind, a.since, &a.factory, a.job).cmp(&(b.kind, b.since, &b.factory, b.job)));
        Ok(alerts)
    }

    fn of_factories(&self, state: &ViewState, snapshot: &Snapshot) -> Vec<Alert> {
        let alert = |factory: &giga_scheduler::FactoryView| {
            let id = &factory.id;
            let about = |kind, message| Alert { factory: Some(id.clone()), ..Alert::new(kind, message) };
            if factory.live {
                let why = factory.health_reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                let message = || format!("factory {id} reports that it is down{why}");
                return (factory.health == Health::Down).then(|| about(AlertKind::FactoryDown, message()));
            }
            let since = state.factories.get(id).and_then(|f| self.last_seen(f));
            let message = match since {
                Some(_) => format!("factory {id} is offline"),
                None => format!("factory {id} is enrolled but has never connected"),
            };
            Some(Alert { since, ..about(AlertKind::StaleFactory, message) })
        };
        snapshot.factories.iter().filter_map(alert).collect()
    }
}

fn of_queue(state: &mut ViewState, snapshot: &Snapshot, now: Timestamp) -> Vec<Alert> {
    let policy = state.policy(now, Whom::Everyone);
    let state = &*state;
    let alert = |shape: giga_scheduler::summary::ShapeSummary<'_>| {
        let job = shape.representative;
        let about = |kind, message| Alert {
            product: Some(job.product.clone()),
            job: Some(job.id),
            since: Some(shape.oldest_enqueued_at),
            ..Alert::new(kind, message)
        };
        let waited = now.since(shape.oldest_enqueued_at);
        if let Err(unroutable) = routable(job, snapshot)
            && !crate::pools::could_run(state, job, now)
        {
            let message = format!("{} queued, such as {}: {unroutable}", jobs(shape.count), job.id);
            return Some(about(AlertKind::NoEligibleFactory, message));
        }
        // One that waits for money has the alert of its budget.
        let starves = waited >= policy.starvation_after && ViewState::is_affordable(&policy, job);
        starves.then(|| {
            let minutes = waited.as_secs() / 60;
            about(AlertKind::Starvation, format!("job {} has been waiting for {minutes} minutes", job.id))
        })
    };
    state.queue.summaries().filter_map(alert).collect()
}

fn of_questions(state: &ViewState) -> Vec<Alert> {
    let alert = |(id, asking): (&JobId, &Asking)| Alert {
        product: Some(asking.product.clone()),
        job: Some(*id),
        since: Some(asking.since),
        ..Alert::new(AlertKind::NeedsInput, format!("job {id} asks: {}", first_line(&asking.text)))
    };
    state.asking.iter().map(alert).collect()
}

/// A question may be long.
pub(crate) fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().chars().take(200).collect()
}

/// One for each account, however many factories have it.
fn of_accounts(snapshot: &Snapshot) -> Vec<Alert> {
    let mut alerts: BTreeMap<(&AccountId, bool), Alert> = BTreeMap::new();
    for factory in snapshot.factories.iter().filter(|factory| factory.live) {
        for closed in &factory.closed {
            let ClosedEngine { engine, account, access } = closed;
            let (kind, message) = match access {
                Access::OutOfQuota { until } => (
                    AlertKind::AccountOutOfQuota,
                    format!("{engine} is out of quota until {until} (account {account}, on {})", factory.id),
                ),
                _ => (AlertKind::AccountSignedOut, format!("{engine} is signed out on {}", factory.id)),
            };
            let alert = Alert { factory: Some(factory.id.clone()), ..Alert::new(kind, message) };
            alerts.entry((account, *access == Access::SignedOut)).or_insert(alert);
        }
    }
    alerts.into_values().collect()
}

/// Operators look after pools, whatever product waits for them.
fn of_pools(state: &ViewState) -> Vec<Alert> {
    let failed = state.pools.values().filter(|pool| pool.record.failed_in_a_row > 0);
    let alert = |pool: &giga_domain::Pool| {
        let why = pool.record.failure.as_deref().map(first_line).unwrap_or_default();
        let times = pool.record.failed_in_a_row;
        Alert::new(
            AlertKind::PoolStartFailed,
            format!("pool {}: {times} failed starts in a row: {why}", pool.name),
        )
    };
    failed.map(alert).collect()
}

/// Of the last day.
fn of_merges(state: &mut ViewState, now: Timestamp) -> Vec<Alert> {
    let day_ago = now.minus(Duration::from_hours(24));
    state.failed_merges.retain(|_, failed| failed.at >= day_ago);
    let alert = |(id, failed): (&JobId, &FailedMerge)| Alert {
        product: failed.product.clone(),
        job: Some(*id),
        since: Some(failed.at),
        ..Alert::new(AlertKind::MergeConflict, format!("job {id} is not merged: {}", failed.cause))
    };
    state.failed_merges.iter().map(alert).collect()
}

/// Of the last hour.
fn of_dead_letters(state: &mut ViewState, now: Timestamp) -> Option<Alert> {
    let hour_ago = now.minus(Duration::from_hours(1));
    state.dead_letters.retain(|at| *at >= hour_ago);
    let since = state.dead_letters.front().copied()?;
    let message = format!("{} went to dead letters in the last hour", jobs(state.dead_letters.len()));
    Some(Alert { since: Some(since), ..Alert::new(AlertKind::DeadLetters, message) })
}

/// A limit that is reached or near, or a product that somebody paused.
fn of_budget(budget: &Budget, now: Timestamp) -> Option<Alert> {
    let product = &budget.product;
    let alert = |kind, message, since| Alert {
        product: Some(product.clone()),
        since: Some(since),
        ..Alert::new(kind, message)
    };
    if let Some(pause) = budget.pause_now(now) {
        return Some(match &pause.cause {
            PauseCause::Limit { period } => {
                let until = period.end(now).map(|end| format!("; it reopens at {end}")).unwrap_or_default();
                let message = format!(
                    "the budget of {product} is exhausted: {} of {} {}{until}",
                    budget.spent_in(*period, now).usd,
                    budget.settings.limits.of(*period).unwrap_or_default(),
                    of_the(*period),
                );
                alert(AlertKind::BudgetExhausted, message, pause.at)
            }
            PauseCause::Operator { by, reason } => {
                let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                alert(AlertKind::BudgetPaused, format!("{product} was paused by {by}{why}"), pause.at)
            }
        });
    }
    let used = |period: Period| {
        let limit = (*budget.settings.limits.of(period))?;
        let used = budget.spent_in(period, now).usd + budget.reserved;
        let is_near = 100 * used >= NEAR_PERCENT * limit;
        is_near.then_some((limit.less(used), period, used, limit))
    };
    let (_, period, used, limit) = Period::ALL.into_iter().filter_map(used).min()?;
    let message = format!(
        "the budget of {product} is nearly exhausted: {used} of {limit} {} spent or reserved",
        of_the(period)
    );
    Some(alert(AlertKind::BudgetNear, message, period.start(now)))
}

fn of_the(period: Period) -> String {
    match period {
        Period::Total => "in total".to_owned(),
        period => format!("of the {}", period.as_str()),
    }
}

/// Webhooks and trackers that did not get their messages, or not yet.
fn of_effects(effects: &EffectCounts, now: Timestamp) -> Vec<Alert> {
    let messages = |count| match count {
        1 => "1 message to a webhook or tracker".to_owned(),
        count => format!("{count} messages to webhooks and trackers"),
    };
    let mut alerts = Vec::new();
    if effects.dead > 0 {
        let message = format!("{} could not be delivered", messages(effects.dead));
        alerts.push(Alert::new(AlertKind::EffectsGivenUp, message));
    }
    if let Some(oldest) = effects.oldest_pending.filter(|at| now.since(*at) >= EFFECTS_WAIT_LONG) {
        let minutes = now.since(oldest).as_secs() / 60;
        let message = format!("{} waiting, the oldest for {minutes} minutes", messages(effects.pending));
        alerts.push(Alert { since: Some(oldest), ..Alert::new(AlertKind::EffectsWaiting, message) });
    }
    alerts
}

pub(crate) fn jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_declared_worst_first() {
        assert!(AlertKind::ALL.is_sorted_by_key(|kind| rule(*kind).0));
        assert_eq!(rule(AlertKind::ALL[0]), (Severity::Critical, "Dead letters"));
    }

    #[test]
    fn every_kind_is_raised_somewhere() {
        let source = include_str!("alerts.rs").split("#[cfg(test)]").next().unwrap_or_default();
        let (_, raising) = source.split_once("impl Coordinator {").expect("the part that raises alerts");
        for kind in AlertKind::ALL {
            assert!(raising.contains(&format!("AlertKind::{kind:?}")), "nothing raises {kind}");
        }
    }

    #[test]
    fn every_kind_says_what_to_do() {
        for kind in AlertKind::ALL {
            let alert = Alert {
                product: "demo".parse().ok(),
                job: Some(JobId::from_u128(1)),
                factory: "mac-1".parse().ok(),
                ..Alert::new(kind, String::new())
            };
            assert!(alert.remedy().is_some_and(|remedy| remedy.command.is_some()), "{kind}");
        }
    }
}
