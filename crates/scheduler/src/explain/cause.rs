//! The facts of a case: what fails where, how close each factory is, and what is ahead in the line.
//!
//! Only finds out; the sentences are in `words`, the advice in `remedy`.

use std::collections::HashMap;

use giga_domain::{FactoryId, Timestamp};

use crate::feasible::{self, Filter};
use crate::fleet::Seats;
use crate::select::{Offered, Outcome, Planner};
use crate::{FactoryView, JobView, Policy, ProductPolicy, ReadyQueue, Snapshot, Unroutable, routable};

/// Beyond so many placements ahead the exact number helps nobody.
const LOOK_AHEAD: usize = 2_000;

pub(super) struct Case<'a> {
    pub(super) job: &'a JobView,
    pub(super) now: Timestamp,
    pub(super) snapshot: &'a Snapshot,
    pub(super) product: ProductPolicy,
    /// What fails whatever the factory.
    pub(super) gates: Vec<Filter>,
    pub(super) offer: Option<&'a (FactoryId, Timestamp)>,
    pub(super) unroutable: Option<Unroutable>,
    /// Every factory, the closest to a place first.
    pub(super) factories: Vec<Standing<'a>>,
    pub(super) prospect: Prospect,
}

/// What keeps one factory from taking the job, the job's own obstacles aside.
pub(super) struct Standing<'a> {
    pub(super) factory: &'a FactoryView,
    pub(super) failures: Vec<Filter>,
}

/// What the job's turn brings, where nothing but its turn and a seat is between it and a place.
pub(super) enum Prospect {
    Placed(FactoryId),
    /// Jobs ahead of it use up what it needs.
    Behind {
        ahead: Count,
        uses_up: Filter,
    },
    /// Every factory that could run it is full.
    NoSeat {
        ahead: Count,
    },
    /// Something else is in the way, so the line does not matter.
    Closed,
}

#[derive(Clone, Copy)]
pub(super) struct Count {
    pub(super) jobs: usize,
    pub(super) at_least: bool,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        job: &'a JobView,
        queue: &'a ReadyQueue,
        snapshot: &'a Snapshot,
        now: Timestamp,
        policy: &'a Policy,
    ) -> Self {
        let mut factories: Vec<Standing<'_>> = snapshot
            .factories
            .iter()
            .map(|factory| {
                let mut failures = feasible::factory_failures(job, factory);
                if feasible::is_excluded(job, factory, now) {
                    failures.push(Filter::Excluded);
                }
                if feasible::is_unfit(job, factory) {
                    failures.push(Filter::Unfit);
                }
                Standing { factory, failures }
            })
            .collect();
        factories.sort_by_key(|s| (s.distance(job), s.factory.id.clone()));
        let mut case = Self {
            job,
            now,
            snapshot,
            product: policy.products.get(&job.product).cloned().unwrap_or_default(),
            gates: feasible::job_failures(job, snapshot, now, policy),
            offer: job.offered_to.as_ref().filter(|(_, deadline)| *deadline > now),
            unroutable: routable(job, snapshot).err(),
            factories,
            prospect: Prospect::Closed,
        };
        if case.gates.is_empty() && case.offer.is_none() {
            case.prospect = case.look_ahead(queue, policy);
        }
        case
    }

    /// Factories where exactly this one thing is in the way.
    pub(super) fn lacking_only(&self, filter: Filter) -> Vec<&'a FactoryView> {
        self.factories.iter().filter(|s| s.failures == [filter]).map(|s| s.factory).collect()
    }

    /// Filters that are the only obstacle somewhere, the easiest to lift first.
    pub(super) fn single_obstacles(&self) -> Vec<Filter> {
        let mut filters: Vec<Filter> = Vec::new();
        for standing in &self.factories {
            if let [only] = standing.failures[..]
                && !filters.contains(&only)
            {
                filters.push(only);
            }
        }
        filters.sort_by_key(|filter| effort(*filter));
        filters
    }

    fn look_ahead(&self, queue: &'a ReadyQueue, policy: &'a Policy) -> Prospect {
        if self.factories.iter().any(|s| s.failures.is_empty()) {
            let mut planner = self.planner(queue, policy, Seats::AsTheyAre);
            match planner.judge_in_turn(self.job, LOOK_AHEAD) {
                Some(Outcome::Place(at, _)) => Prospect::Placed(planner.fleet.factories[at].id.clone()),
                Some(Outcome::Not(_, uses_up)) => {
                    Prospect::Behind { ahead: self.ahead(queue, policy), uses_up }
                }
                None => Prospect::Behind { ahead: self.ahead(queue, policy), uses_up: Filter::Seats },
            }
        } else if self.lacking_only(Filter::Seats).is_empty() {
            Prospect::Closed
        } else {
            Prospect::NoSeat { ahead: self.ahead(queue, policy) }
        }
    }

    /// Who has a turn before this job and could take its place. Counted as if there were seats for all: the order of
    /// turns is what matters here, not who gets which seat.
    fn ahead(&self, queue: &'a ReadyQueue, policy: &'a Policy) -> Count {
        let mut planner = self.planner(queue, policy, Seats::Endless);
        let reached = planner.judge_in_turn(self.job, LOOK_AHEAD).is_some();
        Count { jobs: self.rivals(queue, &planner), at_least: !reached }
    }

    fn planner(&self, queue: &'a ReadyQueue, policy: &'a Policy, seats: Seats) -> Planner<'a> {
        Planner::new(queue, self.snapshot, self.now, policy, seats, Offered::ToBeTaken, Some(self.job.id))
    }

    /// How many of the placed jobs could run on one of the factories that this job could run on.
    fn rivals(&self, queue: &ReadyQueue, planner: &Planner<'_>) -> usize {
        let suits = |failures: &[Filter]| failures.iter().all(|filter| filter.passes_with_running_jobs());
        let wanted: Vec<&FactoryView> =
            self.factories.iter().filter(|s| suits(&s.failures)).map(|s| s.factory).collect();
        let mut known = HashMap::new();
        let ahead = planner.plan.placements.iter().filter_map(|p| queue.get(p.job));
        ahead
            .filter(|rival| {
                *known
                    .entry((
                        &rival.product,
                        &rival.capabilities,
                        &rival.engine,
                        &rival.repo,
                        &rival.more_repos,
                    ))
                    .or_insert_with(|| wanted.iter().any(|f| suits(&feasible::factory_failures(rival, f))))
            })
            .count()
    }
}

impl Standing<'_> {
    /// How much would have to change; factories that lack fewer capabilities are closer.
    fn distance(&self, job: &JobView) -> usize {
        let efforts: usize = self.failures.iter().map(|filter| effort(*filter)).sum();
        efforts + feasible::lacks(job, self.factory)
    }
}

/// A seat comes free by itself, a drain is one command, a missing tool is somebody's afternoon.
fn effort(filter: Filter) -> usize {
    match filter {
        Filter::Seats | Filter::InUse => 10,
        Filter::Excluded => 11,
        Filter::Quota => 12,
        Filter::Draining => 20,
        Filter::Stale => 30,
        Filter::Down => 31,
        Filter::Repo => 40,
        Filter::Product => 50,
        Filter::Unfit => 60,
        _ => 100,
    }
}
