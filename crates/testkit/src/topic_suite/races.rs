//! Many callers at once, on several threads and, where the store has processes, on two handles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use giga_domain::JobId;
use giga_domain::topic::{Outcome, TopicStage};
use giga_ports::topics::{Enqueued, NewTopicJob, PauseScope, Settled, TopicStore};
use tokio::task::JoinSet;

use super::TopicWorld;
use super::world::{LEASE, claim_of, mail, operator, settle, topic};

fn by_turns(handles: &[Arc<dyn TopicStore>], number: usize) -> Arc<dyn TopicStore> {
    handles[number % handles.len()].clone()
}

pub async fn claimers_get_each_job_once(world: &TopicWorld) {
    let (claimers, count) = (64, 2_000);
    let jobs = world.ready(count).await;
    let handles = world.handles().await;
    let left = Arc::new(AtomicUsize::new(count));
    let mut racing = JoinSet::new();
    for number in 0..claimers {
        let (store, left) = (by_turns(&handles, number), left.clone());
        racing.spawn(async move {
            let name = format!("worker-{number}");
            let mut done = Vec::new();
            while left.load(Ordering::SeqCst) > 0 {
                let held = store.claim(claim_of(mail(), &[(&name, 7)])).await.unwrap();
                left.fetch_sub(held.len(), Ordering::SeqCst);
                let words = held.iter().map(|held| settle(held, Outcome::Success)).collect();
                for answer in store.settle(words).await.unwrap() {
                    assert!(matches!(answer, Settled::Applied { stage: TopicStage::Done, .. }), "{answer:?}");
                }
                assert!(held.iter().all(|held| held.worker.as_str() == name));
                done.extend(held.iter().map(|held| held.id));
            }
            done
        });
    }
    let done: Vec<JobId> = racing.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<JobId> = done.iter().copied().collect();
    assert_eq!((done.len(), distinct.len()), (count, count), "each job goes to one claimer");
    assert_eq!(distinct, jobs.into_iter().collect());
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Done, count as u64)].into());
}

/// Producers and claimers at the same time, over several topics: everything that was put in comes out, once.
pub async fn what_goes_in_comes_out_once(world: &TopicWorld) {
    let (producers, each, per_call) = (8, 10, 15);
    let handles = world.handles().await;
    let left = Arc::new(AtomicUsize::new(producers * each * per_call));
    let topics = ["mail", "print", "index"].map(topic);
    let mut racing = JoinSet::new();
    for number in 0..producers {
        let store = by_turns(&handles, number);
        let key = topics[number % topics.len()].clone();
        let calls: Vec<Vec<NewTopicJob>> = (0..each)
            .map(|_| (0..per_call).map(|_| world.job(|job| job.key = key.clone())).collect())
            .collect();
        racing.spawn(async move {
            for call in calls {
                store.enqueue(call).await.unwrap();
            }
            Vec::new()
        });
    }
    for number in 0..12 {
        let (store, left) = (by_turns(&handles, number / 3), left.clone());
        let key = topics[number % topics.len()].clone();
        racing.spawn(async move {
            let mut done = Vec::new();
            while left.load(Ordering::SeqCst) > 0 {
                let held = store.claim(claim_of(key.clone(), &[("a", 5), ("b", 5)])).await.unwrap();
                left.fetch_sub(held.len(), Ordering::SeqCst);
                done.extend(held.iter().map(|held| held.id));
                let words = held.iter().map(|held| settle(held, Outcome::Success)).collect();
                store.settle(words).await.unwrap();
                tokio::task::yield_now().await;
            }
            done
        });
    }
    let done: Vec<JobId> = racing.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<JobId> = done.iter().copied().collect();
    assert_eq!((done.len(), distinct.len()), (producers * each * per_call, producers * each * per_call));
    for key in &topics {
        assert_eq!(world.counts(key).await.keys().copied().collect::<Vec<_>>(), [TopicStage::Done]);
    }
}

