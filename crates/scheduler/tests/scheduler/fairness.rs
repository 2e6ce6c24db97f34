//! Nobody waits for ever, and nobody is crowded out.

use giga_domain::{Priority, ProductId, Timestamp};
use giga_scheduler::{FactoryView, JobView, Policy, ProductPolicy, ReadyQueue, Snapshot, plan};

use crate::world::{NOW, factory, fleet, job, job_id, minutes, policy_of, product, queue};

fn seats(limit: u32) -> Snapshot {
    fleet([FactoryView { seat_limit: limit, ..factory("mac-1") }])
}

/// One seat, one job a minute, and a new critical job every minute: without ageing the low one never runs.
#[test]
fn a_low_job_gets_through_a_constant_stream_of_critical_ones() {
    let (policy, snapshot) = (Policy::default(), seats(1));
    let low = JobView { priority: Priority::Low, enqueued_at: NOW, ready_at: NOW, ..job(1) };
    let mut queue = queue([low.clone()]);
    let bound = policy.starvation_after * 3 + minutes(2);
    for minute in 0.. {
        let now = NOW.plus(minutes(minute));
        assert!(now.since(NOW) <= bound, "still waiting after {:?}", now.since(NOW));
        queue.upsert(JobView {
            priority: Priority::Critical,
            enqueued_at: now,
            ready_at: now,
            ..job(minute + 10)
        });
        let placed = plan(&queue, &snapshot, now, &policy, 1).placements[0].job;
        queue.remove(placed);
        if placed == low.id {
            assert!(minute >= 30, "a low job does not overtake critical ones at once");
            return;
        }
    }
}

/// The same across products: the stream comes from another one, which always holds less than its share.
#[test]
fn another_products_stream_does_not_starve_a_low_job() {
    let (policy, snapshot) = (Policy::default(), seats(1));
    let low = JobView { priority: Priority::Low, enqueued_at: NOW, ready_at: NOW, ..job(1) };
    let mut queue = queue([low.clone()]);
    for minute in 0..=95 {
        let now = NOW.plus(minutes(minute));
        queue.upsert(JobView {
            product: product("loud"),
            priority: Priority::Critical,
            enqueued_at: now,
            ready_at: now,
            ..job(minute + 10)
        });
        let placed = plan(&queue, &snapshot, now, &policy, 1).placements[0].job;
        queue.remove(placed);
        if placed == low.id {
            return;
        }
    }
    panic!("still waiting after 95 minutes");
}

fn crowd(name: &str, from: u64, count: u64, enqueued_at: Timestamp) -> impl Iterator<Item = JobView> {
    let product = product(name);
    (from..from + count).map(move |number| JobView {
        id: job_id(number),
        product: product.clone(),
        enqueued_at,
        ready_at: enqueued_at,
        ..job(0)
    })
}

fn placed_of(queue: &ReadyQueue, snapshot: &Snapshot, policy: &Policy, name: &ProductId) -> usize {
    let plan = plan(queue, snapshot, NOW, policy, usize::MAX);
    plan.placements.iter().filter(|p| queue.get(p.job).unwrap().product == *name).count()
}

#[test]
fn ten_jobs_beside_ten_thousand_older_ones_all_start() {
    let old = NOW.minus(minutes(10));
    let queue = queue(crowd("big", 0, 10_000, old).chain(crowd("small", 20_000, 10, NOW)));
    assert_eq!(placed_of(&queue, &seats(20), &Policy::default(), &product("small")), 10);
    // With fewer seats, half of them.
    assert_eq!(placed_of(&queue, &seats(8), &Policy::default(), &product("small")), 4);
}

#[test]
fn shares_are_weighed_and_what_runs_already_counts() {
    let queue = queue(crowd("big", 0, 1_000, NOW).chain(crowd("small", 20_000, 1_000, NOW)));
    let thrice = policy_of("small", ProductPolicy { share: 3.0, ..ProductPolicy::default() });
    assert_eq!(placed_of(&queue, &seats(40), &thrice, &product("small")), 30);

    let mut busy = seats(40);
    busy.running_by_product.insert(product("small"), 20);
    assert_eq!(placed_of(&queue, &busy, &Policy::default(), &product("small")), 10);
    assert_eq!(placed_of(&queue, &busy, &Policy::default(), &product("big")), 30);
}

#[test]
fn priority_comes_before_share_and_share_before_age() {
    let critical = JobView { priority: Priority::Critical, product: product("busy"), ..job(9) };
    let idle = JobView { product: product("idle"), ..job(5) };
    let older = JobView { product: product("busy"), enqueued_at: NOW.minus(minutes(20)), ..job(1) };
    let mut snapshot = seats(3);
    snapshot.running_by_product.insert(product("busy"), 50);
    let plan = plan(&queue([older, idle, critical]), &snapshot, NOW, &Policy::default(), 3);
    assert_eq!(plan.placements.iter().map(|p| p.job).collect::<Vec<_>>(), [job_id(9), job_id(5), job_id(1)]);
}
