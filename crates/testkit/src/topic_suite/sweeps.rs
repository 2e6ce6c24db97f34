//! What time does: leases end, jobs become due, old ones go. And what an operator does to the dead.

use std::time::Duration;

use giga_domain::Epoch;
use giga_domain::topic::{Outcome, TopicStage, TopicState};
use giga_ports::topics::{Enqueued, Swept};

use super::TopicWorld;
use super::world::{BACKOFF, LEASE, again, applied, failure, ids, mail, topic};

pub async fn leases_end_in_order(world: &TopicWorld) {
    assert_eq!(world.store.expire(10).await.unwrap(), Swept::default());
    let jobs = world.ready(3).await;
    for _ in 0..3 {
        world.claim_one().await;
        world.advance(Duration::from_secs(1));
    }
    let ends = |number: u64| Some(world.now().plus(LEASE).minus(Duration::from_secs(3 - number)));
    let first = ends(0);
    assert_eq!(world.store.expire(10).await.unwrap(), Swept { jobs: Vec::new(), next: first });
    let next = ends(2);
    world.advance(Duration::from_secs(58));
    let swept = world.store.expire(10).await.unwrap();
    let back = |place: usize| (mail(), jobs[place], TopicStage::Ready);
    assert_eq!(swept, Swept { jobs: vec![back(0), back(1)], next });
    world.advance(Duration::from_secs(1));
    assert_eq!(world.store.expire(10).await.unwrap(), Swept { jobs: vec![back(2)], next: None });
}

pub async fn expiry_goes_by_the_limit(world: &TopicWorld) {
    world.ready(3).await;
    world.claim(3).await;
    let ended = world.now().plus(LEASE);
    world.advance(LEASE);
    let swept = world.store.expire(2).await.unwrap();
    assert_eq!((swept.jobs.len(), swept.next), (2, Some(ended)), "the next one has ended already");
    assert_eq!(world.store.expire(2).await.unwrap().jobs.len(), 1);
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 3)].into());
}

pub async fn expiry_raises_the_epoch_and_counts(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    for attempt in 1..=2 {
        assert_eq!(world.claim_one().await.attempt, attempt);
        world.advance(LEASE);
        world.store.expire(1).await.unwrap();
    }
    let head = world.get(id).await.head;
    assert_eq!((head.state, head.attempts), (TopicState::Dead { at: world.now() }, 2));
    assert_eq!(head.epoch, Epoch(4), "two grants and two ends");
    assert!(head.last_error.unwrap().contains("worker-1"));
}

pub async fn a_renewed_lease_is_left_alone(world: &TopicWorld) {
    let jobs = world.ready(2).await;
    let held = world.claim(2).await;
    world.advance(LEASE / 2);
    assert_eq!(world.store.renew(vec![(jobs[0], held[0].epoch)], LEASE).await.unwrap(), [true]);
    let next = Some(world.now().plus(LEASE));
    world.advance(LEASE / 2);
    let swept = world.store.expire(10).await.unwrap();
    assert_eq!(swept, Swept { jobs: vec![(mail(), jobs[1], TopicStage::Ready)], next });
}

pub async fn due_jobs_become_ready(world: &TopicWorld) {
    assert_eq!(world.store.promote(10).await.unwrap(), Swept::default());
    let start = world.now();
    let at = |seconds| Some(start.plus(Duration::from_secs(seconds)));
    let jobs: Vec<_> = [30, 10, 20].map(|seconds| world.job(|job| job.run_at = at(seconds))).into();
    let elsewhere = world.job(|job| {
        job.key = topic("print");
        job.run_at = at(15);
    });
    world.store.enqueue(jobs.iter().cloned().chain([elsewhere.clone()]).collect()).await.unwrap();
    assert_eq!(world.store.promote(10).await.unwrap(), Swept { jobs: Vec::new(), next: at(10) });
    world.advance(Duration::from_secs(20));
    let risen = |job: &giga_ports::topics::NewTopicJob| (job.key.clone(), job.id, TopicStage::Ready);
    let swept = world.store.promote(2).await.unwrap();
    assert_eq!(swept, Swept { jobs: vec![risen(&jobs[1]), risen(&elsewhere)], next: at(20) });
    let swept = world.store.promote(2).await.unwrap();
    assert_eq!(swept, Swept { jobs: vec![risen(&jobs[2])], next: at(30) });
    assert_eq!(ids(&world.claim(5).await), [jobs[1].id, jobs[2].id], "by age, whenever they were due");
}

