//! Dead letters: a mirror for whoever watches the broker.

use giga_domain::{JobId, Timestamp};
use giga_ports::broker::{DeadLetter, DeadLetters};

use super::world::{BrokerWorld, in_time};

pub(super) fn letter(job: u128) -> DeadLetter {
    DeadLetter {
        job_id: JobId::from_u128(job),
        product_id: "demo".parse().unwrap(),
        topic: Some("mail".parse().unwrap()),
        reason: "three attempts failed:\n\"no route to host\"".to_owned(),
        at: Timestamp::from_millis(1_700_000_000_123),
    }
}

pub(super) async fn next(letters: &mut Box<dyn DeadLetters>) -> DeadLetter {
    in_time("a dead letter", letters.next()).await.unwrap()
}

pub async fn they_reach_whoever_watches(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let mut watchers = [here.dead_letters().await.unwrap(), there.dead_letters().await.unwrap()];
    let letters = [letter(1), DeadLetter { topic: None, ..letter(2) }];
    for one in &letters {
        here.dead_letter(one).await.unwrap();
    }
    for watcher in &mut watchers {
        for one in &letters {
            assert_eq!(next(watcher).await, *one);
        }
    }
}
