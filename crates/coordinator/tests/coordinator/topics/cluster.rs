//! Several coordinators on one store and one broker.

use std::time::Duration;

use giga_domain::topic::Outcome;

use crate::topics::world::{World, actor, enqueue, ids, key, next, open, report, taken, work};

#[tokio::test]
async fn a_report_to_another_coordinator_frees_the_slot_here() {
    let world = World::start().await;
    let other = world.another().await;
    let mut stream = world.open("w1", &["mail"], 1);
    let all = world.enqueue("mail", 2).await;
    let held = next(&mut stream).await;
    assert_eq!(ids(&held), all[..1]);
    report(&other, &held[0], Outcome::Success).await;
    assert_eq!(ids(&next(&mut stream).await), all[1..]);
}

#[tokio::test]
async fn an_enqueue_at_another_coordinator_wakes_the_stream_here() {
    let world = World::start().await;
    let other = world.another().await;
    let mut stream = world.open("w1", &["mail"], 5);
    let all = enqueue(&other, vec![work("mail")]).await;
    assert_eq!(ids(&next(&mut stream).await), all);
}

/// The store lowers where it looks before the claim is made, and for the news of others only.
#[tokio::test(start_paused = true)]
async fn the_store_is_told_how_far_back_the_jobs_of_another_coordinator_lie() {
    let world = World::start().await;
    let other = world.another().await;
    let mut stream = world.open("w1", &["mail"], 5);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let all = enqueue(&other, vec![work("mail"), work("mail")]).await;
    assert_eq!(ids(&next(&mut stream).await), all);
    assert_eq!(world.topics.lowered(), [(key("mail"), all[0])]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.topics.lowered().len(), 1, "not by the one that made them");
}

#[tokio::test]
async fn a_pause_that_another_coordinator_ends_lets_the_stream_here_go_on() {
    let world = World::start().await;
    let other = world.another().await;
    world.coordinator.topics().pause(Some(key("mail")), actor()).await.unwrap();
    let mut stream = world.open("w1", &["mail"], 5);
    let all = world.enqueue("mail", 1).await;
    other.topics().resume(Some(key("mail")), actor()).await.unwrap();
    assert_eq!(ids(&next(&mut stream).await), all);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_two_coordinators_race_for_is_sent_once() {
    let world = World::start().await;
    let other = world.another().await;
    let mut here = world.open("w1", &["mail"], 100);
    let mut there = open(&other, "w2", &["mail"], 100);
    let all = world.enqueue("mail", 60).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut sent = [ids(&taken(&mut here).await), ids(&taken(&mut there).await)].concat();
    sent.sort_unstable();
    assert_eq!(sent, all);
}