pub async fn the_dead_rise_by_name(world: &TopicWorld) {
    let dead = [world.dead().await, world.dead().await, world.dead().await];
    let ready = world.ready(1).await[0];
    let unknown = world.job(|_| ()).id;
    let named = vec![dead[2], ready, unknown, dead[0]];
    let risen = world.store.retry_dead(mail(), named.clone(), 10).await.unwrap();
    assert_eq!(risen, [dead[0], dead[2]], "oldest first, and only the dead");
    assert_eq!(world.store.retry_dead(mail(), named, 10).await.unwrap(), []);
    let head = world.get(dead[0]).await.head;
    assert_eq!((head.state, head.attempts, head.epoch), (TopicState::Ready, 0, Epoch(1)));
    assert_eq!(head.last_error.as_deref(), Some("it broke"), "what killed it is still known");
    let again = world.claim_one().await;
    assert_eq!((again.id, again.attempt, again.epoch), (dead[0], 1, Epoch(2)));
    assert_eq!(world.store.retry_dead(topic("print"), vec![dead[1]], 10).await.unwrap(), []);
    assert_eq!(world.stage(dead[1]).await, TopicStage::Dead, "a topic's operator moves no other's");
}

pub async fn all_the_dead_rise_up_to_the_limit(world: &TopicWorld) {
    let dead = [world.dead().await, world.dead().await, world.dead().await];
    assert_eq!(world.store.retry_dead(topic("print"), Vec::new(), 10).await.unwrap(), []);
    assert_eq!(world.store.retry_dead(mail(), Vec::new(), 2).await.unwrap(), dead[..2]);
    assert_eq!(world.store.retry_dead(mail(), Vec::new(), 2).await.unwrap(), dead[2..]);
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 3)].into());
    assert_eq!(ids(&world.claim(5).await), dead);
}

pub async fn the_old_go(world: &TopicWorld) {
    world.ready(2).await;
    for held in world.claim(2).await {
        world.settle(&held, Outcome::Success).await;
    }
    let dead = world.dead().await;
    world.advance(Duration::from_hours(1));
    let before = world.now();
    assert_eq!(world.store.retire(before.minus(Duration::from_hours(1)), 10).await.unwrap(), 0);
    world.ready(1).await;
    let young = world.claim_one().await;
    world.settle(&young, Outcome::Success).await;
    assert_eq!(world.store.retire(before, 2).await.unwrap(), 2);
    assert_eq!(world.store.retire(before, 2).await.unwrap(), 1);
    assert_eq!(world.store.retire(before, 2).await.unwrap(), 0);
    assert_eq!(world.store.job(dead).await.unwrap(), None);
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Done, 1)].into());
    let done = again(&applied(&mail(), TopicStage::Done));
    assert_eq!(world.settle(&young, Outcome::Success).await, done);
}

/// Old jobs that live on, and many of them, do not keep those behind them.
pub async fn the_living_are_passed_over(world: &TopicWorld) {
    let living = world.ready(40).await;
    let failed = world.claim(10).await;
    for held in &failed {
        world.settle(held, failure(true)).await;
    }
    let done = world.job(|job| job.key = topic("print"));
    world.store.enqueue(vec![done.clone()]).await.unwrap();
    let held = world.store.claim(super::world::claim_of(topic("print"), &[("w", 1)])).await.unwrap();
    world.settle(&held[0], Outcome::Success).await;
    world.advance(Duration::from_hours(1));
    assert_eq!(world.store.retire(world.now(), 1).await.unwrap(), 1);
    assert_eq!(world.store.job(done.id).await.unwrap(), None);
    for id in living {
        assert!(world.store.job(id).await.unwrap().is_some());
    }
    // What lives on and ends later is found as well: the walk begins again.
    world.advance(BACKOFF);
    for held in world.claim(30).await {
        world.settle(&held, Outcome::Success).await;
    }
    world.advance(Duration::from_hours(1));
    assert_eq!(world.store.retire(world.now(), 100).await.unwrap(), 30);
}

pub async fn a_retired_key_is_free_again(world: &TopicWorld) {
    let first = world.job(|job| job.idempotency_key = Some("order-1".into()));
    world.store.enqueue(vec![first]).await.unwrap();
    let held = world.claim_one().await;
    world.settle(&held, Outcome::Success).await;
    world.advance(Duration::from_secs(1));
    assert_eq!(world.store.retire(world.now(), 10).await.unwrap(), 1);
    let second = world.job(|job| job.idempotency_key = Some("order-1".into()));
    let made = world.store.enqueue(vec![second.clone()]).await.unwrap();
    assert_eq!(made, [Enqueued::Created { id: second.id, due: None }]);
    assert_eq!(world.settle(&held, Outcome::Success).await, giga_ports::topics::Settled::Unknown);
}
