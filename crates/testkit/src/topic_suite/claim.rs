//! Who gets what: priority, then age; slots; pauses.

use std::time::Duration;

use giga_domain::topic::{Outcome, TopicStage, TopicState};
use giga_domain::{Actor, Epoch, Priority};
use giga_ports::topics::{PauseScope, TopicClaim, TopicPause};

use super::TopicWorld;
use super::world::{LEASE, claim_of, failure, ids, mail, operator, topic};

pub async fn priority_then_age(world: &TopicWorld) {
    use Priority::{Critical, High, Low, Normal};
    let ranks = [Low, Normal, Critical, High, Normal, Critical, Low, High];
    let jobs: Vec<_> = ranks.map(|priority| world.job(|job| job.priority = priority)).into();
    let mut expected: Vec<_> = jobs.iter().map(|job| (job.priority, job.id)).collect();
    expected.sort_unstable();
    // Whatever order they came in.
    world.store.enqueue(jobs.into_iter().rev().collect()).await.unwrap();
    let mut claimed = world.claim(3).await;
    claimed.extend(world.claim(10).await);
    let order: Vec<_> = claimed.iter().map(|assignment| (assignment.priority, assignment.id)).collect();
    assert_eq!(order, expected);
}

/// A job that is older than everything claimed so far goes first, whichever way it became ready.
pub async fn what_becomes_ready_later_has_its_turn(world: &TopicWorld) {
    let old = world.job(|_| ());
    let released = world.ready(1).await[0];
    let rest = world.ready(4).await;
    let held = world.claim(2).await;
    assert_eq!(ids(&held), [released, rest[0]]);
    world.store.enqueue(vec![old.clone()]).await.unwrap();
    assert_eq!(ids(&world.claim(1).await), [old.id]);
    world.settle(&held[0], Outcome::Release).await;
    assert_eq!(ids(&world.claim(2).await), [released, rest[1]]);
}

pub async fn a_claim_is_a_lease(world: &TopicWorld) {
    let id = world.ready(1).await[0];
    let made = world.get(id).await;
    world.advance(Duration::from_secs(3));
    let held = world.claim_one().await;
    assert_eq!((held.id, held.epoch, held.attempt), (id, Epoch(1), 1));
    assert_eq!((held.created_at, held.expires_at), (made.created_at, world.now().plus(LEASE)));
    assert_eq!((held.payload, held.worker.as_str()), (made.payload, "worker-1"));
    let running = world.get(id).await.head;
    let until = world.now().plus(LEASE);
    assert_eq!(running.state, TopicState::Running { worker: "worker-1".parse().unwrap(), until });
    assert_eq!((running.epoch, running.attempts), (Epoch(1), 0));
    assert_eq!(world.claim(5).await, [], "it is taken");
}

pub async fn slots_are_dealt_in_turn(world: &TopicWorld) {
    let jobs = world.ready(6).await;
    let claimed = world.claim_for(&[("one", 1), ("none", 0), ("many", 3)]).await;
    let dealt: Vec<_> = claimed.iter().map(|a| (a.worker.as_str(), a.id)).collect();
    assert_eq!(dealt, [("one", jobs[0]), ("many", jobs[1]), ("many", jobs[2]), ("many", jobs[3])]);
    let rest = world.claim_for(&[("a", 2), ("b", 2)]).await;
    let dealt: Vec<_> = rest.iter().map(|a| (a.worker.as_str(), a.id)).collect();
    assert_eq!(dealt, [("a", jobs[4]), ("b", jobs[5])]);
    for assignment in claimed.iter().chain(&rest) {
        let state = world.get(assignment.id).await.head.state;
        let until = assignment.expires_at;
        assert_eq!(state, TopicState::Running { worker: assignment.worker.clone(), until });
    }
    assert_eq!(world.claim_for(&[("none", 0)]).await, []);
}

