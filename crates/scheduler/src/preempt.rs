//! Whom a critical job without a place may push out.
//!
//! This module only names victims. It never evicts: the holder learns of it through its lease, checkpoints and releases,
//! and the fence decides as for every other release.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use giga_domain::{FactoryId, JobId, Priority, Timestamp};

use crate::feasible::{self, Filter};
use crate::queue::FitId;
use crate::{JobView, Policy, ReadyQueue, RunningJob, Snapshot, plan_offers};

/// Where so many jobs find a place there is no need to push anybody out.
const LOOK_AHEAD: usize = 2_000;
/// Jobs of one shape get the same answer, so of each no more are looked at: all that may have a place, and some.
const OF_EACH_SHAPE: usize = LOOK_AHEAD + 200;
/// How often one call goes through all factories. Whoever waits behind so many that nobody helped is looked at later.
const FLEETS_LOOKED_AT: usize = 200;

/// Somebody to be asked, and who needs the seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eviction {
    pub victim: JobId,
    pub for_job: JobId,
}

/// Whom to ask now, so that critical jobs which the plan leaves without a place get one; `most` at a time.
///
/// One seat for each: nobody is asked for a job that a seat is coming free for, and nobody is asked twice. What is asked
/// for takes its key and its money, so that no seat is cleared for a job that could not be started on it.
pub fn evictions(
    queue: &ReadyQueue,
    running: &[RunningJob],
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
    most: usize,
) -> Vec<Eviction> {
    let critical = |job: &JobView| job.priority == Priority::Critical;
    // The cheapest question first: where nobody may be asked, all the others are idle.
    let nobody_to_ask = !running.iter().any(|job| job.evict.is_none() && may_go(job, policy));
    if nobody_to_ask || queue.ready_in_order(critical).next().is_none() {
        return Vec::new();
    }
    let plan = plan_offers(queue, snapshot, now, policy, LOOK_AHEAD);
    if plan.placements.len() >= LOOK_AHEAD {
        return Vec::new();
    }
    let (mut snapshot, mut policy) = (snapshot.clone(), policy.clone());
    for placement in &plan.placements {
        let Some(job) = queue.get(placement.job) else { continue };
        if let Some(factory) = snapshot.factories.iter_mut().find(|f| f.id == placement.factory) {
            factory.hold(job);
        }
        take(&mut snapshot, &mut policy, job);
    }
    let placed: HashSet<JobId> = plan.placements.iter().map(|placement| placement.job).collect();
    let waits = |job: JobId| queue.get(job).is_some() && !placed.contains(&job);
    let (leaving, mut staying): (Vec<&RunningJob>, Vec<&RunningJob>) =
        running.iter().partition(|job| job.evict.is_some());
    staying.retain(|job| may_go(job, &policy));
    let for_whom = |job: &RunningJob| job.evict.and_then(|evict| evict.for_job).filter(|id| waits(*id));
    let served: HashSet<JobId> = leaving.iter().filter_map(|job| for_whom(job)).collect();
    let mut coming_free: Vec<&RunningJob> =
        leaving.into_iter().filter(|job| for_whom(job).is_none()).collect();
    let mut asked = Vec::new();
    let mut lookout = Lookout::default();
    for (fit, job) in queue.ready_heads(critical, OF_EACH_SHAPE).filter(|(_, job)| !placed.contains(&job.id))
    {
        if asked.len() >= most || staying.is_empty() || lookout.looks >= FLEETS_LOOKED_AT {
            break;
        }
        if served.contains(&job.id) {
            take(&mut snapshot, &mut policy, job);
            continue;
        }
        if !feasible::job_failures(job, &snapshot, now, &policy).is_empty() {
            continue;
        }
        let full = lookout.full_factories(fit, job, &snapshot, now);
        if full.is_empty() {
            continue;
        }
        if let Some(at) = coming_free.iter().position(|seat| full.contains(&seat.factory)) {
            coming_free.swap_remove(at);
            take(&mut snapshot, &mut policy, job);
        } else if let Some(victim) = victim_of(job, staying.iter().copied(), full) {
            staying.retain(|held| held.id != victim);
            asked.push(Eviction { victim, for_job: job.id });
            take(&mut snapshot, &mut policy, job);
        } else {
            full.clear();
        }
    }
    asked
}

