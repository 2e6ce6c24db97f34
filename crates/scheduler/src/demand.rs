//! How many more factories of each pool there is work for: the plan again, with factories that are not there yet.
//!
//! Whoever is not there yet comes after whoever is, whatever the score: a seat that is free costs nothing. Everything else
//! is as in a plan (priorities, budgets, fair shares, keys, accounts), so work that could not be placed anyhow starts
//! nothing. This module never says what to do: how many a pool may have and when one leaves is `scale`'s.

use std::collections::HashMap;

use giga_domain::{FactoryId, JobId, PoolName, Timestamp};

use crate::fleet::Seats;
use crate::select::{Offered, Planner};
use crate::{FactoryView, Policy, ReadyQueue, Snapshot};

/// A pool, as far as its demand goes.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolView {
    pub name: PoolName,
    /// What a new factory of it would be like; its id stands for none.
    pub template: FactoryView,
    /// Members that are on their way.
    pub starting: Vec<FactoryId>,
    /// How many more it may have.
    pub room: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolDemand {
    /// More factories that would have work now.
    pub factories: u32,
    /// Jobs that they would take.
    pub jobs: u32,
    /// Jobs that those on their way will take.
    pub coming: u32,
    /// Of those on their way, the ones that no job is meant for.
    pub spare: Vec<FactoryId>,
}

/// Of every pool; and the factories of the snapshot that get a job, none of which is idle then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    pub pools: HashMap<PoolName, PoolDemand>,
    pub chosen: Vec<FactoryId>,
    /// Jobs that wait for a factory of a pool: on its way where it has an id, else still to be started.
    pub waiting: HashMap<JobId, (PoolName, Option<FactoryId>)>,
}

/// A plan never looks at more of a pool than this: who wants more gets it in the next round.
const MOST_AT_ONCE: u32 = 64;

pub fn demand(
    queue: &ReadyQueue,
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
    pools: &[PoolView],
) -> Demand {
    let mut ordered: Vec<&PoolView> = pools.iter().collect();
    // The cheapest first: it is taken where several would do.
    ordered.sort_by(|a, b| {
        let cost = |pool: &PoolView| pool.template.cost_per_hour.unwrap_or_default();
        cost(a).cmp(&cost(b)).then_with(|| a.name.cmp(&b.name))
    });
    let mut with_pools = snapshot.clone();
    let mut absent: HashMap<FactoryId, Absent<'_>> = HashMap::new();
    for (id, pool, is_new) in on_their_way(&ordered).chain(thought_of(&ordered)) {
        with_pools.factories.push(FactoryView { id: id.clone(), ..pool.template.clone() });
        with_pools.absent.insert(id.clone(), absent.len());
        absent.insert(id, Absent { pool, is_new, jobs: 0 });
    }
    let mut planner =
        Planner::new(queue, &with_pools, now, policy, Seats::AsTheyAre, Offered::LeftAlone, None);
    while planner.step() {}
    let placements = planner.plan.placements;

    let mut demand = Demand::default();
    for placement in placements {
        match absent.get_mut(&placement.factory) {
            Some(absent) => {
                absent.jobs += 1;
                let on_its_way = (!absent.is_new).then_some(placement.factory);
                demand.waiting.insert(placement.job, (absent.pool.name.clone(), on_its_way));
            }
            None => demand.chosen.push(placement.factory),
        }
    }
    demand.chosen.sort_unstable();
    demand.chosen.dedup();
    for pool in pools {
        demand.pools.insert(pool.name.clone(), PoolDemand::default());
    }
    for (id, absent) in absent {
        let of_pool = demand.pools.entry(absent.pool.name.clone()).or_default();
        match (absent.is_new, absent.jobs) {
            (true, 0) => {}
            (true, jobs) => {
                of_pool.factories += 1;
                of_pool.jobs += jobs;
            }
            (false, 0) => of_pool.spare.push(id),
            (false, jobs) => of_pool.coming += jobs,
        }
    }
    demand.pools.values_mut().for_each(|of_pool| of_pool.spare.sort_unstable());
    demand
}

struct Absent<'a> {
    pool: &'a PoolView,
    is_new: bool,
    jobs: u32,
}

fn on_their_way<'a>(pools: &[&'a PoolView]) -> impl Iterator<Item = (FactoryId, &'a PoolView, bool)> {
    pools.iter().flat_map(|pool| pool.starting.iter().map(|id| (id.clone(), *pool, false)))
}

fn thought_of<'a>(pools: &[&'a PoolView]) -> impl Iterator<Item = (FactoryId, &'a PoolView, bool)> {
    pools.iter().flat_map(|pool| {
        (0..pool.room.min(MOST_AT_ONCE)).filter_map(|n| Some((stand_in(&pool.name, n)?, *pool, true)))
    })
}

/// The id of a factory that is only thought of: no member of the pool is called like it, because theirs have no dot before
/// the number.
fn stand_in(pool: &PoolName, number: u32) -> Option<FactoryId> {
    format!("{pool}.new-{number}").parse().ok()
}
