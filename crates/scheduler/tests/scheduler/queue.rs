//! The queue itself: nothing is lost, nothing stays behind.

use giga_domain::Priority;
use giga_scheduler::{JobView, Plan, Policy, ReadyQueue, plan};

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
    let told: Vec<_> =
        queue.summaries().map(|s| (s.representative.id, s.count, s.oldest_enqueued_at)).collect();
    assert_eq!(told, [(job_id(7), 2, old.enqueued_at), (job_id(2), 1, job(2).enqueued_at)]);
}
