//! Who may be pushed out, and who may not.

use giga_domain::job::Concurrency;
use giga_domain::{Evict, FactoryState, JobId, Priority, Usd};
use giga_scheduler::{
    Eviction, FactoryView, JobView, Policy, ProductPolicy, ReadyQueue, RunningJob, Snapshot, evictions, plan,
    plan_offers, preemption_victim,
};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{
    NOW, World, after, before, capabilities, factory, factory_id, fleet, full, job, job_id, minutes,
    policy_of, product, queue, worlds,
};

fn critical() -> JobView {
    JobView { priority: Priority::Critical, ..job(1) }
}

fn running(number: u64, priority: Priority, factory: &str, age: u64) -> RunningJob {
    RunningJob {
        id: job_id(number),
        product: product("demo"),
        priority,
        factory: factory_id(factory),
        started_at: before(minutes(age)),
        evictions: 0,
        evict: None,
    }
}

fn victim(job: &JobView, running: &[RunningJob], snapshot: &Snapshot) -> Option<JobId> {
    preemption_victim(job, running, snapshot, NOW, &Policy::default())
}

#[test]
fn the_lowest_priority_goes_first_and_of_those_the_youngest() {
    let held = [
        running(10, Priority::Normal, "mac-1", 1),
        running(11, Priority::Low, "mac-1", 50),
        running(12, Priority::Low, "mac-2", 5),
        running(13, Priority::Low, "mac-2", 20),
    ];
    assert_eq!(victim(&critical(), &held, &fleet([full("mac-1"), full("mac-2")])), Some(job_id(12)));
}

#[test]
fn between_equals_the_lowest_id_goes() {
    let held = [13, 11, 12].map(|number| running(number, Priority::Low, "mac-1", 5));
    assert_eq!(victim(&critical(), &held, &fleet([full("mac-1")])), Some(job_id(11)));
}

#[test]
fn only_a_critical_job_preempts_however_long_another_has_waited() {
    let old = JobView { priority: Priority::High, enqueued_at: before(minutes(600)), ..job(1) };
    assert_eq!(victim(&old, &[running(10, Priority::Low, "mac-1", 1)], &fleet([full("mac-1")])), None);
}

#[test]
fn a_critical_job_is_never_the_victim() {
    assert_eq!(
        victim(&critical(), &[running(10, Priority::Critical, "mac-1", 1)], &fleet([full("mac-1")])),
        None
    );
}

#[test]
fn nobody_is_pushed_out_while_there_is_a_free_seat() {
    let held = [running(10, Priority::Low, "mac-1", 1)];
    assert_eq!(victim(&critical(), &held, &fleet([full("mac-1"), factory("mac-2")])), None);
}

#[test]
fn nobody_is_pushed_out_where_it_would_not_help() {
    let held = [running(10, Priority::Low, "mac-1", 1)];
    let other_tools = FactoryView { capabilities: capabilities(&["os:macos"]), ..full("mac-1") };
    let draining = FactoryView { state: FactoryState::Draining, ..full("mac-1") };
    let crowded = FactoryView { seats_used: 3, ..full("mac-1") };
    let wanting = JobView { capabilities: capabilities(&["os:linux"]), ..critical() };
    for factory in [other_tools, draining, crowded] {
        assert_eq!(victim(&wanting, &held, &fleet([factory])), None);
    }
    let excluded = JobView { excluded: vec![(factory_id("mac-1"), after(minutes(1)))], ..critical() };
    let later = JobView { ready_at: after(minutes(1)), ..critical() };
    let shut = JobView { concurrency: Some(Concurrency { key: "k".to_owned(), limit: 0 }), ..critical() };
    for job in [excluded, later, shut] {
        assert_eq!(victim(&job, &held, &fleet([full("mac-1")])), None);
    }
    let paused = policy_of("demo", ProductPolicy { paused: true, ..ProductPolicy::default() });
    assert_eq!(preemption_victim(&critical(), &held, &fleet([full("mac-1")]), NOW, &paused), None);
}

#[test]
fn a_job_is_not_pushed_out_for_ever() {
    let snapshot = fleet([full("mac-1")]);
    let held = |evictions| [RunningJob { evictions, ..running(10, Priority::Low, "mac-1", 1) }];
    assert_eq!(victim(&critical(), &held(2), &snapshot), Some(job_id(10)));
    assert_eq!(victim(&critical(), &held(3), &snapshot), None);
}

#[test]
fn one_that_is_asked_already_is_not_asked_again() {
    let evict = Some(Evict::new(None, after(minutes(1))));
    let held = [
        RunningJob { evict, ..running(10, Priority::Low, "mac-1", 1) },
        running(11, Priority::Normal, "mac-1", 1),
    ];
    assert_eq!(victim(&critical(), &held, &fleet([full("mac-1")])), Some(job_id(11)));
}

fn criticals(count: u64) -> ReadyQueue {
    queue((1..=count).map(|number| JobView { priority: Priority::Critical, ..job(number) }))
}

