//! What is asked at once and shares a transaction: nobody's trouble is a neighbour's.

use futures::future::{join, join_all, join3};
use giga_domain::topic::{Outcome, TopicStage};
use giga_ports::StoreError;
use giga_ports::topics::{Enqueued, NewTopicJob, Settled};

use super::TopicWorld;
use super::world::{LEASE, applied, claim_of, failure, mail, settle, topic};

pub async fn a_refused_enqueue_spares_its_neighbours(world: &TopicWorld) {
    let first = world.job(|job| job.idempotency_key = Some("order-1".into()));
    world.store.enqueue(vec![first.clone()]).await.unwrap();
    let other = |world: &TopicWorld| world.job(|job| job.idempotency_key = Some("order-1".into()));
    let calls: Vec<Vec<NewTopicJob>> = (0..9)
        .map(|number| {
            let fine = world.job(|_| ());
            if number % 3 == 1 { vec![fine, other(world)] } else { vec![fine] }
        })
        .collect();
    let answers = join_all(calls.iter().map(|call| world.store.enqueue(call.clone()))).await;
    for (number, (call, answer)) in calls.iter().zip(answers).enumerate() {
        let there = world.store.job(call[0].id).await.unwrap().is_some();
        if number % 3 == 1 {
            assert!(matches!(answer, Err(StoreError::KeyReused { .. })), "{answer:?}");
            assert!(!there, "nothing of a refused call stays");
        } else {
            assert_eq!(answer.unwrap(), [Enqueued::Created { id: call[0].id, due: None }]);
            assert!(there);
        }
    }
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 7)].into());
}

/// What the database itself cannot take (a text with a zero in it, on some) fails alone.
pub async fn a_poison_command_spares_its_neighbours(world: &TopicWorld) {
    world.ready(2).await;
    let held = world.claim(2).await;
    let poison = Outcome::Failure { error: "a\0b".into(), retryable: false };
    let jobs = world.jobs(1);
    let (bad, good, made) = join3(
        world.store.settle(vec![settle(&held[0], poison)]),
        world.store.settle(vec![settle(&held[1], Outcome::Success)]),
        world.store.enqueue(jobs.clone()),
    )
    .await;
    assert_eq!(good.unwrap(), [applied(&mail(), TopicStage::Done)]);
    assert_eq!(made.unwrap(), [Enqueued::Created { id: jobs[0].id, due: None }]);
    match bad {
        Ok(answers) => assert_eq!(answers, [applied(&mail(), TopicStage::Dead)]),
        Err(error) => {
            assert!(!error.is_transient(), "{error}");
            assert_eq!(world.stage(held[0].id).await, TopicStage::Running);
        }
    }
    world.counts(&mail()).await;
}

pub async fn one_key_in_many_calls_makes_one_job(world: &TopicWorld) {
    let first = world.job(|job| job.idempotency_key = Some("order-1".into()));
    let calls = (0..10).map(|_| NewTopicJob { id: world.job(|_| ()).id, ..first.clone() });
    let answers = join_all(calls.map(|new| world.store.enqueue(vec![new]))).await;
    let answers: Vec<Enqueued> = answers.into_iter().map(|answer| answer.unwrap()[0]).collect();
    let made = answers.iter().filter(|answer| matches!(answer, Enqueued::Created { .. })).count();
    assert_eq!(made, 1);
    assert!(answers.iter().all(|answer| answer.id() == answers[0].id()));
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 1)].into());
}

pub async fn one_call_repeated_at_once_makes_one_job(world: &TopicWorld) {
    let jobs = world.jobs(2);
    let answers = join_all((0..3).map(|_| world.store.enqueue(jobs.clone()))).await;
    for answer in answers {
        let ids: Vec<_> = answer.unwrap().iter().map(Enqueued::id).collect();
        assert_eq!(ids, [jobs[0].id, jobs[1].id]);
    }
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 2)].into());
}

/// Claims of several callers and topics in one transaction: disjoint, each on its own terms.
pub async fn claims_share_a_transaction(world: &TopicWorld) {
    world.ready(7).await;
    let printed = world.job(|job| job.key = topic("print"));
    world.store.enqueue(vec![printed.clone()]).await.unwrap();
    let mut claims: Vec<_> = (0..4).map(|n| claim_of(mail(), &[(&format!("w-{n}"), 2)])).collect();
    claims[3].lease = LEASE * 2;
    claims.push(claim_of(topic("print"), &[("p", 3)]));
    claims.push(claim_of(topic("nobody"), &[("p", 3)]));
    let answers = join_all(claims.iter().map(|claim| world.store.claim(claim.clone()))).await;
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let mut all: Vec<_> = answers[..4].iter().flatten().map(|held| held.id).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 7, "seven jobs, each once");
    for (claim, held) in claims.iter().zip(&answers) {
        assert!(held.len() <= claim.slots());
        for held in held {
            assert_eq!(held.worker, claim.workers[0].0);
            assert_eq!(held.expires_at, world.now().plus(claim.lease));
        }
    }
    assert_eq!((answers[4][0].id, answers[5].len()), (printed.id, 0));
}

pub async fn everything_at_once(world: &TopicWorld) {
    world.ready(6).await;
    let held = world.claim(4).await;
    let words = vec![settle(&held[0], Outcome::Success), settle(&held[1], failure(true))];
    let kept = vec![(held[2].id, held[2].epoch)];
    let ((settled, renewed), (made, claimed), (expired, promoted)) = join3(
        join(world.store.settle(words), world.store.renew(kept, LEASE)),
        join(world.store.enqueue(world.jobs(2)), world.store.claim(claim_of(mail(), &[("w", 1)]))),
        join(world.store.expire(5), world.store.promote(5)),
    )
    .await;
    assert!(settled.unwrap().iter().all(|answer| matches!(answer, Settled::Applied { .. })));
    assert_eq!(renewed.unwrap(), [true]);
    assert_eq!((made.unwrap().len(), claimed.unwrap().len()), (2, 1));
    assert_eq!((expired.unwrap().jobs, promoted.unwrap().jobs), (Vec::new(), Vec::new()));
    let counts = world.counts(&mail()).await;
    let expected =
        [(TopicStage::Scheduled, 1), (TopicStage::Ready, 3), (TopicStage::Running, 3), (TopicStage::Done, 1)];
    assert_eq!(counts, expected.into());
}

pub async fn two_sweeps_do_everything_once(world: &TopicWorld) {
    world.ready(5).await;
    world.claim(5).await;
    world.advance(LEASE);
    let (one, two) = join(world.store.expire(3), world.store.expire(3)).await;
    let (one, two) = (one.unwrap().jobs, two.unwrap().jobs);
    assert_eq!(one.len() + two.len(), 5);
    assert!(one.iter().all(|taken| !two.contains(taken)));
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 5)].into());
}
