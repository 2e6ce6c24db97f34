//! Whose turn it is: the system's, a person's, or nobody's. From how all jobs and budgets stand at one moment.

use std::collections::BTreeMap;

use giga_domain::budget::PauseCause;
use giga_domain::job::{DepsMode, FailurePolicy};
use giga_domain::{Budget, Job, JobId, JobKind, Stage, Timestamp, Usd};

use super::story::is_over;
use crate::scenario::Scenario;

pub(super) const DAY_MS: i64 = 86_400_000;

pub(crate) struct Standing<'a> {
    jobs: BTreeMap<JobId, &'a Job>,
    children: BTreeMap<JobId, Vec<&'a Job>>,
    budgets: &'a [Budget],
    scenario: &'a Scenario,
    now: Timestamp,
}

impl<'a> Standing<'a> {
    pub(crate) fn of(jobs: &'a [Job], budgets: &'a [Budget], scenario: &'a Scenario, now: Timestamp) -> Self {
        let mut children: BTreeMap<JobId, Vec<&Job>> = BTreeMap::new();
        for job in jobs {
            if let Some(parent) = job.spec.parent {
                children.entry(parent).or_default().push(job);
            }
        }
        Self { jobs: jobs.iter().map(|job| (job.id, job)).collect(), children, budgets, scenario, now }
    }

    /// Whether the system, rather than a person, has to take the next step.
    pub(crate) fn is_moving(&self, job: &Job) -> bool {
        match job.stage() {
            Stage::Assigned | Stage::Building | Stage::Shipping => true,
            _ if self.hangs_on_what_moved(job).is_some() => true,
            Stage::Queued => {
                let wanted: Vec<String> = job.spec.capabilities.iter().map(ToString::to_string).collect();
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                self.scenario.somebody_can(&wanted) && self.is_affordable(job)
            }
            // A person's turn, or nobody's.
            _ => false,
        }
    }

    /// What its deps, its children or its parent demand of it, where it has not followed yet.
    pub(super) fn hangs_on_what_moved(&self, job: &Job) -> Option<String> {
        if is_over(job.stage()) {
            return None;
        }
        if let Some(parent) = job.spec.parent.and_then(|parent| self.jobs.get(&parent)) {
            let fails_fast = parent.spec.on_failure == FailurePolicy::FailFast;
            let failed = parent.spec.kind == JobKind::Composite
                && parent.stage() == Stage::Failed
                && fails_fast
                && job.stage() != Stage::Failed;
            if failed || parent.stage() == Stage::Cancelled {
                return Some(format!("its parent is {}", parent.stage()));
            }
        }
        if job.stage() != Stage::Blocked {
            return None;
        }
        let stages: Vec<Option<Stage>> =
            job.spec.deps.iter().map(|dep| self.jobs.get(dep).map(|dep| dep.stage())).collect();
        let shipped = stages.iter().filter(|stage| **stage == Some(Stage::Shipped)).count();
        let lost = stages.iter().filter(|stage| stage.is_none_or(never_ships)).count();
        let (satisfied, hopeless) = match job.spec.deps_mode {
            DepsMode::All => (shipped == stages.len(), lost > 0),
            DepsMode::Any => (shipped > 0 || stages.is_empty(), lost > 0 && lost == stages.len()),
        };
        if hopeless {
            return Some("its deps will never ship".to_owned());
        }
        match job.spec.kind {
            JobKind::Agent => satisfied.then(|| "its deps have shipped".to_owned()),
            JobKind::Composite => self.children_demand(job, satisfied),
        }
    }

    fn children_demand(&self, job: &Job, deps_satisfied: bool) -> Option<String> {
        let children = self.children.get(&job.id).map(Vec::as_slice).unwrap_or_default();
        let count = |yes: fn(Stage) -> bool| children.iter().filter(|child| yes(child.stage())).count();
        let failed = count(|stage| stage == Stage::Failed || never_ships(stage));
        let shipped = count(|stage| stage == Stage::Shipped);
        let open = children.len() - failed - shipped;
        if failed > 0 && (open == 0 || job.spec.on_failure == FailurePolicy::FailFast) {
            return Some(format!("{failed} of its children failed and {open} are open"));
        }
        let done = shipped > 0 && open == 0 && failed == 0 && deps_satisfied;
        done.then(|| format!("all of its {shipped} children have shipped"))
    }

    fn is_affordable(&self, job: &Job) -> bool {
        let Some(budget) = self.budgets.iter().find(|budget| budget.product == job.product) else {
            return true;
        };
        if budget.paused.as_ref().is_some_and(|pause| matches!(pause.cause, PauseCause::Operator { .. })) {
            return false;
        }
        let day = |at: Timestamp| at.as_millis().div_euclid(DAY_MS);
        let today = &budget.spent.day;
        let today = if day(today.since) == day(self.now) { today.usd } else { Usd::ZERO };
        let needed = job.spec.budget.usd.or(budget.settings.job_cap).unwrap_or_default().max(Usd::LEAST);
        let fits = |limit: Option<Usd>, spent: Usd| {
            limit.is_none_or(|limit| spent + budget.reserved + needed <= limit)
        };
        let limits = &budget.settings.limits;
        fits(limits.day, today) && fits(limits.total, budget.spent.total.usd)
    }
}

fn never_ships(stage: Stage) -> bool {
    matches!(stage, Stage::DeadLetter | Stage::Cancelled)
}
