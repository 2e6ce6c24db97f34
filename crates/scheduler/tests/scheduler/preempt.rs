//! Who may be pushed out, and who may not.

use giga_domain::job::Concurrency;
use giga_domain::{FactoryState, JobId, Priority};
use giga_scheduler::{FactoryView, JobView, Policy, ProductPolicy, RunningJob, Snapshot, preemption_victim};

use crate::world::{
    NOW, after, before, capabilities, factory, factory_id, fleet, full, job, job_id, minutes, policy_of,
    product,
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
