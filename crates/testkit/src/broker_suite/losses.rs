//! A broker may lose everything at any time. What was lost is missing; everything else goes on.

use giga_domain::Offer;
use giga_ports::Broker;
use giga_ports::broker::{Hint, Offers};

use super::dead_letters::{self, letter};
use super::world::{BrokerWorld, expect, factory_id, in_time, persistently};

/// As every user does: opens another consumer when the one it has is at its end.
async fn next_of(broker: &dyn Broker, consumer: &mut Box<dyn Offers>) -> Offer {
    let factory = factory_id("f1");
    let taking = async {
        loop {
            match consumer.next().await {
                Ok(delivered) => return delivered.offer,
                Err(_) => {
                    *consumer = persistently("another consumer", || broker.consume(&factory)).await;
                }
            }
        }
    };
    in_time("an offer after the wipe", taking).await
}

pub async fn a_wipe_loses_what_it_held_and_nothing_more(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let factory = factory_id("f1");
    let mut consumer = there.consume(&factory).await.unwrap();
    let [lost, again, fresh] = [world.offer("f1"), world.offer("f1"), world.offer("f1")];
    here.publish(&[lost.clone(), again.clone()]).await.unwrap();
    // Delivered and not acknowledged: without the wipe both would come again.
    expect(&mut consumer, &[&lost, &again]).await;
    world.wipe().await;
    drop(consumer);

    let mut consumer = persistently("a consumer", || there.consume(&factory)).await;
    // What is published again is not a duplicate of what was lost.
    persistently("a publish", || here.publish(std::slice::from_ref(&again))).await;
    assert_eq!(next_of(&*there, &mut consumer).await, again);
    persistently("a publish", || here.publish(std::slice::from_ref(&fresh))).await;
    assert_eq!(next_of(&*there, &mut consumer).await, fresh);
}

pub async fn hints_and_dead_letters_go_on_after_a_wipe(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let (mut hints, mut letters) = (there.hints().await.unwrap(), there.dead_letters().await.unwrap());
    world.wipe().await;
    for broker in [&here, &there] {
        persistently("an answer", || broker.ping()).await;
    }
    let sent = Hint::Due { at: giga_domain::Timestamp::from_millis(5) };
    let telling = async {
        loop {
            // Readers do not end, but a hint that was told while the broker was away is lost.
            persistently("a hint", || here.hint(&sent)).await;
            tokio::task::yield_now().await;
            if let Ok(heard) = tokio::time::timeout(std::time::Duration::from_millis(100), hints.next()).await
                && heard.unwrap() == sent
            {
                return;
            }
        }
    };
    in_time("a hint after the wipe", telling).await;
    persistently("a dead letter", || async { here.dead_letter(&letter(1)).await }).await;
    assert_eq!(dead_letters::next(&mut letters).await, letter(1));
}
