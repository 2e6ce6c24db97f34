//! Service Bus throttles, loses locks, links and entities, and goes away under the broker.

use std::collections::BTreeSet;
use std::time::Duration;

use giga_broker::{ServiceBus, ServiceBusTuning, read_service_bus_offers, subscription_name};
use giga_domain::{FeedPos, JobId};
use giga_ports::Broker;
use giga_ports::broker::Hint;
use giga_testkit::broker_suite::{in_time, offer, persistently};
use giga_testkit::servicebus::ServiceBusPeer;
use serde_json::json;

use crate::conformance_servicebus::{access, open};

const TOPIC: &str = "fleet";

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    in_time(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

fn messages(peer: &ServiceBusPeer, factory: &str) -> u64 {
    peer.subscription(TOPIC, &subscription_name(&factory.parse().unwrap()))["messages"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_are_made_as_the_docs_say() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    broker.prepare(&"MAC-1".parse().unwrap()).await.unwrap();
    let state = peer.state();
    assert_eq!(state["fleet"]["window"], 120_000);
    assert!(state["fleet-hints"].is_object() && state["fleet-dead"].is_object(), "{state}");
    let subscription = peer.subscription(TOPIC, &subscription_name(&"MAC-1".parse().unwrap()));
    assert_eq!(subscription["rules"], json!({"target": {"targetFactoryId": "MAC-1"}}), "one rule, its own");
    assert_eq!((&subscription["lock"], &subscription["deliveries"]), (&json!(30_000), &json!(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_throttled_is_sent_again_and_nothing_is_lost() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    let offers: Vec<_> = (1..=20).map(|job| offer(job, "f1")).collect();
    for how in ["reject", "detach"] {
        peer.order("fail", &json!({"what": "send", "times": 3, "how": how}));
        broker.publish(&offers).await.unwrap();
        assert_eq!(peer.failures_left("send"), 0, "{how}");
    }
    let mut jobs = BTreeSet::new();
    for _ in &offers {
        let delivered = in_time("an offer", consumer.next()).await.unwrap();
        consumer.ack(&delivered).await.unwrap();
        assert!(jobs.insert(delivered.offer.job_id), "the duplicate window swallows what came twice");
    }
    assert_eq!(messages(&peer, "f1"), 0);
    // One that goes on is said, and nobody waits for ever.
    peer.fail("send", 1_000);
    let error = in_time("a refusal", broker.publish(&[offer(99, "f1")])).await.unwrap_err();
    assert!(error.to_string().contains("throttled"), "{error}");
    peer.fail("send", 0);
    broker.publish(&[offer(99, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(99, "f1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn throttled_links_tokens_and_management_are_passing_too() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    for (job, what) in (1..).zip(["attach", "token", "http"]) {
        peer.fail(what, 1);
        let factory: giga_domain::FactoryId = format!("f-{what}").parse().unwrap();
        let mut consumer = persistently("a consumer", || broker.consume(&factory)).await;
        assert_eq!(peer.failures_left(what), 0, "{what}");
        let offers = [offer(job, factory.as_str())];
        persistently("a publish", || broker.publish(&offers)).await;
        assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer.target_factory_id, factory);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_after_the_lock_is_over_is_none_and_the_offer_comes_again() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    let first = in_time("an offer", consumer.next()).await.unwrap();
    peer.order("expire", &json!({"topic": TOPIC, "name": "f1"}));
    // The claim has decided long ago; it decides for the next one, too.
    consumer.ack(&first).await.unwrap();
    assert_eq!(messages(&peer, "f1"), 1, "it was not taken for a success");
    let again = in_time("the same offer", consumer.next()).await.unwrap();
    assert_eq!((&again.offer, again.attempt), (&first.offer, 2));
    peer.fail("completion", 1);
    consumer.ack(&again).await.unwrap();
    assert_eq!(peer.failures_left("completion"), 0);
    let third = in_time("the same offer", consumer.next()).await.unwrap();
    consumer.ack(&third).await.unwrap();
    assert_eq!((third.offer, messages(&peer, "f1")), (first.offer, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_runs_out_gives_the_offer_to_the_next() {
    let peer = ServiceBusPeer::start();
    let tuning = ServiceBusTuning { lock: Duration::from_secs(5), ..ServiceBusTuning::default() };
    let broker =
        ServiceBus::connect_with(&peer.url(), access(&peer.connection_string()), tuning).await.unwrap();
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    peer.order("lock", &json!({"topic": TOPIC, "name": "f1", "milliseconds": 150}));
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    for attempt in 1..=3 {
        let delivered = in_time("an offer", consumer.next()).await.unwrap();
        assert_eq!((delivered.offer, delivered.attempt), (offer(1, "f1"), attempt));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_detached_ends_its_consumer_and_the_next_goes_on() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let factory = "f1".parse().unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    peer.order("detach", &json!({"address": "fleet/Subscriptions/f1"}));
    let error = in_time("the end of the consumer", consumer.next()).await.unwrap_err();
    assert!(error.to_string().contains("unable to process"), "the reason is said: {error}");
    let mut consumer = broker.consume(&factory).await.unwrap();
    peer.order("detach", &json!({"address": "fleet"}));
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(1, "f1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_that_are_deleted_are_made_again() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    for job in 1..=2 {
        let mut consumer = persistently("a consumer", || broker.consume(&factory)).await;
        let offers = [offer(job, "f1")];
        persistently("a publish", || broker.publish(&offers)).await;
        assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(job, "f1"));
        peer.order("delete", &json!({"topic": TOPIC}));
        assert!(in_time("the end of the consumer", consumer.next()).await.is_err());
    }
    // Its own subscription, too; whoever listens is told to look.
    peer.order("delete", &json!({"topic": "fleet-hints"}));
    in_time("a hint to look", async { while hints.next().await.unwrap() != Hint::Leaderless {} }).await;
    broker.hint(&Hint::Pauses).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Pauses);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_manage_what_is_missing_is_named_with_what_helps() {
    let peer = ServiceBusPeer::start();
    peer.rule("worker", "d29ya2Vy", &["Send", "Listen"]);
    let text = ServiceBusPeer::connection_string_of(peer.address(), "worker", "d29ya2Vy");
    let url = format!("{}?coordinator=a", peer.url());
    let connect = || ServiceBus::connect(&url, access(&text));
    let error = connect().await.unwrap_err().to_string();
    assert!(
        error.contains("fleet-hints/Subscriptions/coordinator-a") && error.contains("right to manage"),
        "{error}"
    );
    for topic in ["fleet", "fleet-hints", "fleet-dead"] {
        peer.order("topic", &json!({"name": topic}));
    }
    for topic in ["fleet-hints", "fleet-dead"] {
        peer.order("subscription", &json!({"topic": topic, "name": "coordinator-a"}));
    }
    let broker = connect().await.unwrap();
    let factory = "f1".parse().unwrap();
    let error = broker.consume(&factory).await.err().expect("nobody has made it").to_string();
    assert!(error.contains("fleet/Subscriptions/f1") && error.contains("make it"), "{error}");
    // Made by somebody who forgot the rule: whoever may listen may set it.
    peer.order("subscription", &json!({"topic": TOPIC, "name": "f1"}));
    assert_eq!(peer.subscription(TOPIC, "f1")["rules"], json!({"$Default": null}));
    // What is for others and came before that is not handed over.
    broker.publish(&[offer(7, "f2")]).await.unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    assert_eq!(peer.subscription(TOPIC, "f1")["rules"], json!({"target": {"targetFactoryId": "f1"}}));
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(1, "f1"));
    broker.hint(&Hint::Pauses).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_is_too_large_is_named_and_the_others_arrive() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    let mut large = offer(1, "f1");
    large.repo = Some("x".repeat(300 * 1024));
    let error = broker.publish(&[large.clone(), offer(2, "f1")]).await.unwrap_err().to_string();
    assert!(error.contains(&large.message_id()) && error.contains("262144"), "{error}");
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(2, "f1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_goes_away_is_found_again_and_everybody_is_told_to_look() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.hint(&Hint::Feed { pos: FeedPos(41) }).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(41) });
    peer.stop();
    assert!(in_time("the end of the consumer", consumer.next()).await.is_err());
    assert!(in_time("a refusal", broker.publish(&[offer(1, "f1")])).await.is_err());
    assert!(in_time("a refusal", broker.consume(&factory)).await.is_err());
    assert!(in_time("a refusal", broker.hint(&Hint::Pauses)).await.is_err());
    assert!(in_time("a refusal", broker.ping()).await.is_err());
    peer.start_again();
    for looked_at in [Hint::Feed { pos: FeedPos(41) }, Hint::Pauses, Hint::Leaderless] {
        assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), looked_at);
    }
    let mut consumer = persistently("another consumer", || broker.consume(&factory)).await;
    let offers = [offer(2, "f1")];
    persistently("a publish", || broker.publish(&offers)).await;
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offers[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_not_there_yet_is_used_as_soon_as_it_is() {
    let peer = ServiceBusPeer::start();
    peer.stop();
    let broker = in_time("a start without it", open(&peer)).await;
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    let calls = async {
        assert!(broker.publish(&[offer(1, "f1")]).await.is_err());
        assert!(broker.consume(&factory).await.is_err());
        assert!(broker.hint(&Hint::Pauses).await.is_err());
        assert!(broker.ping().await.is_err());
    };
    tokio::time::timeout(Duration::from_secs(1), calls).await.expect("nobody waits for what was never there");
    peer.start_again();
    assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(0) });
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.publish(&[offer(2, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(2, "f1"));
}

/// Connections break three times, the last time with the loss of all entities, while offers are published and taken.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_tries_again_gets_through_connections_that_keep_breaking() {
    const OFFERS: u128 = 300;
    let peer = ServiceBusPeer::start();
    let (sender, taker) = (open(&peer).await, open(&peer).await);
    let factory = "f1".parse().unwrap();
    let (done, mut progress) = tokio::sync::watch::channel(0);
    let taking = async {
        let mut seen = BTreeSet::new();
        while seen.len() < OFFERS as usize {
            let mut consumer = persistently("a consumer", || taker.consume(&factory)).await;
            while let Ok(delivered) = consumer.next().await {
                seen.insert(delivered.offer.job_id);
                done.send_replace(seen.len());
                if consumer.ack(&delivered).await.is_err() || seen.len() == OFFERS as usize {
                    break;
                }
            }
        }
        seen
    };
    let mut seen_by_sender = progress.clone();
    let publishing = async {
        let mut round = 1;
        loop {
            for job in (0..OFFERS).step_by(10) {
                let some: Vec<_> = (job..job + 10)
                    .map(|job| {
                        let mut again = offer(job, "f1");
                        again.dispatch_seq.0 = round;
                        again
                    })
                    .collect();
                let _ = sender.publish(&some).await;
            }
            if *seen_by_sender.borrow_and_update() == OFFERS as usize {
                return;
            }
            round += 1;
        }
    };
    let breaking = async {
        for (after, wipe) in [(30, false), (120, false), (200, true)] {
            progress.wait_for(|taken| *taken >= after).await.unwrap();
            tokio::task::block_in_place(|| {
                if wipe {
                    peer.stop();
                    peer.wipe();
                    peer.start_again();
                } else {
                    peer.disconnect();
                }
            });
        }
    };
    let all = async { tokio::join!(taking, publishing, breaking) };
    let (seen, (), ()) = in_time("three hundred offers", all).await;
    assert_eq!(seen, (0..OFFERS).map(JobId::from_u128).collect());
}

/// Two processes: nobody else tells the older one than the notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_consumer_takes_over_in_another_process_too() {
    let peer = ServiceBusPeer::start();
    let (here, there) = (open(&peer).await, open(&peer).await);
    let factory = "f1".parse().unwrap();
    let mut older = here.consume(&factory).await.unwrap();
    here.publish(&[offer(1, "f1")]).await.unwrap();
    let held = in_time("an offer", older.next()).await.unwrap();
    let mut newer = there.consume(&factory).await.unwrap();
    let error = in_time("the end of the older consumer", older.next()).await.unwrap_err();
    assert!(error.to_string().contains("took over"), "{error}");
    // The older one gives back what it held, and does not sit on it until the lock is over.
    let again = in_time("the same offer", newer.next()).await.unwrap();
    assert_eq!((again.offer, again.attempt), (held.offer, 2));
    drop(older);
    here.publish(&[offer(2, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", newer.next()).await.unwrap().offer, offer(2, "f1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_reads_its_own_offers_with_a_signature_for_them_alone() {
    let peer = ServiceBusPeer::start();
    let broker = open(&peer).await;
    let root = access(&peer.connection_string());
    let sign = |factory: &str| {
        let until = root.clock.now().plus(Duration::from_mins(10));
        root.credential.sign_for(&peer.url(), &factory.parse().unwrap(), until).unwrap()
    };
    for name in ["f1", "f2"] {
        broker.prepare(&name.parse().unwrap()).await.unwrap();
    }
    peer.rule("ignored", "aWdub3JlZA==", &["Listen"]);
    let own = access(&sign("f1"));
    let mut reader = read_service_bus_offers(&peer.url(), own.clone(), &"f1".parse().unwrap()).await.unwrap();
    broker.publish(&[offer(1, "f1"), offer(2, "f2")]).await.unwrap();
    let delivered = in_time("an offer", reader.next()).await.unwrap();
    assert_eq!(delivered.offer, offer(1, "f1"));
    reader.ack(&delivered).await.unwrap();
    until("an empty subscription", || messages(&peer, "f1") == 0).await;
    // Not those of another, with the same signature.
    let error = read_service_bus_offers(&peer.url(), own.clone(), &"f2".parse().unwrap())
        .await
        .err()
        .expect("not its own");
    assert!(error.to_string().contains("InvalidAudience"), "{error}");
    // Nor the topics.
    let error = ServiceBus::connect(&peer.url(), own).await.unwrap_err();
    assert!(error.to_string().contains("refuses the token"), "{error}");
    assert_eq!(messages(&peer, "f2"), 1);
}