fn asked(queue: &ReadyQueue, held: &[RunningJob], snapshot: &Snapshot, policy: &Policy) -> Vec<Eviction> {
    evictions(queue, held, snapshot, NOW, policy, 16)
}

fn leaving(number: u64, factory: &str, for_job: Option<u64>) -> RunningJob {
    let evict = Evict::new(for_job.map(job_id), after(minutes(1)));
    RunningJob { evict: Some(evict), ..running(number, Priority::Low, factory, 1) }
}

#[test]
fn each_critical_job_without_a_place_gets_one_seat_of_its_own() {
    let held: Vec<RunningJob> = (10..14).map(|number| running(number, Priority::Low, "mac-1", 1)).collect();
    let crowd = FactoryView { seat_limit: 5, seats_used: 4, ..factory("mac-1") };
    // The first takes the seat that is free.
    let found = asked(&criticals(3), &held, &fleet([crowd]), &Policy::default());
    let pairs: Vec<(JobId, JobId)> = found.iter().map(|e| (e.victim, e.for_job)).collect();
    assert_eq!(pairs, [(job_id(10), job_id(2)), (job_id(11), job_id(3))]);
}

#[test]
fn a_seat_that_is_coming_free_is_enough() {
    let full = fleet([full("mac-1")]);
    let stays = running(11, Priority::Low, "mac-1", 1);
    // For this very job, for a job that is gone, or for nobody.
    for for_job in [Some(1), Some(99), None] {
        let held = [leaving(10, "mac-1", for_job), stays.clone()];
        assert_eq!(asked(&criticals(1), &held, &full, &Policy::default()), [], "{for_job:?}");
        let second = asked(&criticals(2), &held, &full, &Policy::default());
        assert_eq!(second, [Eviction { victim: job_id(11), for_job: job_id(2) }], "{for_job:?}");
    }
    // A seat elsewhere, where it could not run, is none.
    let held = [leaving(10, "linux-1", None), stays];
    let picky = JobView { capabilities: capabilities(&["os:macos"]), ..critical() };
    let mac = FactoryView { capabilities: capabilities(&["os:macos"]), ..self::full("mac-1") };
    let found = asked(&queue([picky]), &held, &fleet([mac, self::full("linux-1")]), &Policy::default());
    assert_eq!(found, [Eviction { victim: job_id(11), for_job: job_id(1) }]);
}

#[test]
fn nobody_is_asked_for_a_job_that_could_not_start_on_the_seat() {
    let held: Vec<RunningJob> = (10..14).map(|number| running(number, Priority::Low, "mac-1", 1)).collect();
    let full = fleet([FactoryView { seat_limit: 4, seats_used: 4, ..factory("mac-1") }]);
    let concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1 });
    let keyed = |number| JobView {
        priority: Priority::Critical,
        concurrency: concurrency.clone(),
        cost_cap: Some(Usd::from_micros(2)),
        ..job(number)
    };
    assert_eq!(asked(&queue([keyed(1), keyed(2)]), &held, &full, &Policy::default()).len(), 1);
    let dear = |number| JobView { concurrency: None, ..keyed(number) };
    let budget = ProductPolicy { budget_left: Some(Usd::from_micros(5)), ..ProductPolicy::default() };
    let found = asked(&queue((1..=4).map(dear)), &held, &full, &policy_of("demo", budget));
    assert_eq!(found.len(), 2, "the budget is open for two");
    let off = Policy { max_evictions: 0, ..Policy::default() };
    assert_eq!(asked(&criticals(1), &held, &full, &off), []);
}

#[test]
fn a_seat_that_was_given_up_goes_to_the_job_that_it_was_given_up_for() {
    let older = JobView { priority: Priority::Critical, enqueued_at: before(minutes(9)), ..job(2) };
    let snapshot = fleet([FactoryView { seat_limit: 1, ..factory("mac-1") }]);
    let queue = queue([critical(), older]);
    let first = |snapshot: &Snapshot| {
        let plan = plan(&queue, snapshot, NOW, &Policy::default(), 8);
        plan.placements.iter().map(|p| p.job).collect::<Vec<_>>()
    };
    assert_eq!(first(&snapshot), [job_id(2)]);
    let promised = Snapshot { promised: vec![job_id(1), job_id(77)], ..snapshot.clone() };
    assert_eq!(first(&promised), [job_id(1)]);
    // One that cannot use it does not keep it.
    let elsewhere = Snapshot {
        factories: vec![FactoryView { products: vec![product("other")], ..factory("mac-1") }],
        ..promised
    };
    assert_eq!(first(&elsewhere), []);
}

#[test]
fn a_crowd_that_nobody_can_help_does_not_stand_before_one_that_can_be_helped() {
    let linux = FactoryView { capabilities: capabilities(&["os:linux"]), ..full("linux-1") };
    let mac = FactoryView { capabilities: capabilities(&["os:macos"]), ..full("mac-1") };
    let held = [running(9_000, Priority::Low, "mac-1", 1), running(9_001, Priority::Critical, "linux-1", 1)];
    let of = |number, os, age| JobView {
        priority: Priority::Critical,
        capabilities: capabilities(&[os]),
        enqueued_at: before(minutes(age)),
        ..job(number)
    };
    let crowd = (1..=5_000).map(|number| of(number, "os:linux", 9));
    let queue = queue(crowd.chain([of(6_000, "os:macos", 1)]));
    let found = asked(&queue, &held, &fleet([linux, mac]), &Policy::default());
    assert_eq!(found, [Eviction { victim: job_id(9_000), for_job: job_id(6_000) }]);
}

