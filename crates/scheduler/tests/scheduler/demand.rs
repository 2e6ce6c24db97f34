//! How many more factories there is work for.

use giga_domain::job::Concurrency;
use giga_domain::{Priority, Usd};
use giga_scheduler::{
    Demand, FactoryView, JobView, Policy, PoolDemand, PoolView, ProductPolicy, Snapshot, demand, plan_offers,
};
use proptest::prelude::*;

use crate::world::{
    NOW, World, capabilities, factory, factory_id, fleet, full, job, policy_of, product, queue, worlds,
};

fn pool(name: &str, room: u32) -> PoolView {
    PoolView { name: name.parse().unwrap(), template: factory("template"), starting: Vec::new(), room }
}

fn asked(
    policy: &Policy,
    jobs: impl IntoIterator<Item = JobView>,
    fleet: &Snapshot,
    pools: &[PoolView],
) -> Demand {
    demand(&queue(jobs), fleet, NOW, policy, pools)
}

fn of(demand: &Demand, pool: &str) -> PoolDemand {
    demand.pools[&pool.parse().unwrap()].clone()
}

fn wanted(
    policy: &Policy,
    jobs: impl IntoIterator<Item = JobView>,
    fleet: &Snapshot,
    room: u32,
) -> (u32, u32) {
    let PoolDemand { factories, jobs, .. } = of(&asked(policy, jobs, fleet, &[pool("p", room)]), "p");
    (factories, jobs)
}

#[test]
fn seats_decide_how_many_are_wanted_and_the_pool_how_many_there_may_be() {
    let policy = Policy::default();
    assert_eq!(wanted(&policy, [], &fleet([]), 8), (0, 0), "nothing to do, nobody wanted");
    assert_eq!(wanted(&policy, (1..=5).map(job), &fleet([]), 8), (3, 5), "two seats each");
    assert_eq!(wanted(&policy, (1..=50).map(job), &fleet([]), 8), (8, 16));
    assert_eq!(wanted(&policy, (1..=50).map(job), &fleet([]), 0), (0, 0));
}

#[test]
fn free_seats_that_are_there_come_first_whatever_they_score() {
    let policy = Policy::default();
    let busy = FactoryView { load: 50.0, ..factory("z-busy") };
    let demand = asked(&policy, [job(1), job(2), job(3)], &fleet([busy, full("full")]), &[pool("p", 8)]);
    assert_eq!(of(&demand, "p").jobs, 1);
    assert_eq!(demand.chosen, [factory_id("z-busy")]);
}

#[test]
fn those_on_their_way_come_before_new_ones() {
    let starting = vec![factory_id("p-1"), factory_id("p-2"), factory_id("p-3")];
    let pools = [PoolView { starting, ..pool("p", 8) }];
    let demand = asked(&Policy::default(), (1..=3).map(job), &fleet([]), &pools);
    let spare = vec![factory_id("p-3")];
    assert_eq!(of(&demand, "p"), PoolDemand { factories: 0, jobs: 0, coming: 3, spare });
}

#[test]
fn what_could_not_be_placed_anyhow_starts_nothing() {
    let paused = policy_of("demo", ProductPolicy { paused: true, ..ProductPolicy::default() });
    assert_eq!(wanted(&paused, (1..=9).map(job), &fleet([]), 8), (0, 0));
    let left = Some(Usd::from_dollars(3));
    let poor = policy_of("demo", ProductPolicy { budget_left: left, ..ProductPolicy::default() });
    let dear = |n| JobView { cost_cap: Some(Usd::from_dollars(1)), ..job(n) };
    assert_eq!(wanted(&poor, (1..=9).map(dear), &fleet([]), 8), (2, 3), "three dollars, three jobs");
    let one_at_a_time = Some(Concurrency { key: "k".into(), limit: 1 });
    let serial = |n| JobView { concurrency: one_at_a_time.clone(), ..job(n) };
    assert_eq!(wanted(&Policy::default(), (1..=9).map(serial), &fleet([]), 8), (1, 1));
    let elsewhere = |n| JobView { capabilities: capabilities(&["gpu"]), ..job(n) };
    assert_eq!(wanted(&Policy::default(), (1..=9).map(elsewhere), &fleet([]), 8), (0, 0));
    let only = PoolView {
        template: FactoryView { products: vec![product("other")], ..factory("t") },
        ..pool("p", 8)
    };
    assert_eq!(of(&asked(&Policy::default(), [job(1)], &fleet([]), &[only]), "p").factories, 0);
}

#[test]
fn each_job_wants_one_factory_of_the_cheapest_pool_that_fits() {
    let priced = |name: &str, usd, tokens: &[&str]| PoolView {
        template: FactoryView {
            cost_per_hour: Some(Usd::from_dollars(usd)),
            capabilities: capabilities(tokens),
            ..factory("t")
        },
        ..pool(name, 4)
    };
    let pools = [
        priced("gpu", 9, &["os:linux", "engine:shell", "gpu"]),
        priced("small", 1, &["os:linux", "engine:shell"]),
    ];
    let gpu = JobView { capabilities: capabilities(&["gpu"]), priority: Priority::Low, ..job(9) };
    let demand = asked(&Policy::default(), [job(1), job(2), gpu], &fleet([]), &pools);
    assert_eq!((of(&demand, "small").jobs, of(&demand, "gpu").jobs), (2, 1));
}

proptest! {
    /// A pool that may have nobody changes nothing, and one that may adds places without taking any away.
    #[test]
    fn it_is_the_plan_with_more_places(world in worlds(), room in 0..5_u32) {
        let World { jobs, snapshot, policy } = world;
        let queue = queue(jobs);
        let plain = plan_offers(&queue, &snapshot, NOW, &policy, usize::MAX);
        let pools = [pool("p", room)];
        let demand = demand(&queue, &snapshot, NOW, &policy, &pools);
        let more = of(&demand, "p");
        prop_assert!(more.factories <= room);
        prop_assert!(more.jobs <= more.factories * 2 && more.jobs >= more.factories);
        if room == 0 {
            let mut chosen: Vec<_> = plain.placements.iter().map(|p| p.factory.clone()).collect();
            chosen.sort_unstable();
            chosen.dedup();
            prop_assert_eq!(demand.chosen, chosen);
        }
    }
}
