//! Which of several factories gets the job.

use giga_domain::factory::FactoryRepo;
use giga_domain::{Health, Priority, ScoreTerm, Usd};
use giga_scheduler::{FactoryView, Filter, JobView, Policy, ProductPolicy, Weights, plan};

use crate::world::{
    NOW, before, capabilities, factory, factory_id, fleet, job, minutes, policy_of, queue, repo,
};

/// Where the jobs go, in order of turn.
fn placed(
    jobs: impl IntoIterator<Item = JobView>,
    factories: impl IntoIterator<Item = FactoryView>,
) -> Vec<String> {
    placed_under(&Policy::default(), jobs, factories)
}

fn placed_under(
    policy: &Policy,
    jobs: impl IntoIterator<Item = JobView>,
    factories: impl IntoIterator<Item = FactoryView>,
) -> Vec<String> {
    let plan = plan(&queue(jobs), &fleet(factories), NOW, policy, usize::MAX);
    plan.placements.into_iter().map(|p| p.factory.to_string()).collect()
}

fn gpu() -> FactoryView {
    FactoryView { capabilities: capabilities(&["os:linux", "engine:shell", "gpu"]), ..factory("a-gpu") }
}

fn linux(number: u64) -> JobView {
    JobView { capabilities: capabilities(&["os:linux"]), ..job(number) }
}

#[test]
fn rare_capabilities_are_kept_for_the_jobs_that_need_them() {
    let fleet = || ["b", "c", "d", "e"].map(factory).into_iter().chain([gpu()]);
    let eight: Vec<String> = placed((1..=8).map(linux), fleet());
    assert!(!eight.contains(&"a-gpu".to_owned()), "{eight:?}");
    // But nothing is kept idle for nobody.
    assert_eq!(placed((1..=9).map(linux), fleet()).last().map(String::as_str), Some("a-gpu"));
}

#[test]
fn work_spreads_over_equals_and_begins_with_the_lowest_id() {
    assert_eq!(placed([job(1), job(2), job(3)], [factory("b"), factory("a")]), ["a", "b", "a"]);
}

#[test]
fn a_job_goes_back_to_where_it_ran() {
    let again = JobView { last_factory: Some(factory_id("b")), ..job(1) };
    assert_eq!(placed([again.clone()], [factory("a"), factory("b")]), ["b"]);
    assert_eq!(placed([again.clone()], [factory("a"), FactoryView { seats_used: 2, ..factory("b") }]), ["a"]);
    // Where warmth counts for nothing the lowest id decides again.
    let weights = Weights::default().with(ScoreTerm::Affinity, 0.0);
    let cold = policy_of("demo", ProductPolicy { weights, ..ProductPolicy::default() });
    assert_eq!(placed_under(&cold, [again], [factory("a"), factory("b")]), ["a"]);
}

#[test]
fn a_warm_checkout_beats_a_cold_one_and_a_cold_one_beats_a_clone() {
    let wanting = |number| JobView { repo: Some("hello".to_owned()), ..job(number) };
    let warm = FactoryRepo { last_used_at: Some(before(minutes(5))), ..repo("hello") };
    let factories = [
        FactoryView { can_clone: true, seat_limit: 1, ..factory("a-clones") },
        FactoryView { repos: vec![repo("hello")], seat_limit: 1, ..factory("b-cold") },
        FactoryView { repos: vec![warm], seat_limit: 1, ..factory("c-warm") },
        FactoryView { seat_limit: 1, ..factory("d-without") },
    ];
    assert_eq!(
        placed([wanting(1), wanting(2), wanting(3), wanting(4)], factories),
        ["c-warm", "b-cold", "a-clones"]
    );
}

#[test]
fn healthy_cheap_and_idle_is_preferred() {
    let ill = FactoryView { health: Health::Degraded, ..factory("a") };
    assert_eq!(placed([job(1)], [ill, factory("b")]), ["b"]);
    let priced =
        |name: &str, cost| FactoryView { cost_per_hour: Some(Usd::from_micros(cost)), ..factory(name) };
    assert_eq!(placed([job(1)], [priced("a", 900), priced("b", 100)]), ["b"]);
    let busy = FactoryView { load: 3.0, ..factory("a") };
    assert_eq!(placed([job(1)], [busy, factory("b")]), ["b"]);
}

#[test]
fn what_cannot_run_is_counted_by_shape() {
    let wanting = |number| JobView { capabilities: capabilities(&["build"]), ..job(number) };
    let low = |number| JobView { priority: Priority::Low, ..job(number) };
    let queue = queue([wanting(1), wanting(2), wanting(3), low(4), low(5), low(6)]);
    let plan = plan(&queue, &fleet([factory("a")]), NOW, &Policy::default(), usize::MAX);
    let unplaced: Vec<_> = plan.unplaced.iter().map(|u| (u.job, u.count, u.reason)).collect();
    assert_eq!(unplaced, [(job(1).id, 3, Filter::Capabilities), (job(6).id, 1, Filter::Seats)]);
}

#[test]
fn a_capability_with_a_number_is_used_up_by_the_jobs_that_ask_for_it() {
    let has =
        |tokens: &[&str]| FactoryView { capabilities: capabilities(tokens), seat_limit: 9, ..factory("a") };
    let asks = |number, tokens: &[&str]| JobView { capabilities: capabilities(tokens), ..job(number) };
    let five = || (1..=5).map(|number| asks(number, &["gpu"]));
    assert_eq!(placed(five(), [has(&["gpu=2"])]).len(), 2);
    assert_eq!(placed(five(), [has(&["gpu"])]).len(), 5, "without a number nobody counts");
    assert_eq!(placed([asks(1, &["gpu=2"]), asks(2, &["gpu"])], [has(&["gpu=3"])]).len(), 2);
    assert_eq!(placed([asks(1, &["gpu=2"]), asks(2, &["gpu=2"])], [has(&["gpu=3"])]).len(), 1);
    // What others hold counts, and a job that asks for nothing of it is not in the way.
    let mut busy = has(&["gpu=2"]);
    busy.units_used.take(&capabilities(&["gpu=2"]));
    assert_eq!(placed([asks(1, &["gpu"]), job(2)], [busy.clone()]).len(), 1);
    let plan = plan(&queue(five()), &fleet([busy]), NOW, &Policy::default(), usize::MAX);
    assert_eq!(plan.unplaced.iter().map(|u| (u.count, u.reason)).collect::<Vec<_>>(), [(5, Filter::InUse)]);
    // More than there are is missing, not in use.
    let plan = giga_scheduler::plan(
        &queue([asks(1, &["gpu=4"])]),
        &fleet([has(&["gpu=2"])]),
        NOW,
        &Policy::default(),
        usize::MAX,
    );
    assert_eq!(plan.unplaced.iter().map(|u| u.reason).collect::<Vec<_>>(), [Filter::Capabilities]);
}
