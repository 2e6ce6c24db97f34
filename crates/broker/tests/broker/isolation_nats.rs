//! What a factory's user reaches on NATS: its own offers, and nothing else, by whatever way.
//!
//! Each attack is looked at from the other side: not whether the server said no, but whether anything happened. The same
//! attacks on a server that knows no users succeed, so the tests can fail.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use futures::StreamExt;
use giga_broker::{Nats, NatsKey, NatsTuning, read_offers, server_accounts};
use giga_domain::FactoryId;
use giga_ports::Broker;
use giga_ports::broker::{DeadLetter, Hint};
use giga_testkit::broker_suite::{in_time, offer, persistently};
use giga_testkit::nats::NatsServer;
use serde_json::json;

const OFFERS: &str = "GIGA_OFFERS";

struct World {
    server: NatsServer,
    settings: Option<PathBuf>,
}

impl World {
    fn guarded(factories: &[&str]) -> Self {
        let settings = std::env::temp_dir().join(format!(
            "giga-nats-users-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&settings, accounts(factories)).unwrap();
        let server = NatsServer::start_with(&["-c", settings.to_str().unwrap()]);
        Self { server, settings: Some(settings) }
    }

    fn open() -> Self {
        Self { server: NatsServer::start(), settings: None }
    }

    fn key(&self, name: &str) -> Option<NatsKey> {
        self.settings.as_ref().map(|_| key(name))
    }

    async fn coordinator(&self) -> Nats {
        let key = self.key("coordinator");
        Nats::connect_with(&self.server.url(), key, NatsTuning::default()).await.unwrap()
    }

    /// Somebody who has the factory's key and a client of his own.
    async fn client(&self, name: &str) -> Client {
        let options = match self.key(name) {
            Some(key) => ConnectOptions::with_nkey(key.seed().to_owned()),
            None => ConnectOptions::new(),
        };
        options.connect(self.server.url()).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(settings) = &self.settings {
            let _ = std::fs::remove_file(settings);
        }
    }
}

fn key(name: &str) -> NatsKey {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    NatsKey::from_random(bytes).unwrap()
}

fn accounts(factories: &[&str]) -> String {
    let fleet: Vec<_> = factories.iter().map(|name| (name.parse().unwrap(), key(name).public())).collect();
    server_accounts(&key("coordinator").public(), &fleet)
}

fn id(name: &str) -> FactoryId {
    name.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_reads_and_acknowledges_its_own_offers() {
    let world = World::guarded(&["f1", "f.2"]);
    let broker = world.coordinator().await;
    for name in ["f1", "f.2"] {
        let mut early = read_offers(&world.server.url(), Some(&key(name)), &id(name)).await.unwrap();
        assert!(in_time("an error", early.next()).await.is_err(), "nobody has prepared it");
        broker.prepare(&id(name)).await.unwrap();
    }
    let mut one = read_offers(&world.server.url(), Some(&key("f1")), &id("f1")).await.unwrap();
    let mut two = read_offers(&world.server.url(), Some(&key("f.2")), &id("f.2")).await.unwrap();
    broker.publish(&[offer(1, "f1"), offer(2, "f.2"), offer(3, "f1")]).await.unwrap();
    for (reader, expected) in [(&mut one, offer(1, "f1")), (&mut two, offer(2, "f.2"))] {
        let delivered = in_time("an offer", reader.next()).await.unwrap();
        assert_eq!(delivered.offer, expected);
        reader.ack(&delivered).await.unwrap();
    }
    let third = in_time("an offer", one.next()).await.unwrap();
    assert_eq!(third.offer, offer(3, "f1"));
    one.ack(&third).await.unwrap();
    // Acknowledged offers have left the stream, and the one who reads again does not meet them.
    assert_eq!(state(&world).await, Some(0));
}

/// A user is added, and the one who is there goes on.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_learns_of_a_new_factory_without_a_restart() {
    let world = World::guarded(&["f1"]);
    let broker = world.coordinator().await;
    for name in ["f1", "f2"] {
        broker.prepare(&id(name)).await.unwrap();
    }
    let url = world.server.url();
    assert!(read_offers(&url, Some(&key("f2")), &id("f2")).await.is_err());
    let mut one = read_offers(&url, Some(&key("f1")), &id("f1")).await.unwrap();
    std::fs::write(world.settings.as_ref().unwrap(), accounts(&["f1", "f2"])).unwrap();
    persistently("a publish", || async { broker.publish(&[offer(1, "f1"), offer(2, "f2")]).await }).await;
    // The server sets up what a new account imports when it reloads once more (2.15), and a factory that was refused
    // opens another reader, as here.
    let (new, of_new) = (key("f2"), id("f2"));
    let first = persistently("the new one's offer", || async {
        world.server.reload();
        read_offers(&url, Some(&new), &of_new).await?.next().await
    });
    assert_eq!(first.await.offer, offer(2, "f2"));
    assert_eq!(in_time("an offer", one.next()).await.unwrap().offer, offer(1, "f1"));
}

/// How many offers are in the stream; `None` if it is gone.
async fn state(world: &World) -> Option<u64> {
    let context = async_nats::jetstream::new(world.client("coordinator").await);
    Some(context.get_stream(OFFERS).await.ok()?.cached_info().state.messages)
}

async fn has_consumer(world: &World, name: &str) -> bool {
    let context = async_nats::jetstream::new(world.client("coordinator").await);
    let Ok(stream) = context.get_stream(OFFERS).await else { return false };
    stream.consumer_info(name).await.is_ok()
}

/// Two factories with two offers each, a client with the rights of the first, and all that is said meanwhile.
async fn prepared(world: &World) -> (Nats, Client) {
    let broker = world.coordinator().await;
    for name in ["f1", "f2"] {
        broker.prepare(&id(name)).await.unwrap();
    }
    let offers = [offer(1, "f1"), offer(2, "f1"), offer(3, "f2"), offer(4, "f2")];
    broker.publish(&offers).await.unwrap();
    (broker, world.client("f1").await)
}

/// Whether `intruder` hears anything of what others are told.
/// What is heard comes at once, on a machine that is not busy; whoever expects it waits for longer.
async fn hears(world: &World, subject: &str, patience: Duration) -> bool {
    let (broker, intruder) = prepared(world).await;
    let mut heard = intruder.subscribe(subject.to_owned()).await.unwrap();
    intruder.flush().await.unwrap();
    broker.publish(&[offer(5, "f2")]).await.unwrap();
    broker.hint(&Hint::Pauses).await.unwrap();
    let letter = DeadLetter {
        job_id: offer(6, "f2").job_id,
        product_id: offer(6, "f2").product_id,
        topic: None,
        reason: "gone".to_owned(),
        at: giga_domain::Timestamp::from_millis(0),
    };
    broker.dead_letter(&letter).await.unwrap();
    let mut two = read_offers(&world.server.url(), world.key("f2").as_ref(), &id("f2")).await.unwrap();
    let delivered = in_time("an offer", two.next()).await.unwrap();
    two.ack(&delivered).await.unwrap();
    // The server has dealt with all of it before it answers a ping; what it sent comes before the answer.
    broker.ping().await.unwrap();
    intruder.flush().await.unwrap();
    tokio::time::timeout(patience, heard.next()).await.is_ok_and(|heard| heard.is_some())
}

const OF_OTHERS: [&str; 7] =
    [">", "giga.hints", "giga.dead", "giga.offers.f2", "giga.>", "$JS.API.>", "$JS.ACK.GIGA_OFFERS.f2.>"];

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_hears_nothing_that_others_are_told() {
    for subject in OF_OTHERS {
        let world = World::guarded(&["f1", "f2"]);
        assert!(!hears(&world, subject, Duration::from_millis(300)).await, "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_it_would_hear_everything() {
    for subject in OF_OTHERS {
        assert!(hears(&World::open(), subject, Duration::from_secs(10)).await, "{subject}");
    }
}

/// What can be sent, and what must not come of it.
struct Attack {
    name: &'static str,
    subject: String,
    payload: String,
    /// Where the answer is to go; an inbox of its own where it is empty.
    reply: &'static str,
}

fn attacks() -> Vec<Attack> {
    let attack = |name, subject: &str, payload: serde_json::Value, reply| Attack {
        name,
        subject: subject.to_owned(),
        payload: if payload.is_null() { String::new() } else { payload.to_string() },
        reply,
    };
    let none = serde_json::Value::Null;
    let spy = json!({"stream_name": OFFERS, "action": "", "config": {
        "durable_name": "f2", "name": "f2", "filter_subject": "giga.offers.f2", "ack_policy": "explicit",
        "deliver_subject": "_INBOX.spy"}});
    let next = json!({"batch": 1, "no_wait": true});
    vec![
        attack("deletes the stream", "$JS.API.STREAM.DELETE.GIGA_OFFERS", none.clone(), ""),
        attack("purges it", "$JS.API.STREAM.PURGE.GIGA_OFFERS", none.clone(), ""),
        attack("deletes a message", "$JS.API.STREAM.MSG.DELETE.GIGA_OFFERS", json!({"seq": 3}), ""),
        attack("deletes a consumer", "$JS.API.CONSUMER.DELETE.GIGA_OFFERS.f2", none.clone(), ""),
        attack("deletes its own", "$JS.API.CONSUMER.DELETE.GIGA_OFFERS.f1", none.clone(), ""),
        attack("publishes an offer", "giga.offers.f2", json!({}), ""),
        attack("publishes one to itself", "giga.offers.f1", json!({}), ""),
        attack("takes an offer", "$JS.API.CONSUMER.MSG.NEXT.GIGA_OFFERS.f2", next, ""),
        attack("reads an offer", "$JS.API.STREAM.MSG.GET.GIGA_OFFERS", json!({"seq": 3}), ""),
        attack("reads it directly", "$JS.API.DIRECT.GET.GIGA_OFFERS", json!({"seq": 3}), ""),
        attack("asks about the stream", "$JS.API.STREAM.INFO.GIGA_OFFERS", none.clone(), ""),
        attack("asks about a consumer", "$JS.API.CONSUMER.INFO.GIGA_OFFERS.f2", none.clone(), ""),
        attack("lists consumers", "$JS.API.CONSUMER.NAMES.GIGA_OFFERS", none.clone(), ""),
        attack("changes a consumer", "$JS.API.CONSUMER.CREATE.GIGA_OFFERS.f2.giga.offers.f2", spy, ""),
        // The server sends the answer, with rights of its own, to wherever the request says.
        attack(
            "has the server delete the stream",
            "$JS.API.CONSUMER.MSG.NEXT.GIGA_OFFERS.f1",
            json!({"batch": 1, "no_wait": true, "expires": 1}),
            "$JS.API.STREAM.DELETE.GIGA_OFFERS",
        ),
        attack("has the server tell a hint", "$JS.API.CONSUMER.INFO.GIGA_OFFERS.f1", none, "giga.hints"),
        attack(
            "has the server offer",
            "$JS.API.CONSUMER.MSG.NEXT.GIGA_OFFERS.f1",
            json!({"batch": 9, "no_wait": true}),
            "giga.offers.f2",
        ),
    ]
}

#[derive(Debug, PartialEq)]
struct After {
    offers: Option<u64>,
    consumers: [bool; 2],
    answered: bool,
    hinted: bool,
}

async fn try_it(world: &World, attack: &Attack) -> After {
    let (_broker, intruder) = prepared(world).await;
    let witness = world.client("coordinator").await;
    let mut hints = witness.subscribe("giga.hints").await.unwrap();
    witness.flush().await.unwrap();
    let inbox = intruder.new_inbox();
    let mut answers = intruder.subscribe(inbox.clone()).await.unwrap();
    let reply = if attack.reply.is_empty() { inbox } else { attack.reply.to_owned() };
    let payload = attack.payload.clone().into_bytes();
    intruder.publish_with_reply(attack.subject.clone(), reply, payload.into()).await.unwrap();
    intruder.flush().await.unwrap();
    let moment = Duration::from_millis(150);
    // An answer that says no is none: it says nothing about the streams of others.
    let answer = tokio::time::timeout(moment, answers.next()).await.ok().flatten();
    let answered = answer.is_some_and(|message| {
        message.status.is_none() && !String::from_utf8_lossy(&message.payload).contains("\"error\"")
    });
    let hinted = tokio::time::timeout(moment, hints.next()).await.is_ok_and(|hint| hint.is_some());
    let consumers = [has_consumer(world, "f1").await, has_consumer(world, "f2").await];
    After { offers: state(world).await, consumers, answered, hinted }
}

const UNHARMED: After = After { offers: Some(4), consumers: [true, true], answered: false, hinted: false };

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_factory_sends_reaches_what_is_not_its_own() {
    for attack in attacks() {
        let world = World::guarded(&["f1", "f2"]);
        let after = try_it(&world, &attack).await;
        assert_eq!(after, UNHARMED, "a factory {}", attack.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_users_it_would() {
    for attack in attacks() {
        // Only a stream that allows it can be read directly, and this one does not; nor is a pull consumer changed.
        if ["reads it directly", "changes a consumer", "has the server delete the stream"]
            .contains(&attack.name)
        {
            continue;
        }
        let after = try_it(&World::open(), &attack).await;
        assert_ne!(after, UNHARMED, "a factory {}", attack.name);
    }
}

/// One that the server delivered and asks to have confirmed: the confirmation goes where the factory says.
async fn acknowledges_into(world: &World, consumer: &str, reply: &str) -> After {
    let (_broker, intruder) = prepared(world).await;
    let inbox = intruder.new_inbox();
    let mut delivered = intruder.subscribe(inbox.clone()).await.unwrap();
    let next = "$JS.API.CONSUMER.MSG.NEXT.GIGA_OFFERS.f1";
    intruder.publish_with_reply(next, inbox, json!({"batch": 1}).to_string().into()).await.unwrap();
    let message = in_time("an offer", delivered.next()).await.unwrap();
    let subject = message.reply.unwrap().replace(".f1.", &format!(".{consumer}."));
    intruder.publish_with_reply(subject, reply.to_owned(), "+ACK".into()).await.unwrap();
    intruder.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let consumers = [has_consumer(world, "f1").await, has_consumer(world, "f2").await];
    After { offers: state(world).await, consumers, answered: false, hinted: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_deletes_no_stream() {
    const DELETE: &str = "$JS.API.STREAM.DELETE.GIGA_OFFERS";
    let after = acknowledges_into(&World::guarded(&["f1", "f2"]), "f1", DELETE).await;
    assert_eq!(
        after,
        After { offers: Some(3), ..UNHARMED },
        "its own offer is acknowledged, and that is all"
    );
    let without = acknowledges_into(&World::open(), "f1", DELETE).await;
    assert_eq!(without.offers, None, "without users the stream would be gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_for_another_changes_nothing() {
    let after = acknowledges_into(&World::guarded(&["f1", "f2"]), "f2", "_INBOX.x").await;
    assert_eq!(after, UNHARMED);
}
