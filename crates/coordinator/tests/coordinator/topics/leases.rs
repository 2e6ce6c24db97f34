//! Leases, heartbeats, retries and schedules, on a clock that the test moves.

use std::time::Duration;

use giga_coordinator::{Coordinator, Dealt, Options, ReportStatus};
use giga_domain::topic::{Outcome, TopicStage};
use giga_domain::{Epoch, ProductId};
use giga_ports::topics::Settle;
use giga_ports::{Broker, Clock};
use prometheus_client::registry::Registry;

use crate::topics::world::{World, enqueue, ids, next, taken, work};

const LEASE: Duration = Duration::from_secs(30);

fn failure(retryable: bool) -> Outcome {
    Outcome::Failure { error: "it broke".to_owned(), retryable }
}

#[tokio::test]
async fn a_lease_that_ended_frees_the_slot_and_fences_the_zombie() {
    let world = World::by_hand().await;
    let all = world.enqueue("mail", 2).await;
    let mut stream = world.open("w1", &["mail"], 1);
    world.claim().await;
    let first = taken(&mut stream).await.remove(0);
    world.clock.advance(LEASE);
    world.coordinator.topics().expire_once().await.unwrap();
    world.claim().await;
    let again = taken(&mut stream).await;
    assert_eq!(ids(&again), all[..1], "the same job, first in line as before");
    assert_eq!((again[0].job.attempt, again[0].job.epoch), (2, Epoch(3)));
    assert_eq!(world.report(&first, Outcome::Success).await, ReportStatus::Fenced);
    world.claim().await;
    assert_eq!(taken(&mut stream).await, [], "the zombie's word frees nobody's slot");
    assert_eq!(world.report(&again[0], Outcome::Success).await, ReportStatus::Recorded);
    assert_eq!(world.report(&again[0], Outcome::Success).await, ReportStatus::Recorded, "said again");
    world.claim().await;
    assert_eq!(ids(&taken(&mut stream).await), all[1..]);
}

#[tokio::test]
async fn a_heartbeat_keeps_what_is_held_and_names_what_is_lost() {
    let world = World::by_hand().await;
    let all = world.enqueue("mail", 2).await;
    let mut stream = world.open("w1", &["mail"], 2);
    world.claim().await;
    let held = taken(&mut stream).await;
    world.clock.advance(LEASE / 2);
    let kept = vec![(held[0].job.id, held[0].job.epoch)];
    let renewed = world.coordinator.topics().renew(None, &held[0].job.worker, kept).await.unwrap();
    assert_eq!(renewed, (vec![], LEASE));
    world.clock.advance(LEASE / 2);
    world.coordinator.topics().expire_once().await.unwrap();
    assert_eq!(world.stage(all[0]).await, TopicStage::Running);
    assert_eq!(world.stage(all[1]).await, TopicStage::Ready);
    let both = held.iter().map(|dealt| (dealt.job.id, dealt.job.epoch)).collect();
    let (lost, _) = world.coordinator.topics().renew(None, &held[0].job.worker, both).await.unwrap();
    assert_eq!(lost, all[1..]);
}

#[tokio::test]
async fn a_failure_is_tried_again_later_and_in_the_end_mirrored_as_a_dead_letter() {
    let world = World::by_hand().await;
    let mut letters = world.broker.dead_letters().await.unwrap();
    let mut job = work("mail");
    job.retry.max = 1;
    let id = enqueue(&world.coordinator, vec![job]).await[0];
    let mut stream = world.open("w1", &["mail"], 1);
    world.claim().await;
    let first = taken(&mut stream).await.remove(0);
    world.report(&first, failure(true)).await;
    assert_eq!(world.stage(id).await, TopicStage::Scheduled);
    assert_eq!(world.coordinator.topics().promote_once().await.unwrap(), 0, "its time has not come");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.coordinator.topics().promote_once().await.unwrap(), 1);
    world.claim().await;
    let second = taken(&mut stream).await.remove(0);
    assert_eq!(second.job.attempt, 2);
    world.report(&second, failure(true)).await;
    assert_eq!(world.stage(id).await, TopicStage::Dead);
    world.claim().await;
    let letter = tokio::time::timeout(Duration::from_secs(20), letters.next()).await.unwrap().unwrap();
    assert_eq!((letter.job_id, letter.reason.as_str()), (id, "it broke"));
    assert_eq!(letter.topic.unwrap().as_str(), "mail");
}

#[tokio::test]
async fn a_failure_that_is_reported_again_is_one_death() {
    let world = World::by_hand().await;
    let mut letters = world.broker.dead_letters().await.unwrap();
    let all = world.enqueue("mail", 2).await;
    let mut stream = world.open("w1", &["mail"], 2);
    world.claim().await;
    let held = taken(&mut stream).await;
    for dealt in [&held[0], &held[0], &held[1]] {
        assert_eq!(world.report(dealt, failure(false)).await, ReportStatus::Recorded);
    }
    world.claim().await;
    for id in &all {
        let letter = tokio::time::timeout(Duration::from_secs(20), letters.next()).await.unwrap().unwrap();
        assert_eq!(letter.job_id, *id, "one letter for each");
    }
    let mut registry = Registry::default();
    world.coordinator.metrics().register(&mut registry);
    let mut counted = String::new();
    prometheus_client::encoding::text::encode(&mut counted, &registry).unwrap();
    assert!(counted.contains("topic_jobs_dead_total{product=\"demo\",topic=\"mail\"} 2"), "{counted}");
    assert!(counted.contains("topic_jobs_settled_total{outcome=\"failed\"} 2"), "{counted}");
}

