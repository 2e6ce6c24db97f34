//! The history: per job without gaps, fleet-wide in commit order.

use giga_domain::{
    Actor, Event, EventKind, EventSeq, FeedPos, HolderAction, JobId, OperatorAction, RunReport, Stage,
};
use giga_ports::store::{ExpireLeases, HistoryOf, SetFlag};
use std::time::Duration;

use super::World;
use super::world::{fail, holder, user};

/// A job with a long life: two attempts, a failure, a requeue, shipped at last.
async fn long_life(world: &World) -> JobId {
    let mac = match world.store.read().factory(&"mac-1".parse().unwrap()).await.unwrap() {
        Some(factory) => factory.id,
        None => world.factory("mac-1").await,
    };
    let (job, first) = world.building(&mac, |spec| spec.retry.backoff_ms = 0).await;
    world.hold(job.id, &first, [fail(true)]).await.unwrap();
    let again = world.granted(job.id, &mac).await;
    world.hold(job.id, &holder(&again), [fail(false)]).await.unwrap();
    world.operate(job.id, OperatorAction::Requeue).await.unwrap();
    let last = world.granted(job.id, &mac).await;
    let report = HolderAction::Report(RunReport::default());
    world.hold(job.id, &holder(&last), [HolderAction::Start, report]).await.unwrap();
    world.operate(job.id, OperatorAction::Ship).await.unwrap();
    job.id
}

fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.job.unwrap().1.0).collect()
}

pub async fn seq_runs_without_gaps(world: &World) {
    let (one, two) = (long_life(world).await, long_life(world).await);
    for id in [one, two] {
        let events = world.events(id).await;
        assert_eq!(seqs(&events), (1..=events.len() as u64).collect::<Vec<_>>());
        assert_eq!(world.job(id).await.last_event.0, events.len() as u64);
        assert!(events.iter().all(|event| event.job.unwrap().0 == id));
        assert!(events.is_sorted_by(|a, b| a.pos < b.pos));
        // From anywhere, in pages of any size.
        let some = world.store.read().job_events(id, EventSeq(2), 3).await.unwrap();
        assert_eq!(some, events[2..5]);
        let none = world.store.read().job_events(id, EventSeq(events.len() as u64), 3).await.unwrap();
        assert_eq!(none, []);
    }
}

pub async fn the_feed_is_in_order_and_complete(world: &World) {
    let (one, two) = (long_life(world).await, long_life(world).await);
    world
        .store
        .set_flag(SetFlag { name: "strict".to_owned(), value: serde_json::json!(true), actor: user() })
        .await
        .unwrap();
    let feed = world.feed().await;
    assert!(feed.is_sorted_by(|a, b| a.pos < b.pos));
    for id in [one, two] {
        let of_job: Vec<_> =
            feed.iter().filter(|event| event.job.is_some_and(|(job, _)| job == id)).cloned().collect();
        assert_eq!(of_job, world.events(id).await);
        assert!(of_job.iter().all(|event| event.product.as_ref().unwrap().as_str() == "demo"));
    }
    let of_fleet: Vec<_> = feed.iter().filter(|e| e.job.is_none()).map(|e| (e.kind, &e.product)).collect();
    assert_eq!(
        of_fleet,
        [
            (EventKind::FactoryEnrolled, &None),
            (EventKind::TokenIssued, &None),
            (EventKind::FactoryChanged, &None),
            (EventKind::FlagChanged, &None)
        ]
    );
}

/// Each part of the history from its end, in pages of any size, as a reader of the whole would cut it.
pub async fn the_history_is_read_backwards(world: &World) {
    let (one, _) = (long_life(world).await, long_life(world).await);
    let flag = SetFlag { name: "strict".to_owned(), value: serde_json::json!(true), actor: user() };
    world.store.set_flag(flag).await.unwrap();
    let mut feed = world.feed().await;
    feed.reverse();
    for of in [HistoryOf::Everything, HistoryOf::People, HistoryOf::NoJob, HistoryOf::Job(one)] {
        let expected: Vec<_> = feed.iter().filter(|event| of.includes(event)).cloned().collect();
        assert!(expected.len() > 2, "{of:?}");
        assert!(of == HistoryOf::Everything || expected.len() < feed.len(), "{of:?}");
        for limit in [1, 3, 1_000] {
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let page = world.store.read().history(&of, before, limit).await.unwrap();
                before = page.last().map(|event| event.pos);
                found.extend(page);
                if before.is_none() || limit == 1_000 {
                    break;
                }
            }
            assert_eq!(found, expected, "{of:?} by {limit}");
        }
    }
}