#[test]
fn one_that_a_factory_missed_says_nothing_about_those_like_it() {
    let held = [running(10, Priority::Low, "mac-1", 1)];
    let excluded = vec![(factory_id("mac-1"), after(minutes(1)))];
    let older = JobView { excluded, enqueued_at: before(minutes(9)), ..critical() };
    let younger = JobView { id: job_id(2), ..critical() };
    let found = asked(&queue([older, younger]), &held, &fleet([full("mac-1")]), &Policy::default());
    assert_eq!(found, [Eviction { victim: job_id(10), for_job: job_id(2) }]);
}

/// Job by job, with a look at the whole fleet for each.
fn asked_the_long_way(world: &World, held: &[RunningJob], most: usize) -> Vec<Eviction> {
    let World { mut snapshot, mut policy, .. } = world.clone();
    let queue = queue(world.jobs.clone());
    let placed = plan_offers(&queue, &snapshot, NOW, &policy, 2_000).placements;
    for placement in &placed {
        let factory = snapshot.factories.iter_mut().find(|f| f.id == placement.factory).unwrap();
        let job = queue.get(placement.job).unwrap();
        factory.seats_used += 1;
        factory.units_used.take(&job.capabilities);
        take(job, &mut snapshot, &mut policy);
    }
    let waits = |id: JobId| queue.get(id).is_some() && placed.iter().all(|p| p.job != id);
    let for_whom = |job: &RunningJob| job.evict?.for_job.filter(|id| waits(*id));
    let served: Vec<JobId> = held.iter().filter_map(for_whom).collect();
    let leaving = held.iter().filter(|job| job.evict.is_some() && for_whom(job).is_none());
    let mut coming_free: Vec<&RunningJob> = leaving.collect();
    let mut staying: Vec<RunningJob> = held.iter().filter(|job| job.evict.is_none()).cloned().collect();
    let mut asked = Vec::new();
    for job in queue.ready_in_order(|job| job.priority == Priority::Critical).filter(|job| waits(job.id)) {
        if asked.len() >= most {
            break;
        }
        // Somebody who could be pushed out from there: then a seat is all that it lacks there.
        let lenient = Policy { max_evictions: 1, ..policy.clone() };
        let would_do = |seat: &&RunningJob| {
            let there = RunningJob { factory: seat.factory.clone(), ..running(9_999, Priority::Low, "x", 1) };
            preemption_victim(job, &[there], &snapshot, NOW, &lenient).is_some()
        };
        if served.contains(&job.id) {
        } else if let Some(at) = coming_free.iter().position(would_do) {
            coming_free.swap_remove(at);
        } else if let Some(victim) = preemption_victim(job, &staying, &snapshot, NOW, &policy) {
            staying.retain(|held| held.id != victim);
            asked.push(Eviction { victim, for_job: job.id });
        } else {
            continue;
        }
        take(job, &mut snapshot, &mut policy);
    }
    asked
}

fn take(job: &JobView, snapshot: &mut Snapshot, policy: &mut Policy) {
    if let Some(concurrency) = &job.concurrency {
        let key = (job.product.clone(), concurrency.key.clone());
        *snapshot.running_by_key.entry(key).or_default() += 1;
    }
    if let Some(product) = policy.products.get_mut(&job.product) {
        product.reserve(product.reserve_for(job));
    }
}

fn any_running() -> impl Strategy<Value = RunningJob> {
    let evict = option::weighted(0.2, option::of(1..40_u64));
    let priority = select(&[Priority::Critical, Priority::Normal, Priority::Low]);
    (0..7_u32, priority, 0..4_u64, 0..5_u32, evict).prop_map(|(at, priority, age, evictions, evict)| {
        let evict = evict.map(|for_job| leaving(1, "x", for_job).evict.unwrap());
        RunningJob { evictions, evict, ..running(1, priority, &format!("f-{at:03}"), age) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn asks_whom_the_long_way_asks(world in worlds(), held in vec(any_running(), 0..16), most in 1..6_usize) {
        let mut world = world;
        for (number, job) in world.jobs.iter_mut().enumerate() {
            if number % 3 > 0 {
                job.priority = Priority::Critical;
            }
        }
        for factory in &mut world.snapshot.factories {
            factory.seats_used = factory.seats_used.max(factory.seat_limit.saturating_sub(1));
        }
        let ids = (5_000..).map(job_id);
        let held: Vec<RunningJob> = held.into_iter().zip(ids).map(|(job, id)| RunningJob { id, ..job }).collect();
        let found = evictions(&queue(world.jobs.clone()), &held, &world.snapshot, NOW, &world.policy, most);
        prop_assert_eq!(found, asked_the_long_way(&world, &held, most));
    }
}
