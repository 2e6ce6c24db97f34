//! What operators see and do.

use giga_domain::EventKind::{self, TopicPaused, TopicResumed};
use giga_domain::FeedPos;
use giga_domain::topic::{Outcome, TopicStage};

use crate::topics::world::{World, actor, ids, key, taken};

#[tokio::test]
async fn a_pause_hands_out_nothing_and_says_by_whom_and_since_when() {
    let world = World::by_hand().await;
    let mut stream = world.open("w1", &["mail", "sms"], 10);
    for topic in [Some(key("mail")), None] {
        world.coordinator.topics().pause(topic.clone(), actor()).await.unwrap();
        world.coordinator.topics().pause(topic.clone(), actor()).await.unwrap();
        let mail = world.enqueue("mail", 1).await;
        world.claim().await;
        assert_eq!(taken(&mut stream).await, [], "{topic:?}");
        let shown = world.coordinator.topics().overview(|_| true).await.unwrap();
        let closed = match &topic {
            None => shown.everything.clone(),
            Some(key) => shown.topics.iter().find(|t| t.counts.key == *key).unwrap().paused.clone(),
        };
        assert_eq!(closed.unwrap().by, actor());
        let sms = world.enqueue("sms", 1).await;
        world.claim().await;
        let open = ids(&taken(&mut stream).await);
        assert_eq!(open, if topic.is_some() { sms.clone() } else { vec![] }, "the other topic goes on");
        world.coordinator.topics().resume(topic.clone(), actor()).await.unwrap();
        world.claim().await;
        let expected = if topic.is_some() { mail } else { [mail, sms].concat() };
        let mut got = ids(&taken(&mut stream).await);
        got.sort_unstable();
        assert_eq!(got, expected);
    }
    let events = world.coordinator.reads().feed(FeedPos::ZERO, 100).await.unwrap();
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [TopicPaused, TopicResumed, TopicPaused, TopicResumed], "each change once");
    assert_eq!(events[0].data["topic"], "mail");
    assert!(!events[2].data.contains_key("topic"), "everything");
}

#[tokio::test]
async fn the_overview_counts_jobs_workers_and_what_they_hold() {
    let world = World::by_hand().await;
    world.enqueue("mail", 3).await;
    let mut stream = world.open("w1", &["mail", "sms"], 1);
    let _same = world.open("w1", &["mail"], 1);
    world.coordinator.topics().claim_once().await.unwrap();
    let held = taken(&mut stream).await;
    let all = world.coordinator.topics().overview(|_| true).await.unwrap();
    let names: Vec<_> = all.topics.iter().map(|topic| topic.counts.key.topic.as_str()).collect();
    assert_eq!(names, ["mail", "sms"], "also the one that never had a job");
    let mail = &all.topics[0];
    assert_eq!((mail.workers, mail.in_flight), (1, 2));
    assert_eq!((mail.counts.count(TopicStage::Running), mail.counts.count(TopicStage::Ready)), (2, 1));
    world.report(&held[0], Outcome::Success).await;
    let all = world.coordinator.topics().overview(|_| true).await.unwrap();
    assert_eq!(all.topics[0].in_flight, 1);
    let none = world.coordinator.topics().overview(|product| product.as_str() == "other").await.unwrap();
    assert_eq!(none.topics, []);
}

#[tokio::test]
async fn dead_jobs_get_another_chance() {
    let world = World::by_hand().await;
    let all = world.enqueue("mail", 3).await;
    let mut stream = world.open("w1", &["mail"], 10);
    world.claim().await;
    for dealt in taken(&mut stream).await {
        world.report(&dealt, Outcome::Failure { error: "no".to_owned(), retryable: false }).await;
    }
    let dead = world.coordinator.topics().jobs(&key("mail"), TopicStage::Dead, None, 10).await.unwrap();
    assert_eq!(dead.len(), 3);
    let retry = |jobs| world.coordinator.topics().retry_dead(key("mail"), jobs, actor());
    assert_eq!(retry(vec![all[1]]).await.unwrap(), [all[1]]);
    assert_eq!(retry(vec![all[1]]).await.unwrap(), [], "it is not dead any more");
    assert_eq!(retry(vec![]).await.unwrap(), [all[0], all[2]]);
    world.claim().await;
    let again = taken(&mut stream).await;
    assert_eq!(ids(&again).len(), 3);
    assert!(again.iter().all(|dealt| dealt.job.attempt == 1), "their attempts start over");
}