pub async fn a_reader_resumes_anywhere(world: &World) {
    long_life(world).await;
    let feed = world.feed().await;
    for limit in [1, 3, 1_000] {
        let (mut seen, mut after) = (Vec::new(), FeedPos::ZERO);
        loop {
            let page = world.store.read().feed(after, limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = last.pos;
            seen.extend(page);
        }
        assert_eq!(seen, feed, "pages of {limit}");
    }
    for (place, event) in feed.iter().enumerate() {
        let rest = world.store.read().feed(event.pos, 1_000).await.unwrap();
        assert_eq!(rest, feed[place + 1..]);
    }
}

pub async fn the_head_is_the_last_position(world: &World) {
    assert_eq!(world.store.read().feed_head().await.unwrap(), FeedPos::ZERO);
    long_life(world).await;
    let last = world.feed().await.last().unwrap().pos;
    assert_eq!(world.store.read().feed_head().await.unwrap(), last);
    assert_eq!(world.store.read().feed(last, 10).await.unwrap(), []);
}

pub async fn the_head_hint_rises_with_writes(world: &World) {
    let mut head = world.store.head();
    let start = *head.borrow_and_update();
    world.submitted(|_| ()).await;
    tokio::time::timeout(Duration::from_secs(10), head.changed()).await.expect("a hint comes").unwrap();
    assert!(*head.borrow() > start);
    assert_eq!(*head.borrow(), world.store.read().feed_head().await.unwrap());
}

pub async fn stages_follow_each_other(world: &World) {
    let id = long_life(world).await;
    let events = world.events(id).await;
    let mut stage: Option<Stage> = None;
    for event in events.iter().filter(|event| event.to.is_some()) {
        assert_eq!(event.from, stage, "{} starts where the one before ended", event.kind);
        if let (Some(from), Some(to)) = (event.from, event.to) {
            assert!(from.may_become(to), "{from} -> {to}");
        }
        stage = event.to;
    }
    assert_eq!(stage, Some(world.job(id).await.stage()));
}

pub async fn actors_and_causes_are_recorded(world: &World) {
    let id = long_life(world).await;
    let events = world.events(id).await;
    let mac = Actor::Factory("mac-1".parse().unwrap());
    for event in &events {
        let by_user = matches!(event.kind, EventKind::Submitted | EventKind::Requeued | EventKind::Shipped);
        assert_eq!(event.actor, if by_user { user() } else { mac.clone() }, "{}", event.kind);
        assert!(!event.cause.is_empty());
        assert_eq!(event.at, world.now());
    }
    let failed = events.iter().find(|event| event.kind == EventKind::Failed).unwrap();
    assert_eq!(failed.data["reason"], "verify_failed");
    assert_eq!(failed.data["detail"], "2 tests failed");
    let (job, _) = world.assigned(&"mac-1".parse().unwrap(), |_| ()).await;
    world.advance(Duration::from_mins(1));
    world.store.expire_leases(ExpireLeases { limit: 1 }).await.unwrap();
    assert_eq!(world.events(job.id).await.pop().unwrap().actor, Actor::system("reaper"));
}

pub async fn positions_are_not_reused_after_a_retirement(world: &World) {
    let mac = world.factory("mac-1").await;
    world.in_stage(Stage::Cancelled, &mac).await;
    let head = world.store.read().feed_head().await.unwrap();
    world.advance(Duration::from_hours(1));
    assert_eq!(world.retire(world.now(), 10).await, 1);
    let job = world.submitted(|_| ()).await;
    // A reader that had seen everything before must see what comes after.
    let seen = world.store.read().feed(head, 10).await.unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].job.unwrap().0, job.id);
}