pub async fn one_key_makes_one_job(world: &TopicWorld) {
    let handles = world.handles().await;
    for round in 0..10 {
        let first = world.job(|job| job.idempotency_key = Some(format!("order-{round}")));
        let mut racing = JoinSet::new();
        for number in 0..16 {
            let new = NewTopicJob { id: world.job(|_| ()).id, ..first.clone() };
            // Others around it, in another order each, so that two processes meet at more than one key.
            let beside = |beside: usize| {
                world.job(|job| {
                    job.idempotency_key = Some(format!("beside-{round}-{beside}"));
                    job.payload = b"beside".to_vec();
                })
            };
            let mut call = vec![beside(number % 2), new, beside((number + 1) % 2)];
            call.rotate_left(number % 3);
            let place = (4 - number % 3) % 3;
            let store = by_turns(&handles, number);
            racing.spawn(async move { store.enqueue(call).await.unwrap()[place] });
        }
        let answers = racing.join_all().await;
        let ids: BTreeSet<JobId> = answers.iter().map(Enqueued::id).collect();
        assert_eq!(ids.len(), 1, "round {round}");
        let made = answers.iter().filter(|answer| matches!(answer, Enqueued::Created { .. })).count();
        assert_eq!(made, 1, "one of them made it");
    }
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 30)].into());
}

/// Settles against expiry: each job ends one way, and who was told that it counted is right.
pub async fn settling_against_expiry(world: &TopicWorld) {
    let count = 400;
    world.ready(count).await;
    let handles = world.handles().await;
    let held = world.claim(count as u32).await;
    world.advance(LEASE);
    let mut racing = JoinSet::new();
    for (number, share) in held.chunks(20).enumerate() {
        let (store, share) = (by_turns(&handles, number), share.to_vec());
        racing.spawn(async move {
            // Backwards every other time, so that locks are wanted in both orders.
            let mut words: Vec<_> = share.iter().map(|held| settle(held, Outcome::Success)).collect();
            if number % 2 == 0 {
                words.reverse();
            }
            let settles: Vec<JobId> = words.iter().map(|word| word.id).collect();
            let answers = store.settle(words).await.unwrap();
            settles.into_iter().zip(answers).collect::<Vec<_>>()
        });
        let store = by_turns(&handles, number + 1);
        racing.spawn(async move {
            store.expire(30).await.unwrap();
            Vec::new()
        });
    }
    let answers: BTreeMap<JobId, Settled> = racing.join_all().await.into_iter().flatten().collect();
    assert_eq!(answers.len(), count);
    for (id, answer) in answers {
        let job = world.get(id).await;
        match answer {
            Settled::Applied { stage, .. } => assert_eq!((stage, job.head.epoch.0), (TopicStage::Done, 1)),
            Settled::Fenced => assert_eq!((job.head.state.stage(), job.head.epoch.0), (TopicStage::Ready, 2)),
            Settled::Unknown => panic!("{id} is there"),
        }
    }
    assert_eq!(world.counts(&mail()).await.values().sum::<u64>(), count as u64);
}

/// Once a pause was answered, no claim that is asked afterwards gets anything, whichever process it asks.
pub async fn a_pause_holds_once_it_is_answered(world: &TopicWorld) {
    world.ready(3_000).await;
    let handles = world.handles().await;
    for round in 0..5 {
        let mut racing = JoinSet::new();
        for number in 0..8 {
            let store = by_turns(&handles, number);
            racing.spawn(async move {
                store.claim(claim_of(mail(), &[("w", 5)])).await.unwrap();
            });
        }
        let scope = if round % 2 == 0 { PauseScope::Everything } else { PauseScope::Topic(mail()) };
        world.store.set_pause(scope.clone(), true, operator()).await.unwrap();
        for store in &handles {
            assert_eq!(store.claim(claim_of(mail(), &[("w", 5)])).await.unwrap(), []);
        }
        racing.join_all().await;
        world.store.set_pause(scope, false, operator()).await.unwrap();
    }
    assert!(world.store.pauses().await.unwrap().is_empty());
}
