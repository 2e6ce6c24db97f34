//! Whom a critical job without a place may push out.
//!
//! This module only names a victim. It never evicts: the holder is told through its lease, checkpoints and lets go,
//! and the fence decides as for every other release.

use std::cmp::Reverse;

use giga_domain::{JobId, Priority, Timestamp};

use crate::feasible::{self, Filter};
use crate::{JobView, Policy, RunningJob, Snapshot};

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
    if job.priority != Priority::Critical || !feasible::job_failures(job, snapshot, now, policy).is_empty() {
        return None;
    }
    let mut full = Vec::new();
    for factory in &snapshot.factories {
        if !feasible::pair_failures(job, factory, now).is_empty() {
            continue;
        }
        match feasible::factory_failures(job, factory).as_slice() {
            [] => return None,
            // More held than it has seats for: one seat less in use would still not be a free one.
            [Filter::Seats] if factory.seats_used <= factory.seat_limit && factory.seat_limit > 0 => {
                full.push(&factory.id);
            }
            _ => {}
        }
    }
    running
        .iter()
        .filter(|r| r.priority > Priority::Critical && r.evictions < policy.max_evictions && r.id != job.id)
        .filter(|r| full.contains(&&r.factory))
        .max_by_key(|r| (r.priority, r.started_at, Reverse(r.id)))
        .map(|r| r.id)
}
