//! When the store is asked, and when it is left alone. Time is tokio's, paused: it moves only while nothing else does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use giga_domain::topic::Outcome;
use giga_ports::topics::TopicClaim;
use giga_ports::{Clock, TopicStore};

use crate::topics::world::{World, enqueue, ids, key, next, taken, work};

/// Lets everything happen that happens within so long.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_hub_asks_nothing_however_many_are_connected() {
    let world = World::start().await;
    let streams: Vec<_> = (0..50).map(|n| world.open(&format!("w{n}"), &["mail"], 10)).collect();
    pass(Duration::from_secs(1)).await;
    let before = world.topics.calls();
    pass(Duration::from_secs(57)).await;
    assert_eq!(world.topics.calls(), before, "nothing happened, nothing was asked");
    pass(Duration::from_mins(10)).await;
    let per_minute = (world.topics.calls() - before) as f64 / 10.0;
    assert!(per_minute <= 2.5, "{per_minute} calls per minute");
    drop(streams);
}

#[tokio::test(start_paused = true)]
async fn an_enqueue_wakes_the_right_stream_with_one_claim() {
    let world = World::start().await;
    let mut mail = world.open("w1", &["mail"], 10);
    let mut sms = world.open("w2", &["sms"], 10);
    pass(Duration::from_secs(1)).await;
    let before = world.topics.claims();
    let all = world.enqueue("mail", 3).await;
    assert_eq!(ids(&next(&mut mail).await), all);
    pass(Duration::from_secs(5)).await;
    assert_eq!(world.topics.claims() - before, 1, "neither for the other topic nor for its own hint");
    assert_eq!(taken(&mut sms).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_not_claimed_while_nobody_has_room() {
    let world = World::start().await;
    let mut stream = world.open("w1", &["mail"], 1);
    let all = world.enqueue("mail", 3).await;
    let held = next(&mut stream).await;
    pass(Duration::from_secs(1)).await;
    let before = world.topics.claims();
    world.enqueue("mail", 1).await;
    pass(Duration::from_secs(5)).await;
    assert_eq!(world.topics.claims(), before);
    world.report(&held[0], Outcome::Success).await;
    assert_eq!(ids(&next(&mut stream).await), all[1..2]);
    assert_eq!(world.topics.claims(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_keeps_the_stream_and_is_tried_again() {
    let world = World::start().await;
    let mut stream = world.open("w1", &["mail"], 5);
    pass(Duration::from_secs(1)).await;
    world.topics.claims_fail.store(true, Ordering::SeqCst);
    let before = world.topics.claims();
    let all = world.enqueue("mail", 2).await;
    pass(Duration::from_mins(1)).await;
    let tries = world.topics.claims() - before;
    assert!((5..=30).contains(&tries), "{tries} tries in a minute");
    world.topics.claims_fail.store(false, Ordering::SeqCst);
    assert_eq!(ids(&next(&mut stream).await), all);
}

#[tokio::test(start_paused = true)]
async fn the_promoter_wakes_when_the_time_has_come() {
    let world = World::start().await;
    let mut stream = world.open("w1", &["mail"], 5);
    let mut later = work("mail");
    later.run_at = Some(world.clock.now().plus(Duration::from_secs(40)));
    let all = enqueue(&world.coordinator, vec![later]).await;
    pass(Duration::from_secs(39)).await;
    assert_eq!(taken(&mut stream).await, []);
    world.clock.advance(Duration::from_secs(40));
    assert_eq!(ids(&next(&mut stream).await), all);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_is_noticed_without_being_asked_for() {
    let world = World::start().await;
    let mut stream = world.open("w1", &["mail"], 1);
    let all = world.enqueue("mail", 1).await;
    let held = next(&mut stream).await;
    pass(Duration::from_secs(29)).await;
    world.clock.advance(Duration::from_secs(31));
    let again = next(&mut stream).await;
    assert_eq!(ids(&again), all);
    assert!(again[0].job.epoch > held[0].job.epoch);
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_the_coordinator_and_what_they_did_not_take_is_given_back() {
    let world = World::start().await;
    let mut stream = world.open("w1", &["mail"], 5);
    let unread = world.open("w2", &["sms"], 5);
    let sms = world.enqueue("sms", 2).await;
    pass(Duration::from_secs(1)).await;
    drop(unread);
    world.coordinator.stop().await;
    assert_eq!(stream.next(1, 1).await, None);
    for id in sms {
        assert_eq!(world.stage(id).await, giga_domain::topic::TopicStage::Ready);
    }
}

/// Each of them is first in hand when it comes, which wakes whoever looks after leases.
#[tokio::test(start_paused = true)]
async fn a_trickle_of_short_jobs_does_not_keep_an_ended_lease_from_being_noticed() {
    let world = World::start().await;
    let lost = world.enqueue("mail", 1).await;
    let gone = ("gone".parse().unwrap(), 1);
    let claim = TopicClaim {
        key: key("mail"),
        workers: vec![gone],
        most_bytes: u64::MAX,
        lease: Duration::from_secs(30),
    };
    assert_eq!(world.topics.claim(claim).await.unwrap().len(), 1, "by a coordinator that died of it");
    let mut stream = world.open("w1", &["mail"], 5);
    for second in 0..100 {
        world.enqueue("mail", 1).await;
        let dealt = next(&mut stream).await;
        if ids(&dealt).contains(&lost[0]) {
            return;
        }
        for dealt in &dealt {
            world.report(dealt, Outcome::Success).await;
        }
        pass(Duration::from_secs(1)).await;
        world.clock.advance(Duration::from_secs(1));
        assert!(second < 95, "nobody looked for ended leases");
    }
}

#[tokio::test(start_paused = true)]
async fn ended_leases_that_cannot_be_looked_for_are_looked_for_once_a_second() {
    let world = World::start().await;
    let mut stream = world.open("w1", &["mail"], 1);
    let all = world.enqueue("mail", 1).await;
    next(&mut stream).await;
    world.topics.expiries_fail.store(true, Ordering::SeqCst);
    world.clock.advance(Duration::from_secs(31));
    pass(Duration::from_secs(31)).await;
    let before = world.topics.expiries();
    pass(Duration::from_secs(10)).await;
    let looks = world.topics.expiries() - before;
    assert!((5..=15).contains(&looks), "{looks} looks in ten seconds");
    world.topics.expiries_fail.store(false, Ordering::SeqCst);
    assert_eq!(ids(&next(&mut stream).await), all);
}
