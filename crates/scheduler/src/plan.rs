//! The answer of a plan, and the calls that make it.
//!
//! A plan never places what `feasible` would reject, never takes a seat, a concurrency key or a dollar twice, and never
//! depends on the order in which jobs or factories were given. It changes nothing: queue and snapshot stay as they
//! are, and what a placement uses up is counted inside the plan only.

use giga_domain::{FactoryId, JobId, Rev, Timestamp};

use crate::feasible::Filter;
use crate::fleet::Seats;
use crate::score::Score;
use crate::select::{Offered, Planner};
use crate::{Policy, ReadyQueue, Snapshot};

#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    pub job: JobId,
    /// The revision that was planned for: whoever applies it compares and sets on this.
    pub rev: Rev,
    pub factory: FactoryId,
    pub score: Score,
}

/// Jobs of one product and priority that ask for the same, had their turn, and have no place for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaced {
    /// The first of them.
    pub job: JobId,
    pub count: usize,
    /// What stands in the way: of the job alone if there is such a thing, else of the factory that came furthest.
    pub reason: Filter,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// In order of turn.
    pub placements: Vec<Placement>,
    /// Only what was looked at: jobs whose turn did not come before `limit`, jobs that are not ready and jobs on offer
    /// to a factory outside the snapshot are not listed.
    pub unplaced: Vec<Unplaced>,
}

/// Places up to `limit` jobs. One that is on offer is placed on the factory that it is on offer to, or nowhere.
pub fn plan(queue: &ReadyQueue, snapshot: &Snapshot, now: Timestamp, policy: &Policy, limit: usize) -> Plan {
    place(queue, snapshot, now, policy, limit, Offered::ToBeTaken)
}

/// The same for whoever makes offers: what is on offer already is left alone.
pub fn plan_offers(
    queue: &ReadyQueue,
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
    limit: usize,
) -> Plan {
    place(queue, snapshot, now, policy, limit, Offered::LeftAlone)
}

fn place(
    queue: &ReadyQueue,
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
    limit: usize,
    offered: Offered,
) -> Plan {
    let mut planner = Planner::new(queue, snapshot, now, policy, Seats::AsTheyAre, offered, None);
    while planner.plan.placements.len() < limit && planner.step() {}
    planner.plan
}
