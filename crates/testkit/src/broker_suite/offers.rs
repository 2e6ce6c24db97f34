//! Offers: to whom they go, how often, and what a consumer leaves behind.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::join_all;
use giga_domain::{FactoryId, Offer};

use super::world::{BrokerWorld, expect, factory_id, in_time, next};

pub async fn one_reaches_its_factory_and_nobody_else(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    // Names that a careless spelling of a subject or a channel would mix up.
    let names = ["mac-1.local", "mac-1_local", "mac-1", "MAC-1"];
    let mut consumers = Vec::new();
    for name in names {
        consumers.push(there.consume(&factory_id(name)).await.unwrap());
    }
    let offers: Vec<Offer> = names.iter().chain(&names).map(|name| world.offer(name)).collect();
    here.publish(&offers).await.unwrap();
    for (n, consumer) in consumers.iter_mut().enumerate() {
        expect(consumer, &[&offers[n], &offers[n + names.len()]]).await;
    }
}

pub async fn one_arrives_as_it_was_sent(world: &BrokerWorld) {
    let broker = world.open().await;
    let offer = Offer {
        repo: Some("git@example.com:team/\"quoted\"\n\u{e9}\u{1f3ed}.git".to_owned()),
        priority: giga_domain::Priority::High,
        ..world.offer("f1")
    };
    let mut consumer = broker.consume(&factory_id("f1")).await.unwrap();
    broker.publish(std::slice::from_ref(&offer)).await.unwrap();
    let delivered = next(&mut consumer).await;
    assert_eq!((delivered.offer, delivered.attempt), (offer, 1));
}

pub async fn the_same_message_is_delivered_once(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let mut consumer = there.consume(&factory_id("f1")).await.unwrap();
    let (twice, after) = (world.offer("f1"), world.offer("f1"));
    here.publish(&[twice.clone(), twice.clone()]).await.unwrap();
    let delivered = next(&mut consumer).await;
    assert_eq!(delivered.offer, twice);
    consumer.ack(&delivered).await.unwrap();
    // As a new leader does, who does not know what the old one sent.
    there.publish(&[twice.clone(), after.clone()]).await.unwrap();
    expect(&mut consumer, &[&after]).await;
}

pub async fn the_next_dispatch_of_a_job_is_delivered(world: &BrokerWorld) {
    let broker = world.open().await;
    let mut consumer = broker.consume(&factory_id("f1")).await.unwrap();
    let first = world.offer("f1");
    let second = Offer { dispatch_seq: first.dispatch_seq.next(), ..first.clone() };
    for offer in [first, second] {
        broker.publish(std::slice::from_ref(&offer)).await.unwrap();
        let delivered = expect(&mut consumer, &[&offer]).await;
        consumer.ack(&delivered[0]).await.unwrap();
    }
}

pub async fn what_was_not_acknowledged_comes_again(world: &BrokerWorld) {
    let broker = world.open().await;
    let factory = factory_id("f1");
    let offers = [world.offer("f1"), world.offer("f1"), world.offer("f1"), world.offer("f1")];
    let [acked, held, unseen, later] = &offers;
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.publish(&offers[..3]).await.unwrap();
    let delivered = expect(&mut consumer, &[acked, held]).await;
    consumer.ack(&delivered[0]).await.unwrap();
    drop(consumer);

    let mut consumer = broker.consume(&factory).await.unwrap();
    for again in expect(&mut consumer, &[held, unseen]).await {
        consumer.ack(&again).await.unwrap();
    }
    drop(consumer);

    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.publish(std::slice::from_ref(later)).await.unwrap();
    expect(&mut consumer, &[later]).await;
}

pub async fn a_wait_that_was_given_up_loses_nothing(world: &BrokerWorld) {
    let broker = world.open().await;
    let mut consumer = broker.consume(&factory_id("f1")).await.unwrap();
    let offers: Vec<Offer> = (0..50).map(|_| world.offer("f1")).collect();
    let publishing = async {
        for offer in &offers {
            broker.publish(std::slice::from_ref(offer)).await.unwrap();
        }
    };
    let taking = async {
        let mut taken = Vec::new();
        while taken.len() < offers.len() {
            // Begun and dropped at once, again and again, as in a `select!` that something else wins.
            if let Some(delivered) = consumer.next().now_or_never() {
                taken.push(delivered.unwrap().offer);
            }
            tokio::task::yield_now().await;
        }
        taken
    };
    let ((), taken) = in_time("fifty offers", async { tokio::join!(publishing, taking) }).await;
    assert_eq!(taken, offers);
}

