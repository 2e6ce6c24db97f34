//! The races and limits of the registry that no test from outside could bring about at will.

use super::*;
use giga_domain::Priority;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const LEASE: Duration = Duration::from_secs(30);

fn key(topic: &str) -> TopicKey {
    TopicKey { product: "demo".parse().unwrap(), topic: topic.parse().unwrap() }
}

fn open(registry: &mut StreamRegistry, worker: &str, most: u32) -> (StreamId, UnboundedReceiver<Vec<Dealt>>) {
    let (outlet, inlet) = unbounded_channel();
    (registry.open(worker.parse().unwrap(), vec![key("mail")], most, outlet, Arc::default()), inlet)
}

fn granted(id: u128, worker: &str, epoch: u64) -> Assignment {
    Assignment {
        id: JobId::from_u128(id),
        worker: worker.parse().unwrap(),
        epoch: Epoch(epoch),
        attempt: 1,
        priority: Priority::Normal,
        payload: Vec::new(),
        created_at: Timestamp::ZERO,
        expires_at: Timestamp::ZERO,
    }
}

/// Claims whatever is planned, which has to be one topic, and deals these.
fn deal(registry: &mut StreamRegistry, jobs: Vec<Assignment>) -> DealtOut {
    let mut planned = registry.plan(LEASE);
    assert_eq!(planned.len(), 1);
    registry.deal(planned.remove(0), jobs, Timestamp::ZERO)
}

#[test]
fn a_sweep_that_began_before_a_grant_does_not_free_it() {
    let mut registry = StreamRegistry::default();
    let (_stream, _inlet) = open(&mut registry, "w1", 1);
    deal(&mut registry, vec![granted(1, "w1", 1)]);
    // The sweep takes the job back; before its answer is heard the job is claimed again here.
    let serial = registry.serial();
    registry.free(JobId::from_u128(1), Epoch(1));
    deal(&mut registry, vec![granted(1, "w1", 3)]);
    registry.free_swept(JobId::from_u128(1), serial);
    registry.mark(&key("mail"));
    assert!(registry.plan(LEASE).is_empty(), "its only slot is taken");
    registry.free_swept(JobId::from_u128(1), registry.serial());
    assert_eq!(registry.plan(LEASE).len(), 1);
}

#[test]
fn a_job_that_comes_again_under_a_new_epoch_takes_one_slot() {
    let mut registry = StreamRegistry::default();
    let (_stream, mut inlet) = open(&mut registry, "w1", 2);
    deal(&mut registry, vec![granted(1, "w1", 1)]);
    registry.mark(&key("mail"));
    deal(&mut registry, vec![granted(1, "w1", 3)]);
    registry.mark(&key("mail"));
    assert_eq!(registry.plan(LEASE)[0].claim.slots(), 1);
    assert!(!registry.free(JobId::from_u128(1), Epoch(1)), "the older grant is nobody's");
    assert_eq!((inlet.try_recv().unwrap().len(), inlet.try_recv().unwrap().len()), (1, 1));
}

#[test]
fn a_large_claim_is_cut_evenly_and_small_streams_are_not_passed_over() {
    let mut registry = StreamRegistry::default();
    let _streams = [5_000, 10, 700, 700].map(|most| open(&mut registry, "w1", most));
    let claim = &registry.plan(LEASE)[0].claim;
    assert_eq!(claim.slots(), CLAIM_MOST);
    let mut slots: Vec<u32> = claim.workers.iter().map(|(_, slots)| *slots).collect();
    slots.sort_unstable();
    assert_eq!(slots, [10, 330, 330, 330]);
}

#[test]
fn a_mark_during_a_claim_is_not_lost_and_a_short_claim_makes_clean() {
    let mut registry = StreamRegistry::default();
    let (_stream, _inlet) = open(&mut registry, "w1", 5);
    let mut planned = registry.plan(LEASE);
    assert!(registry.plan(LEASE).is_empty(), "one claim at a time");
    registry.mark(&key("mail"));
    registry.deal(planned.remove(0), vec![], Timestamp::ZERO);
    deal(&mut registry, vec![granted(1, "w1", 1)]);
    assert!(registry.plan(LEASE).is_empty(), "fewer than asked for: there are no more");
    registry.mark(&key("mail"));
    deal(&mut registry, (2..6).map(|id| granted(id, "w1", 1)).collect());
    registry.free(JobId::from_u128(3), Epoch(1));
    assert_eq!(registry.plan(LEASE).len(), 1, "as many as asked for: there may be more");
}

