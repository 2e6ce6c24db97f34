//! Hints: everybody hears them, the one who tells included.

use giga_domain::{FeedPos, JobId, WorkerId};
use giga_ports::broker::{Hint, Hints, ReadyTopic};

use super::world::{BrokerWorld, in_time};

pub(super) async fn next(hints: &mut Box<dyn Hints>) -> Hint {
    in_time("a hint", hints.next()).await.unwrap()
}

pub async fn they_reach_everybody(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let mut readers =
        [here.hints().await.unwrap(), here.hints().await.unwrap(), there.hints().await.unwrap()];
    let topic = ReadyTopic {
        product: "demo".parse().unwrap(),
        topic: "mail:urgent".parse().unwrap(),
        lowest: JobId::from_u128(7),
    };
    let sent = [
        Hint::Feed { pos: FeedPos(9) },
        Hint::Ready { topics: vec![topic] },
        Hint::Due { at: giga_domain::Timestamp::from_millis(1_700_000_000_123) },
        Hint::Settled { worker: "w:1".parse().unwrap(), jobs: vec![JobId::from_u128(3)] },
        Hint::Pauses,
        Hint::Leaderless,
    ];
    for hint in &sent {
        here.hint(hint).await.unwrap();
    }
    for reader in &mut readers {
        for hint in &sent {
            assert_eq!(next(reader).await, *hint);
        }
    }
}

pub async fn a_long_one_arrives_whole(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let mut reader = there.hints().await.unwrap();
    let worker: WorkerId = "w1".parse().unwrap();
    let sent: Vec<JobId> = (0..2_000).map(JobId::from_u128).collect();
    here.hint(&Hint::Settled { worker: worker.clone(), jobs: sent.clone() }).await.unwrap();
    let mut heard = Vec::new();
    // It may come in parts.
    while heard.len() < sent.len() {
        match next(&mut reader).await {
            Hint::Settled { worker: whose, jobs } if whose == worker => heard.extend(jobs),
            other => panic!("{other:?} was never told"),
        }
    }
    assert_eq!(heard, sent);
}

pub async fn readers_begin_where_they_are(world: &BrokerWorld) {
    let broker = world.open().await;
    let mut witness = broker.hints().await.unwrap();
    broker.hint(&Hint::Pauses).await.unwrap();
    assert_eq!(next(&mut witness).await, Hint::Pauses);
    let mut late = broker.hints().await.unwrap();
    broker.hint(&Hint::Leaderless).await.unwrap();
    assert_eq!(next(&mut late).await, Hint::Leaderless);
}
