//! The state of the fleet for people: depths, utilisation, alerts, and why a job that is not queued stands still.

use std::collections::HashMap;
use std::time::Duration;

use giga_domain::budget::{NEAR_PERCENT, PauseCause};
use giga_domain::job::DepsMode;
use giga_domain::{Budget, Event, FeedPos, Health, Job, JobId, Period, ProductId, Stage, Timestamp};
use giga_ports::store::{EffectCounts, QueueState};
use giga_scheduler::{Blocker, Fix, Remedy, routable};

use crate::view::{ViewState, Whom};
use crate::{BudgetView, Coordinator, Error};

/// A message to the world outside that has waited for so long is worth a look, retries or not.
const EFFECTS_WAIT_LONG: Duration = Duration::from_mins(15);

#[derive(Debug, Clone)]
pub struct ProductDepth {
    pub product: ProductId,
    pub state: QueueState,
    /// How long its longest waiting job that could run now has waited.
    pub oldest_queued: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct FleetMetrics {
    pub products: Vec<ProductDepth>,
    pub factories_live: usize,
    pub factories_stale: usize,
    pub factories_draining: usize,
    pub seats: u32,
    pub seats_used: u32,
    /// Of the queued jobs, the one that waits longest.
    pub oldest_queued: Option<Duration>,
    pub feed_head: FeedPos,
    /// By product.
    pub budgets: Vec<BudgetView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertKind {
    NoEligibleFactory,
    BudgetExhausted,
    BudgetPaused,
    Starvation,
    StaleFactory,
    FactoryDown,
    EffectsGivenUp,
    EffectsWaiting,
    BudgetNear,
    MergeConflict,
    DeadLetters,
}

impl AlertKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoEligibleFactory => "no_eligible_factory",
            Self::BudgetExhausted => "budget_exhausted",
            Self::BudgetPaused => "budget_paused",
            Self::Starvation => "starvation",
            Self::StaleFactory => "stale_factory",
            Self::FactoryDown => "factory_down",
            Self::EffectsGivenUp => "effects_given_up",
            Self::EffectsWaiting => "effects_waiting",
            Self::BudgetNear => "budget_near",
            Self::MergeConflict => "merge_conflict",
            Self::DeadLetters => "dead_letters",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Alert {
    pub kind: AlertKind,
    pub message: String,
    pub product: Option<ProductId>,
    pub job: Option<JobId>,
    pub factory: Option<giga_domain::FactoryId>,
    pub since: Option<Timestamp>,
}

impl Coordinator {
    pub async fn fleet_metrics(&self) -> Result<FleetMetrics, Error> {
        self.refresh().await?;
        self.ask_after_the_silent().await?;
        let products = self.store.read().queue_states().await?;
        let feed_head = self.store.read().feed_head().await?;
        let budgets = self.budgets().await?;
        let now = self.store_now();
        let state = self.view.lock();
        let snapshot = self.snapshot(&state, now, Whom::Everyone);
        let draining = |f: &&giga_scheduler::FactoryView| f.state == giga_domain::FactoryState::Draining;
        let mut oldest: HashMap<ProductId, Duration> = HashMap::new();
        for shape in state.queue.summaries() {
            let age = now.since(shape.oldest_enqueued_at);
            let known = oldest.entry(shape.representative.product.clone()).or_default();
            *known = age.max(*known);
        }
        let depth = |(product, state)| {
            let oldest_queued = oldest.get(&product).copied();
            ProductDepth { product, state, oldest_queued }
        };
        Ok(FleetMetrics {
            products: products.into_iter().map(depth).collect(),
            factories_live: snapshot.factories.iter().filter(|f| f.live).count(),
            factories_stale: snapshot.factories.iter().filter(|f| !f.live).count(),
            factories_draining: snapshot.factories.iter().filter(draining).count(),
            seats: snapshot.factories.iter().filter(|f| f.live).map(|f| f.seat_limit).sum(),
            seats_used: snapshot.factories.iter().map(|f| f.seats_used).sum(),
            oldest_queued: oldest.values().max().copied(),
            feed_head,
            budgets,
        })
    }

    /// What somebody should look at, worst first.
    pub async fn alerts(&self) -> Result<Vec<Alert>, Error> {
        self.refresh().await?;
        self.ask_after_the_silent().await?;
        let effects = self.store.read().effect_counts().await?;
        let now = self.store_now();
        let mut alerts = alerts_of_effects(&effects, now);
        let mut state = self.view.lock();
        let policy = state.policy(now, Whom::Everyone);
        alerts.extend(state.tenants.budgets().filter_map(|budget| alert_of_budget(budget, now)));
        let snapshot = self.snapshot(&state, now, Whom::Everyone);
        for shape in state.queue.summaries() {
            let job = shape.representative;
            let about = Alert {
                kind: AlertKind::NoEligibleFactory,
                message: String::new(),
                product: Some(job.product.clone()),
                job: Some(job.id),
                factory: None,
                since: Some(shape.oldest_enqueued_at),
            };
            if let Err(unroutable) = routable(job, &snapshot) {
                let message = format!("{} queued, such as {}: {unroutable}", jobs(shape.count), job.id);
                alerts.push(Alert { message, ..about });
            } else if now.since(shape.oldest_enqueued_at) >= policy.starvation_after
                // One that waits for money is told by its budget.
                && ViewState::is_affordable(&policy, job)
            {
                let minutes = now.since(shape.oldest_enqueued_at).as_secs() / 60;
                let message = format!("job {} has waited for {minutes} minutes", job.id);
                alerts.push(Alert { kind: AlertKind::Starvation, message, ..about });
            }
        }
        for factory in &snapshot.factories {
            let about = Alert {
                kind: AlertKind::StaleFactory,
                message: match state.factories.get(&factory.id).and_then(|f| self.last_seen(f)) {
                    Some(_) => format!("factory {} has not been heard of for too long", factory.id),
                    None => format!("factory {} is enrolled but has never been heard of", factory.id),
                },
                product: None,
                job: None,
                factory: Some(factory.id.clone()),
                since: state.factories.get(&factory.id).and_then(|f| self.last_seen(f)),
            };
            if !factory.live {
                alerts.push(about);
            } else if factory.health == Health::Down {
                let message = format!("factory {} says that it is down", factory.id);
                alerts.push(Alert { kind: AlertKind::FactoryDown, message, since: None, ..about });
            }
        }
        let day_ago = now.minus(Duration::from_hours(24));
        state.merge_conflicts.retain(|(at, ..)| *at >= day_ago);
        alerts.extend(state.merge_conflicts.iter().map(|(at, id, product)| Alert {
            kind: AlertKind::MergeConflict,
            message: format!("the result of job {id} could not be merged by itself"),
            product: product.clone(),
            job: Some(*id),
            factory: None,
            since: Some(*at),
        }));
        let hour_ago = now.minus(Duration::from_hours(1));
        state.dead_letters.retain(|at| *at >= hour_ago);
        if let Some(since) = state.dead_letters.front().copied() {
            let message = format!("{} went to dead letters in the last hour", jobs(state.dead_letters.len()));
            alerts.push(Alert {
                kind: AlertKind::DeadLetters,
                message,
                product: None,
                job: None,
                factory: None,
                since: Some(since),
            });
        }
        alerts
            .sort_by(|a, b| (a.kind, a.since, &a.factory, a.job).cmp(&(b.kind, b.since, &b.factory, b.job)));
        Ok(alerts)
    }

    pub(crate) async fn explain_blocked(
        &self,
        job: &Job,
    ) -> Result<(String, Vec<Blocker>, Vec<Remedy>), Error> {
        let deps = self.store.read().jobs_by_id(&job.spec.deps).await?;
        let mut open: Vec<&Job> = deps.iter().filter(|dep| dep.stage() != Stage::Shipped).collect();
        open.sort_by_key(|dep| dep.id);
        let mode = match job.spec.deps_mode {
            DepsMode::All => "all",
            DepsMode::Any => "one",
        };
        let summary = format!(
            "waits for {mode} of {} to ship: {} not shipped yet",
            jobs(job.spec.deps.len()),
            open.len()
        );
        let blockers = open
            .iter()
            .map(|dep| Blocker {
                code: "dependency",
                message: format!("{} ({}) is {}", dep.id, dep.spec.name, dep.stage()),
            })
            .collect();
        let remedies = open.iter().filter_map(|dep| remedy_for_dep(dep)).collect();
        Ok((summary, blockers, remedies))
    }

    /// The feed from a cursor on.
    pub async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>, Error> {
        Ok(self.store.read().feed(after, limit).await?)
    }
}

/// A ceiling that is reached or near, or a product that somebody stopped.
fn alert_of_budget(budget: &Budget, now: Timestamp) -> Option<Alert> {
    let product = &budget.product;
    let alert = |kind, message, since| Alert {
        kind,
        message,
        product: Some(product.clone()),
        job: None,
        factory: None,
        since: Some(since),
    };
    if let Some(pause) = budget.pause_now(now) {
        return Some(match &pause.cause {
            PauseCause::Ceiling { period } => {
                let until = period.end(now).map(|end| format!("; it opens at {end}")).unwrap_or_default();
                let message = format!(
                    "the budget of {product} is used up: {} of {} {}{until}",
                    budget.spent_in(*period, now).usd,
                    budget.settings.ceilings.of(*period).unwrap_or_default(),
                    of_the(*period),
                );
                alert(AlertKind::BudgetExhausted, message, pause.at)
            }
            PauseCause::Operator { by, reason } => {
                let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                alert(AlertKind::BudgetPaused, format!("{product} is paused by {by}{why}"), pause.at)
            }
        });
    }
    let used = |period: Period| {
        let ceiling = (*budget.settings.ceilings.of(period))?;
        let used = budget.spent_in(period, now).usd + budget.reserved;
        let is_near = 100 * used >= NEAR_PERCENT * ceiling;
        is_near.then_some((ceiling.less(used), period, used, ceiling))
    };
    let (_, period, used, ceiling) = Period::ALL.into_iter().filter_map(used).min()?;
    let message = format!(
        "the budget of {product} is nearly used up: {used} of {ceiling} {} spent or set aside",
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

/// The world outside that was not told, or not yet.
fn alerts_of_effects(effects: &EffectCounts, now: Timestamp) -> Vec<Alert> {
    let alert =
        |kind, message, since| Alert { kind, message, product: None, job: None, factory: None, since };
    let mut alerts = Vec::new();
    if effects.dead > 0 {
        let message =
            format!("{} messages to the world outside were given up; see `giga effects list`", effects.dead);
        alerts.push(alert(AlertKind::EffectsGivenUp, message, None));
    }
    if let Some(oldest) = effects.oldest_pending.filter(|at| now.since(*at) >= EFFECTS_WAIT_LONG) {
        let minutes = now.since(oldest).as_secs() / 60;
        let message = format!(
            "{} messages to the world outside wait, the oldest for {minutes} minutes",
            effects.pending
        );
        alerts.push(alert(AlertKind::EffectsWaiting, message, Some(oldest)));
    }
    alerts
}

fn jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

fn remedy_for_dep(dep: &Job) -> Option<Remedy> {
    match dep.stage() {
        Stage::Failed => Some(Remedy::fix("requeue the failed dependency", Fix::Requeue(dep.id))),
        Stage::Testing => Some(Remedy::fix("ship the dependency", Fix::Ship(dep.id))),
        Stage::Review => Some(look("review the dependency", dep.id)),
        Stage::DeadLetter | Stage::Cancelled => {
            let anew = "the dependency will never ship; submit it again and then this job, without it";
            Some(Remedy::advice(anew))
        }
        _ => None,
    }
}

/// No step that can be taken at once: whoever approves has looked at the result first, and this shows it.
fn look(message: &str, job: JobId) -> Remedy {
    Remedy::command(message, format!("giga review {job}"))
}

/// Why a job that is neither queued nor blocked stands where it is.
pub(crate) fn standing(job: &Job, stage: Stage) -> (String, Vec<Blocker>, Vec<Remedy>) {
    let id = job.id;
    match stage {
        Stage::Assigned | Stage::Building => {
            let holder = job.lease().map(|l| format!("{} until {} unless renewed", l.factory, l.expires_at));
            let asked = job.lease().and_then(|lease| lease.evict).map(|evict| {
                let why = match evict.for_job {
                    Some(job) => format!("job {job} needs the seat"),
                    None => "its product's budget is paused".to_owned(),
                };
                format!(", and asked to let go by {}: {why}", evict.deadline)
            });
            let summary =
                format!("{stage}: held by {}{}", holder.unwrap_or_default(), asked.unwrap_or_default());
            (summary, Vec::new(), Vec::new())
        }
        Stage::Review => {
            let gate = job.gate();
            let who = if gate.reviewers.is_empty() { "anyone".to_owned() } else { gate.reviewers.join(", ") };
            let blocker =
                Blocker { code: "review", message: format!("needs {} approval(s) from {who}", gate.quorum) };
            let remedies = vec![look("review it", id)];
            ("waits for review".to_owned(), vec![blocker], remedies)
        }
        Stage::Testing => {
            let blocker = Blocker { code: "ship", message: "the manifest says `ship: manual`".to_owned() };
            ("waits to be shipped".to_owned(), vec![blocker], vec![Remedy::fix("ship it", Fix::Ship(id))])
        }
        Stage::Failed => {
            let failure = job.failure();
            let reason = failure.map_or("unknown", |f| f.reason.as_str());
            let detail =
                failure.and_then(|f| f.detail.as_deref()).map(|d| format!(": {d}")).unwrap_or_default();
            let blocker = Blocker { code: "failed", message: format!("{reason}{detail}") };
            let remedies = vec![
                Remedy::fix("try it again", Fix::Requeue(id)),
                Remedy::fix("give it up", Fix::Cancel(id)),
            ];
            (format!("failed ({reason}) and waits for an operator"), vec![blocker], remedies)
        }
        Stage::DeadLetter => {
            let reason = job.failure().map_or("unknown", |f| f.reason.as_str());
            let remedy = Remedy::advice("final: submit it again once the cause is gone");
            (format!("given up after {} attempts ({reason})", job.attempts), Vec::new(), vec![remedy])
        }
        Stage::Shipped => ("done: it shipped".to_owned(), Vec::new(), Vec::new()),
        Stage::Cancelled => ("done: it was cancelled".to_owned(), Vec::new(), Vec::new()),
        Stage::Queued | Stage::Blocked => (format!("it is {stage}"), Vec::new(), Vec::new()),
    }
}