pub async fn the_bytes_of_a_claim_are_bounded(world: &TopicWorld) {
    let sizes = [30, 10, 60, 5, 500, 1];
    let jobs: Vec<_> = sizes.iter().map(|size| world.job(|job| job.payload = vec![7; *size])).collect();
    let expected: Vec<_> = jobs.iter().map(|job| job.id).collect();
    world.store.enqueue(jobs).await.unwrap();
    let claim = |most_bytes| {
        let claim = TopicClaim { most_bytes, ..claim_of(mail(), &[("w", 10)]) };
        async move { ids(&world.store.claim(claim).await.unwrap()) }
    };
    assert_eq!(claim(99).await, expected[..2], "the third does not fit, and what follows waits for its turn");
    assert_eq!(claim(65).await, expected[2..4], "exactly full");
    assert_eq!(claim(65).await, expected[4..5], "a single job may be larger");
    assert_eq!(claim(65).await, expected[5..], "nothing is passed over");
    assert_eq!(claim(65).await, []);
}

pub async fn topics_are_apart(world: &TopicWorld) {
    let mine = world.ready(1).await[0];
    let elsewhere = world.job(|job| job.key = topic("print"));
    world.store.enqueue(vec![elsewhere.clone()]).await.unwrap();
    let other_product = world.job(|job| job.key.product = "other".parse().unwrap());
    world.store.enqueue(vec![other_product]).await.unwrap();
    assert_eq!(ids(&world.claim(5).await), [mine]);
    let printed = world.store.claim(claim_of(topic("print"), &[("w", 5)])).await.unwrap();
    assert_eq!(ids(&printed), [elsewhere.id]);
    assert_eq!(world.store.claim(claim_of(topic("nobody-asked"), &[("w", 5)])).await.unwrap(), []);
}

pub async fn a_closed_topic_gives_nothing(world: &TopicWorld) {
    let jobs = world.ready(2).await;
    let elsewhere = world.job(|job| job.key = topic("print"));
    world.store.enqueue(vec![elsewhere.clone()]).await.unwrap();
    world.store.set_pause(PauseScope::Topic(mail()), true, operator()).await.unwrap();
    assert_eq!(world.claim(5).await, []);
    let printed = world.store.claim(claim_of(topic("print"), &[("w", 5)])).await.unwrap();
    assert_eq!(ids(&printed), [elsewhere.id], "another topic goes on");
    world.store.set_pause(PauseScope::Topic(mail()), false, operator()).await.unwrap();
    assert_eq!(ids(&world.claim(5).await), jobs);
}

pub async fn closed_for_everything_gives_nothing(world: &TopicWorld) {
    let jobs = world.ready(2).await;
    let held = world.claim_one().await;
    world.store.set_pause(PauseScope::Everything, true, operator()).await.unwrap();
    assert_eq!(world.claim(5).await, []);
    // Who holds one may finish it.
    assert!(matches!(
        world.settle(&held, failure(false)).await,
        giga_ports::topics::Settled::Applied { stage: TopicStage::Dead, .. }
    ));
    world.store.set_pause(PauseScope::Everything, false, operator()).await.unwrap();
    assert_eq!(ids(&world.claim(5).await), jobs[1..]);
}

pub async fn gates_say_since_when_and_by_whom(world: &TopicWorld) {
    assert_eq!(world.store.pauses().await.unwrap(), []);
    let since = world.now();
    // A topic needs no jobs to be closed.
    let scopes = [PauseScope::Everything, PauseScope::Topic(mail())];
    for scope in &scopes {
        world.store.set_pause(scope.clone(), true, operator()).await.unwrap();
    }
    world.advance(Duration::from_secs(9));
    world.store.set_pause(PauseScope::Topic(mail()), true, Actor::system("other")).await.unwrap();
    let closed = scopes.map(|scope| TopicPause { scope, since, by: operator() });
    assert_eq!(world.store.pauses().await.unwrap(), closed);
    assert_eq!(world.store.topics().await.unwrap(), [], "a pause is no job");
    world.store.set_pause(PauseScope::Everything, false, operator()).await.unwrap();
    world.store.set_pause(PauseScope::Topic(topic("never-closed")), false, operator()).await.unwrap();
    assert_eq!(world.store.pauses().await.unwrap(), closed[1..]);
}