#[test]
fn what_is_claimed_for_a_stream_that_closed_meanwhile_is_undeliverable() {
    let mut registry = StreamRegistry::default();
    let (stream, _inlet) = open(&mut registry, "w1", 5);
    let planned = registry.plan(LEASE).remove(0);
    registry.close(stream);
    let out = registry.deal(planned, vec![granted(1, "w1", 1)], Timestamp::ZERO);
    assert_eq!(out.undeliverable, [(JobId::from_u128(1), Epoch(1))]);
    assert!(registry.holds_nothing());
}

#[test]
fn a_stream_that_opens_during_a_claim_waits_for_its_end() {
    let mut registry = StreamRegistry::default();
    let (first, _inlet) = open(&mut registry, "w1", 5);
    let planned = registry.plan(LEASE).remove(0);
    registry.close(first);
    let (_second, mut inlet) = open(&mut registry, "w1", 5);
    assert!(registry.plan(LEASE).is_empty(), "one claim at a time");
    registry.deal(planned, vec![granted(1, "w1", 1)], Timestamp::ZERO);
    deal(&mut registry, vec![granted(2, "w1", 1)]);
    assert_eq!(inlet.try_recv().unwrap()[0].job.id, JobId::from_u128(2));
}

#[test]
fn a_topic_that_nobody_serves_leaves_nothing_behind() {
    let mut registry = StreamRegistry::default();
    for _ in 0..3 {
        let (stream, _inlet) = open(&mut registry, "w1", 5);
        registry.close(stream);
    }
    let (stream, _inlet) = open(&mut registry, "w1", 5);
    let mut planned = registry.plan(LEASE);
    assert_eq!((planned.len(), planned[0].claim.slots()), (1, 5), "it stands in the queue once");
    registry.close(stream);
    registry.failed(&planned.remove(0));
    assert!(registry.by_topic().is_empty() && registry.queue.is_empty());
}

#[test]
fn a_merged_echo_takes_all_that_it_stands_for_with_it() {
    let mut registry = StreamRegistry::default();
    let id = JobId::from_u128;
    for lowest in [5, 7, 9] {
        registry.expect_echo(&key("mail"), id(lowest));
    }
    registry.expect_echo(&key("sms"), id(6));
    assert!(registry.is_echo(&key("mail"), id(5)));
    assert!(!registry.is_echo(&key("mail"), id(7)), "another coordinator has news of that job");
    assert!(!registry.is_echo(&key("mail"), id(6)), "an id of another topic");
    assert!(registry.is_echo(&key("sms"), id(6)));
    // Merged with something that is not expected back.
    registry.expect_echo(&key("mail"), id(12));
    assert!(!registry.is_echo(&key("mail"), id(11)));
    assert!(!registry.is_echo(&key("mail"), id(12)));
    for lowest in 0..10 * ECHOES as u128 {
        registry.expect_echo(&key("mail"), id(lowest));
    }
    assert!(registry.echoes[&key("mail")].len() <= ECHOES);
}

#[test]
fn a_stream_with_too_many_bytes_unsent_is_given_nothing_more() {
    let mut registry = StreamRegistry::default();
    let (outlet, mut inlet) = unbounded_channel();
    let unsent = Arc::new(AtomicUsize::new(0));
    registry.open("w1".parse().unwrap(), vec![key("mail")], 5, outlet, unsent.clone());
    let large = Assignment { payload: vec![0; UNSENT_MOST], ..granted(1, "w1", 1) };
    deal(&mut registry, vec![large]);
    registry.mark(&key("mail"));
    assert!(registry.plan(LEASE).is_empty(), "there is room for jobs, not for bytes");
    let taken = inlet.try_recv().unwrap();
    unsent.fetch_sub(taken[0].job.payload.len(), Ordering::Relaxed);
    assert_eq!(registry.plan(LEASE)[0].claim.slots(), 4);
}
