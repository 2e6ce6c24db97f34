//! Holders' words: what they change, and who is not heard any more.

use std::time::Duration;

use giga_domain::topic::{Outcome, TopicStage, TopicState};
use giga_domain::{Epoch, JobId};
use giga_ports::topics::{Assignment, Settle, Settled};

use super::TopicWorld;
use super::world::{BACKOFF, LEASE, again, applied, failure, mail, settle};

fn outcomes() -> [Outcome; 4] {
    [Outcome::Success, Outcome::Release, failure(true), failure(false)]
}

/// A word with the wrong epoch changes nothing, and a renewal neither.
async fn is_fenced(world: &TopicWorld, id: JobId, epoch: Epoch) {
    let before = world.get(id).await;
    for outcome in outcomes() {
        let settles = Settle { id, epoch, outcome };
        assert_eq!(world.store.settle(vec![settles]).await.unwrap(), [Settled::Fenced]);
    }
    assert_eq!(world.store.renew(vec![(id, epoch)], LEASE * 2).await.unwrap(), [false]);
    assert_eq!(world.get(id).await, before);
}

pub async fn a_success_is_done(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let held = world.claim_one().await;
    world.advance(Duration::from_secs(2));
    assert_eq!(world.settle(&held, Outcome::Success).await, applied(&mail(), TopicStage::Done));
    let head = world.get(id).await.head;
    assert_eq!(head.state, TopicState::Done { at: world.now() });
    assert_eq!((head.epoch, head.attempts, head.last_error), (Epoch(1), 0, None));
}

pub async fn a_repeated_word_is_answered_as_before(world: &TopicWorld) {
    for outcome in outcomes() {
        world.ready(1).await;
        let held = world.claim_one().await;
        let first = world.settle(&held, outcome.clone()).await;
        let after = world.get(held.id).await;
        world.advance(Duration::from_millis(10));
        assert_eq!(world.settle(&held, outcome.clone()).await, again(&first));
        assert_eq!(world.get(held.id).await, after);
        assert_eq!(world.store.renew(vec![(held.id, held.epoch)], LEASE).await.unwrap(), [false]);
        // Out of the way of the next one.
        for mut left in world.claim(1).await {
            left.epoch = Epoch(2);
            world.settle(&left, Outcome::Success).await;
        }
    }
}

/// The first word counted; whoever says another one must not believe that it was written down.
pub async fn another_word_than_before_is_fenced(world: &TopicWorld) {
    let is_failure = |outcome: &Outcome| matches!(outcome, Outcome::Failure { .. });
    for first in outcomes() {
        world.ready(1).await;
        let held = world.claim_one().await;
        let answer = world.settle(&held, first.clone()).await;
        let after = world.get(held.id).await;
        for second in outcomes() {
            let same = second == first || is_failure(&second) && is_failure(&first);
            let expected = if same { again(&answer) } else { Settled::Fenced };
            assert_eq!(world.settle(&held, second.clone()).await, expected, "{first:?}, then {second:?}");
            let pair = vec![settle(&held, second.clone()), settle(&held, second)];
            assert_eq!(world.store.settle(pair).await.unwrap(), [expected.clone(), expected]);
        }
        assert_eq!(world.get(held.id).await, after);
        // Out of the way of the next one.
        for left in world.claim(1).await {
            world.settle(&left, Outcome::Success).await;
        }
    }
    let id = world.ready(1).await[0];
    is_fenced(world, id, Epoch::ZERO).await;
}

/// What became of the job since does not make the word another one.
pub async fn a_failure_is_known_again_once_the_job_is_ready_again(world: &TopicWorld) {
    for retryable in [true, false] {
        world.ready(1).await;
        let held = world.claim_one().await;
        world.settle(&held, failure(retryable)).await;
        world.advance(BACKOFF);
        world.store.promote(10).await.unwrap();
        world.store.retry_dead(mail(), vec![held.id], 10).await.unwrap();
        assert_eq!(world.stage(held.id).await, TopicStage::Ready);
        let ready = again(&applied(&mail(), TopicStage::Ready));
        assert_eq!(world.settle(&held, failure(retryable)).await, ready);
        assert_eq!(world.settle(&held, Outcome::Success).await, Settled::Fenced);
        let next = world.claim_one().await;
        assert_eq!(world.settle(&held, failure(retryable)).await, Settled::Fenced, "it is another's");
        world.settle(&next, Outcome::Success).await;
    }
}

pub async fn a_word_said_twice_in_one_call(world: &TopicWorld) {
    world.ready(2).await;
    let held = world.claim(2).await;
    let words = vec![
        settle(&held[0], Outcome::Success),
        settle(&held[1], failure(true)),
        settle(&held[0], Outcome::Success),
        settle(&held[1], Outcome::Success),
    ];
    let answers = world.store.settle(words).await.unwrap();
    let due = Some(world.now().plus(BACKOFF));
    let scheduled = Settled::Applied { key: mail(), stage: TopicStage::Scheduled, due, repeated: false };
    let done = applied(&mail(), TopicStage::Done);
    assert_eq!(answers, [done.clone(), scheduled, again(&done), Settled::Fenced]);
    assert_eq!(world.get(held[1].id).await.head.attempts, 1);
}

pub async fn a_stale_epoch_changes_nothing(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let held = world.claim_one().await;
    is_fenced(world, id, Epoch(held.epoch.0 - 1)).await;
    is_fenced(world, id, Epoch(held.epoch.0 + 1)).await;
    assert_eq!(world.settle(&held, Outcome::Success).await, applied(&mail(), TopicStage::Done));
}