#[tokio::test]
async fn a_dead_letter_goes_out_by_itself() {
    let world = World::start().await;
    let mut letters = world.broker.dead_letters().await.unwrap();
    let all = world.enqueue("mail", 1).await;
    let mut stream = world.open("w1", &["mail"], 1);
    let held = next(&mut stream).await.remove(0);
    world.report(&held, failure(false)).await;
    let letter = tokio::time::timeout(Duration::from_secs(20), letters.next()).await.unwrap().unwrap();
    assert_eq!(letter.job_id, all[0]);
}

/// However many are reported where they are not known, it is one look at the store.
#[tokio::test]
async fn whose_jobs_are_reported_is_asked_for_once() {
    let world = World::by_hand().await;
    world.enqueue("mail", 50).await;
    let mut stream = world.open("w1", &["mail"], 50);
    world.claim().await;
    let held = taken(&mut stream).await;
    let elsewhere = Coordinator::by_hand(world.ports.clone(), Options::default()).await.unwrap();
    let owner: [ProductId; 1] = ["demo".parse().unwrap()];
    let done = |dealt: &Dealt| Settle { id: dealt.job.id, epoch: dealt.job.epoch, outcome: Outcome::Success };
    let before = world.topics.calls();
    let results = held.iter().map(done).collect();
    let statuses = elsewhere.topics().report(Some(&owner), &held[0].job.worker, results).await.unwrap();
    assert_eq!(statuses, [ReportStatus::Recorded; 50]);
    assert_eq!(world.topics.calls() - before, 2, "one look, one settle");
}

#[tokio::test]
async fn a_permanent_failure_is_not_tried_again_and_its_text_is_bounded() {
    let world = World::by_hand().await;
    let id = world.enqueue("mail", 1).await[0];
    let mut stream = world.open("w1", &["mail"], 1);
    world.claim().await;
    let held = taken(&mut stream).await.remove(0);
    let error = format!("a\0b{}", "x".repeat(5_000));
    world.report(&held, Outcome::Failure { error, retryable: false }).await;
    let head = world.job(id).await.head;
    assert_eq!(head.state.stage(), TopicStage::Dead);
    let error = head.last_error.unwrap();
    assert!(error.starts_with("abx") && error.chars().count() == 4_000, "{}", error.len());
}

#[tokio::test]
async fn what_is_scheduled_waits_for_its_time() {
    let world = World::by_hand().await;
    let mut later = work("mail");
    later.run_at = Some(world.clock.now().plus(Duration::from_mins(5)));
    let all = enqueue(&world.coordinator, vec![later, work("mail")]).await;
    let mut stream = world.open("w1", &["mail"], 5);
    world.claim().await;
    assert_eq!(ids(&taken(&mut stream).await), all[1..]);
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(world.coordinator.topics().promote_once().await.unwrap(), 1);
    world.claim().await;
    assert_eq!(ids(&taken(&mut stream).await), all[..1]);
}

#[tokio::test]
async fn the_jobs_of_another_product_are_unknown_and_stay_untouched() {
    let world = World::by_hand().await;
    let id = world.enqueue("mail", 1).await[0];
    let mut stream = world.open("w1", &["mail"], 1);
    world.claim().await;
    let held = taken(&mut stream).await.remove(0);
    let stranger: [ProductId; 1] = ["other".parse().unwrap()];
    let owner: [ProductId; 1] = ["demo".parse().unwrap()];
    let elsewhere = world.another().await;
    for coordinator in [&world.coordinator, &elsewhere] {
        let result = || Settle { id, epoch: held.job.epoch, outcome: Outcome::Success };
        let statuses = coordinator.topics().report(Some(&stranger), &held.job.worker, vec![result()]).await;
        assert_eq!(statuses.unwrap(), [ReportStatus::UnknownJob]);
        let kept = vec![(id, held.job.epoch)];
        let (lost, _) =
            coordinator.topics().renew(Some(&stranger), &held.job.worker, kept.clone()).await.unwrap();
        assert_eq!(lost, [id]);
        assert_eq!(world.stage(id).await, TopicStage::Running);
        let (lost, _) =
            coordinator.topics().renew(Some(&owner), &held.job.worker, kept.clone()).await.unwrap();
        assert_eq!(lost, []);
        // The same name under another token is another worker.
        let other = "w9:tok-other".parse().unwrap();
        let statuses = coordinator.topics().report(None, &other, vec![result()]).await;
        assert_eq!(statuses.unwrap(), [ReportStatus::UnknownJob]);
        let (lost, _) = coordinator.topics().renew(None, &other, kept).await.unwrap();
        assert_eq!(lost, [id]);
        assert_eq!(world.stage(id).await, TopicStage::Running);
    }
    let result = |id| Settle { id, epoch: held.job.epoch, outcome: Outcome::Success };
    let nobodys = giga_domain::JobId::from_u128(7);
    let statuses =
        elsewhere.topics().report(Some(&owner), &held.job.worker, vec![result(nobodys), result(id)]);
    assert_eq!(statuses.await.unwrap(), [ReportStatus::UnknownJob, ReportStatus::Recorded]);
    assert_eq!(world.stage(id).await, TopicStage::Done);
}

#[tokio::test]
async fn old_jobs_are_removed_after_their_time() {
    let world = World::by_hand().await;
    world.enqueue("mail", 2).await;
    let mut stream = world.open("w1", &["mail"], 1);
    world.claim().await;
    let held = taken(&mut stream).await.remove(0);
    world.report(&held, Outcome::Success).await;
    assert_eq!(world.coordinator.topics().retire_old().await.unwrap(), 0);
    world.clock.advance(Duration::from_hours(721));
    assert_eq!(world.coordinator.topics().retire_old().await.unwrap(), 1, "the one that is done");
}