/// Which factories a seat is lacking on, kept for all jobs that the same ones can run. Nobody joins those who may be
/// asked or who leave, so where one such job was not helped none will be: whoever finds that out clears the answer.
#[derive(Default)]
struct Lookout {
    known: HashMap<FitId, HashSet<FactoryId>>,
    /// Of a job that some factories may not have now, whatever they can run.
    of_one: HashSet<FactoryId>,
    looks: usize,
}

impl Lookout {
    fn full_factories(
        &mut self,
        fit: FitId,
        job: &JobView,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> &mut HashSet<FactoryId> {
        let is_like_others = feasible::live_offer(job, now).is_none()
            && job.unfit().is_empty()
            && job.excluded.iter().all(|(_, until)| *until <= now);
        if !is_like_others {
            self.looks += 1;
            self.of_one = full_factories(job, snapshot, now);
            return &mut self.of_one;
        }
        self.known.entry(fit).or_insert_with(|| {
            self.looks += 1;
            full_factories(job, snapshot, now)
        })
    }
}

/// What a job uses up beside its seat.
fn take(snapshot: &mut Snapshot, policy: &mut Policy, job: &JobView) {
    if let Some(concurrency) = &job.concurrency {
        let key = (job.product.clone(), concurrency.key.clone());
        *snapshot.running_by_key.entry(key).or_default() += 1;
    }
    if let Some(product) = policy.products.get_mut(&job.product) {
        let usd = product.reserve_for(job);
        product.reserve(usd);
    }
}

/// The lowest-priority, youngest running job on a factory where `job` would be feasible if that seat were free.
///
/// `None` unless the job was submitted as critical, has no feasible factory as things stand, and a free seat is all it
/// lacks. Age never makes a job preempt: it lifts its turn, not its rights over running work.
pub fn preemption_victim(
    job: &JobView,
    running: &[RunningJob],
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
) -> Option<JobId> {
    let critical = job.priority == Priority::Critical;
    if !critical || !feasible::job_failures(job, snapshot, now, policy).is_empty() {
        return None;
    }
    let full = full_factories(job, snapshot, now);
    let staying = running.iter().filter(|held| held.evict.is_none() && may_go(held, policy));
    victim_of(job, staying, &full)
}

/// Whether a job may be pushed out at all.
fn may_go(job: &RunningJob, policy: &Policy) -> bool {
    job.priority > Priority::Critical && job.evictions < policy.max_evictions
}

/// Where one seat is all that a job lacks which could start otherwise. Empty where it has a place, or lacks more than
/// that everywhere.
fn full_factories(job: &JobView, snapshot: &Snapshot, now: Timestamp) -> HashSet<FactoryId> {
    let mut full = HashSet::new();
    for factory in &snapshot.factories {
        if !feasible::pair_failures(job, factory, now).is_empty() {
            continue;
        }
        match feasible::factory_failures(job, factory).as_slice() {
            [] => return HashSet::new(),
            // More held than it has seats for: one seat less in use would still not be a free one.
            [Filter::Seats] if factory.seats_used <= factory.seat_limit && factory.seat_limit > 0 => {
                full.insert(factory.id.clone());
            }
            _ => {}
        }
    }
    full
}

fn victim_of<'a>(
    job: &JobView,
    may_go: impl Iterator<Item = &'a RunningJob>,
    full: &HashSet<FactoryId>,
) -> Option<JobId> {
    may_go
        .filter(|r| r.id != job.id && full.contains(&r.factory))
        .max_by_key(|r| (r.priority, r.started_at, Reverse(r.id)))
        .map(|r| r.id)
}