pub async fn an_expired_holder_changes_nothing(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let held = world.claim_one().await;
    world.advance(LEASE);
    assert_eq!(world.store.expire(10).await.unwrap().jobs, [(mail(), id, TopicStage::Ready)]);
    is_fenced(world, id, held.epoch).await;
    let again = world.claim_one().await;
    assert_eq!((again.id, again.epoch, again.attempt), (id, Epoch(held.epoch.0 + 2), 2));
    is_fenced(world, id, held.epoch).await;
    assert_eq!(world.settle(&again, Outcome::Success).await, applied(&mail(), TopicStage::Done));
    is_fenced(world, id, held.epoch).await;
}

pub async fn a_released_and_claimed_again_job_is_anothers(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let held = world.claim_one().await;
    world.settle(&held, Outcome::Release).await;
    let again = world.claim_one().await;
    assert_eq!(again.epoch, Epoch(held.epoch.0 + 1));
    is_fenced(world, id, held.epoch).await;
}

/// Until the lease was taken back, the holder is heard: late is not wrong.
pub async fn a_late_word_in_time_counts(world: &TopicWorld) {
    world.ready(1).await;
    let held = world.claim_one().await;
    world.advance(LEASE * 2);
    assert_eq!(world.settle(&held, Outcome::Success).await, applied(&mail(), TopicStage::Done));
    assert_eq!(world.store.expire(10).await.unwrap().jobs, []);
}

pub async fn failures_back_off_and_die(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let held = world.claim_one().await;
    let due = world.now().plus(BACKOFF);
    let scheduled =
        Settled::Applied { key: mail(), stage: TopicStage::Scheduled, due: Some(due), repeated: false };
    assert_eq!(world.settle(&held, failure(true)).await, scheduled);
    let head = world.get(id).await.head;
    assert_eq!((head.state, head.attempts), (TopicState::Scheduled { due }, 1));
    assert_eq!(head.last_error.as_deref(), Some("it broke"));
    assert_eq!(world.claim(1).await, [], "its time has not come");

    world.advance(BACKOFF);
    assert_eq!(world.store.promote(10).await.unwrap().jobs, [(mail(), id, TopicStage::Ready)]);
    let again = world.claim_one().await;
    assert_eq!((again.id, again.attempt, again.epoch), (id, 2, Epoch(2)));
    assert_eq!(world.settle(&again, failure(true)).await, applied(&mail(), TopicStage::Dead));
    let head = world.get(id).await.head;
    assert_eq!((head.state, head.attempts), (TopicState::Dead { at: world.now() }, 2));
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Dead, 1)].into());
}

pub async fn a_failure_for_good_is_dead_at_once(world: &TopicWorld) {
    let id = world.dead().await;
    let head = world.get(id).await.head;
    assert_eq!((head.state, head.attempts), (TopicState::Dead { at: world.now() }, 1));
}

pub async fn a_release_uses_no_attempt(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    for round in 0..5 {
        let held = world.claim_one().await;
        assert_eq!((held.id, held.attempt, held.epoch), (id, 1, Epoch(round + 1)));
        assert_eq!(world.settle(&held, Outcome::Release).await, applied(&mail(), TopicStage::Ready));
    }
    assert_eq!(world.get(id).await.head.attempts, 0);
}

pub async fn one_bad_word_spares_the_others(world: &TopicWorld) {
    world.ready(3).await;
    let held = world.claim(3).await;
    let unknown = Assignment { id: world.job(|_| ()).id, ..held[0].clone() };
    let stale = Assignment { epoch: Epoch(9), ..held[1].clone() };
    let words = vec![
        settle(&unknown, Outcome::Success),
        settle(&held[0], Outcome::Success),
        settle(&stale, failure(true)),
        settle(&unknown, failure(false)),
        settle(&held[2], failure(false)),
    ];
    let answers = world.store.settle(words).await.unwrap();
    let (done, dead) = (applied(&mail(), TopicStage::Done), applied(&mail(), TopicStage::Dead));
    assert_eq!(answers, [Settled::Unknown, done, Settled::Fenced, Settled::Unknown, dead]);
    assert_eq!(world.stage(held[1].id).await, TopicStage::Running);
    assert_eq!(world.store.settle(Vec::new()).await.unwrap(), []);
}

pub async fn a_renewal_prolongs_and_never_shortens(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let held = world.claim_one().await;
    let until = |job: giga_domain::topic::TopicJob| match job.head.state {
        TopicState::Running { until, .. } => until,
        other => panic!("{other:?}"),
    };
    let hold = vec![(id, held.epoch)];
    assert_eq!(world.store.renew(hold.clone(), LEASE / 2).await.unwrap(), [true]);
    assert_eq!(until(world.get(id).await), world.now().plus(LEASE));
    world.advance(LEASE / 2);
    assert_eq!(world.store.renew(hold, LEASE).await.unwrap(), [true]);
    assert_eq!(until(world.get(id).await), world.now().plus(LEASE));
    let (unknown, stale) = (world.job(|_| ()).id, Epoch(7));
    let mixed = vec![(unknown, held.epoch), (id, held.epoch), (id, stale)];
    assert_eq!(world.store.renew(mixed, LEASE).await.unwrap(), [false, true, false]);
    assert_eq!(world.store.renew(Vec::new(), LEASE).await.unwrap(), [] as [bool; 0]);
}
