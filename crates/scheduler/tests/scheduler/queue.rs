//! The queue itself: nothing is lost, nothing stays behind.

use giga_domain::Priority;
use giga_scheduler::{FactoryView, JobView, Plan, Policy, ReadyQueue, plan, plan_offers};

use crate::world::{NOW, after, factory, factory_id, fleet, job, job_id, minutes, queue};

#[test]
fn upsert_replaces_and_remove_returns_what_was_there() {
    let mut queue = ReadyQueue::new();
    assert!(queue.is_empty());
    queue.upsert(job(1));
    let raised = JobView { priority: Priority::High, ..job(1) };
    queue.upsert(raised.clone());
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.get(job_id(1)), Some(&raised));
    assert_eq!(queue.remove(job_id(1)), Some(raised));
    assert_eq!(queue.remove(job_id(1)), None);
    assert!(queue.is_empty() && queue.get(job_id(1)).is_none());
}

#[test]
fn a_shape_lives_as_long_as_its_last_job() {
    let mut queue = queue([job(1), job(2), JobView { ready_at: after(minutes(5)), ..job(3) }]);
    queue.upsert(JobView { priority: Priority::Low, ..job(4) });
    assert_eq!(queue.shapes(), 2);
    queue.remove(job_id(4));
    assert_eq!(queue.shapes(), 1);
    for number in [1, 2] {
        queue.remove(job_id(number));
    }
    assert_eq!(queue.shapes(), 1, "a job that waits for its time still counts");
    queue.remove(job_id(3));
    assert_eq!(queue.shapes(), 0);
}

#[test]
fn iter_goes_by_id() {
    let queue = queue([job(3), job(1), job(2)]);
    assert_eq!(queue.iter().map(|j| j.id).collect::<Vec<_>>(), [job_id(1), job_id(2), job_id(3)]);
}

#[test]
fn a_job_on_offer_is_seen_by_its_factory_alone_and_by_all_after_the_deadline() {
    let offered = JobView { offered_to: Some((factory_id("mac-1"), after(minutes(1)))), ..job(1) };
    let queue = queue([offered]);
    let placed_at =
        |name: &str, now| plan(&queue, &fleet([factory(name)]), now, &Policy::default(), 1).placements.len();
    assert_eq!((placed_at("mac-1", NOW), placed_at("mac-2", NOW)), (1, 0));
    assert_eq!(placed_at("mac-2", after(minutes(1))), 1);
}

#[test]
fn what_is_not_ready_is_not_even_looked_at() {
    let offered = Some((factory_id("mac-1"), after(minutes(1))));
    let queue = queue([
        JobView { ready_at: after(minutes(5)), ..job(1) },
        JobView { ready_at: after(minutes(5)), offered_to: offered, ..job(2) },
    ]);
    assert_eq!(plan(&queue, &fleet([factory("mac-1")]), NOW, &Policy::default(), 9), Plan::default());
}

#[test]
fn summaries_tell_the_queue_by_shape() {
    let old = JobView { enqueued_at: NOW.minus(minutes(9)), ready_at: NOW, ..job(7) };
    let low = JobView { priority: Priority::Low, ..job(2) };
    let mut queue = queue([job(1), old.clone(), low, JobView { ready_at: after(minutes(5)), ..job(3) }]);
    queue.settle(NOW);
    let groups: Vec<_> =
        queue.summaries().map(|s| (s.representative.id, s.count, s.oldest_enqueued_at)).collect();
    assert_eq!(groups, [(job_id(7), 2, old.enqueued_at), (job_id(2), 1, job(2).enqueued_at)]);
}

#[test]
fn whoever_makes_offers_leaves_alone_what_is_on_offer() {
    let offered = JobView { offered_to: Some((factory_id("mac-1"), after(minutes(1)))), ..job(1) };
    let mut queue = queue([offered, job(2)]);
    queue.settle(NOW);
    let chosen = |queue: &ReadyQueue, now| {
        let plan = plan_offers(queue, &fleet([factory("mac-1")]), now, &Policy::default(), 9);
        plan.placements.iter().map(|p| p.job).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&queue, NOW), [job_id(2)]);
    assert_eq!(queue.next_change(), Some(after(minutes(1))));
    assert_eq!(
        queue.on_offer().map(|(to, job)| (to.as_str(), job.id)).collect::<Vec<_>>(),
        [("mac-1", job_id(1))]
    );
    queue.settle(after(minutes(1)));
    assert_eq!(queue.on_offer().count() + queue.offered_to(&factory_id("mac-1")).count(), 0);
    assert_eq!(chosen(&queue, after(minutes(1))), [job_id(1), job_id(2)]);
}

#[test]
fn a_missed_pickup_counts_after_the_offer_has_ended_and_not_against_one_who_asks() {
    let missed = JobView {
        offered_to: Some((factory_id("mac-1"), after(minutes(1)))),
        excluded: vec![(factory_id("mac-1"), after(minutes(5)))],
        ..job(1)
    };
    let queue = queue([missed]);
    let places = |asks, now| {
        let factory = FactoryView { asks, ..factory("mac-1") };
        plan(&queue, &fleet([factory]), now, &Policy::default(), 1).placements.len()
    };
    assert_eq!(places(false, NOW), 1, "it may still pick it up");
    assert_eq!(places(false, after(minutes(2))), 0, "it did not");
    assert_eq!(places(true, after(minutes(2))), 1, "but here it is");
    assert_eq!(places(false, after(minutes(5))), 1, "and in the end it is asked again");
}

#[test]
fn ready_jobs_come_by_priority_and_age_whatever_their_shape() {
    let aged = |number, age, priority| JobView {
        enqueued_at: NOW.minus(minutes(age)),
        ready_at: NOW.minus(minutes(age)),
        priority,
        ..job(number)
    };
    let other = JobView { repo: Some("other".into()), ..aged(3, 4, Priority::Normal) };
    let queue = queue([
        aged(1, 3, Priority::Normal),
        aged(2, 5, Priority::Normal),
        other,
        aged(4, 1, Priority::High),
        JobView { ready_at: after(minutes(5)), ..job(5) },
    ]);
    let ids = |jobs: Vec<&JobView>| jobs.iter().map(|j| j.id).collect::<Vec<_>>();
    let all = ids(queue.ready_in_order(|_| true).collect());
    assert_eq!(all, [job_id(4), job_id(2), job_id(3), job_id(1)]);
    let plain = ids(queue.ready_in_order(|job| job.repo.is_none()).collect());
    assert_eq!(plain, [job_id(4), job_id(2), job_id(1)]);
}