pub async fn a_newer_consumer_takes_over(world: &BrokerWorld) {
    let broker = world.open().await;
    let factory = factory_id("f1");
    let mut older = broker.consume(&factory).await.unwrap();
    let held = world.offer("f1");
    broker.publish(std::slice::from_ref(&held)).await.unwrap();
    let delivered = expect(&mut older, &[&held]).await;

    // The older one already waits when the newer one comes.
    let both = async { tokio::join!(older.next(), broker.consume(&factory)) };
    let (end, newer) = in_time("the end of the older consumer", both).await;
    assert!(end.is_err(), "{end:?}");
    let mut newer = newer.unwrap();
    assert!(in_time("the same again", older.next()).await.is_err());
    let again = expect(&mut newer, &[&held]).await;
    newer.ack(&again[0]).await.unwrap();

    // A late acknowledgement may count or not; neither it nor the older one's end disturbs the newer one.
    let _ = older.ack(&delivered[0]).await;
    drop(older);
    let after = world.offer("f1");
    broker.publish(std::slice::from_ref(&after)).await.unwrap();
    expect(&mut newer, &[&after]).await;

    // One that never asked for anything is replaced all the same.
    let mut idle = broker.consume(&factory).await.unwrap();
    let mut newest = broker.consume(&factory).await.unwrap();
    assert!(in_time("the end of the idle consumer", idle.next()).await.is_err());
    expect(&mut newest, &[&after]).await;
}

pub async fn one_from_before_the_consumer_is_found(world: &BrokerWorld) {
    let (here, there) = (world.open().await, world.open().await);
    let (early, late) = (world.offer("f1"), world.offer("f1"));
    here.publish(std::slice::from_ref(&early)).await.unwrap();
    let mut consumer = there.consume(&factory_id("f1")).await.unwrap();
    here.publish(std::slice::from_ref(&late)).await.unwrap();
    expect(&mut consumer, &[&early, &late]).await;
}

pub async fn a_thousand_reach_fifty_factories(world: &BrokerWorld) {
    const FACTORIES: usize = 50;
    let handles = [world.open().await, world.open().await];
    let names: Vec<FactoryId> = (0..FACTORIES).map(|n| factory_id(&format!("factory-{n}.rack"))).collect();
    let mut consumers = BTreeMap::new();
    for (n, name) in names.iter().enumerate() {
        consumers.insert(name.clone(), handles[n % 2].consume(name).await.unwrap());
    }
    let offers: Vec<Offer> = (0..1_000).map(|n| world.offer(names[n % FACTORIES].as_str())).collect();
    for (n, batch) in offers.chunks(100).enumerate() {
        handles[n % 2].publish(batch).await.unwrap();
    }
    let reading = consumers.into_iter().map(|(name, mut consumer)| {
        let mut expected: Vec<&Offer> =
            offers.iter().filter(|offer| offer.target_factory_id == name).collect();
        async move {
            // Two handles published: between them the order is anybody's.
            let mut taken = Vec::new();
            for _ in 0..expected.len() {
                let delivered = next(&mut consumer).await;
                consumer.ack(&delivered).await.unwrap();
                taken.push(delivered.offer);
            }
            taken.sort_by_key(|offer| offer.job_id);
            expected.sort_by_key(|offer| offer.job_id);
            assert_eq!(taken.iter().collect::<Vec<_>>(), expected);
        }
    });
    join_all(reading).await;
}

pub async fn many_publishers_at_once(world: &BrokerWorld) {
    let broker = world.open().await;
    let mut consumer = broker.consume(&factory_id("f1")).await.unwrap();
    let offers: Vec<Offer> = (0..200).map(|_| world.offer("f1")).collect();
    let publishing = offers.iter().map(|offer| broker.publish(std::slice::from_ref(offer)));
    for published in in_time("two hundred publishers", join_all(publishing)).await {
        published.unwrap();
    }
    let mut taken = Vec::new();
    for _ in &offers {
        taken.push(next(&mut consumer).await.offer);
    }
    taken.sort_by_key(|offer| offer.job_id);
    assert_eq!(taken, offers);
}

pub async fn none_is_nothing(world: &BrokerWorld) {
    let broker = world.open().await;
    let mut consumer = broker.consume(&factory_id("f1")).await.unwrap();
    broker.ping().await.unwrap();
    broker.publish(&[]).await.unwrap();
    let offer = world.offer("f1");
    broker.publish(std::slice::from_ref(&offer)).await.unwrap();
    expect(&mut consumer, &[&offer]).await;
}
