//! NATS dies, comes back, refuses, and gives up under the broker.

use std::collections::BTreeSet;
use std::time::Duration;

use giga_broker::{Nats, NatsTuning};
use giga_domain::{FeedPos, JobId};
use giga_ports::Broker;
use giga_ports::broker::Hint;
use giga_testkit::broker_suite::{in_time, offer, persistently};
use giga_testkit::nats::NatsServer;

/// Shorter than any timeout of a connection.
const AT_ONCE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_found_again_and_everybody_is_told_to_look() {
    let server = NatsServer::start();
    let broker = Nats::connect(&server.url()).await.unwrap();
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.hint(&Hint::Feed { pos: FeedPos(41) }).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(41) });

    server.kill9();
    assert!(in_time("the end of the consumer", consumer.next()).await.is_err());
    assert!(in_time("a refusal", broker.publish(&[offer(1, "f1")])).await.is_err());
    assert!(in_time("a refusal", broker.consume(&factory)).await.is_err());
    assert!(in_time("a refusal", broker.hint(&Hint::Pauses)).await.is_err());
    assert!(in_time("a refusal", broker.ping()).await.is_err());
    server.start_again();

    for looked_at in [Hint::Feed { pos: FeedPos(41) }, Hint::Pauses, Hint::Leaderless] {
        assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), looked_at);
    }
    let mut consumer = persistently("another consumer", || broker.consume(&factory)).await;
    let offers = [offer(2, "f1")];
    persistently("a publish", || broker.publish(&offers)).await;
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offers[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_yet_is_used_as_soon_as_it_is() {
    let server = NatsServer::start();
    server.kill9();
    let broker = in_time("a start without the server", giga_broker::open(&server.url())).await.unwrap();
    let factory = "f1".parse().unwrap();
    let mut hints = broker.hints().await.unwrap();
    let calls = async {
        assert!(broker.publish(&[offer(1, "f1")]).await.is_err());
        assert!(broker.hint(&Hint::Pauses).await.is_err());
        assert!(broker.consume(&factory).await.is_err());
        assert!(broker.ping().await.is_err());
    };
    tokio::time::timeout(AT_ONCE, calls).await.expect("nobody waits for a server that was never there");

    server.start_again();
    for looked_at in [Hint::Feed { pos: FeedPos(0) }, Hint::Pauses, Hint::Leaderless] {
        assert_eq!(in_time("a hint to look", hints.next()).await.unwrap(), looked_at);
    }
    let mut consumer = broker.consume(&factory).await.unwrap();
    broker.publish(&[offer(2, "f1")]).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(2, "f1"));
    broker.hint(&Hint::Feed { pos: FeedPos(7) }).await.unwrap();
    assert_eq!(in_time("a hint", hints.next()).await.unwrap(), Hint::Feed { pos: FeedPos(7) });
    // And from here on it is as any other.
    server.kill9();
    assert!(in_time("the end of the consumer", consumer.next()).await.is_err());
    server.start_again();
    persistently("an answer", || broker.ping()).await;
}

/// Whoever asks is told why, until the right one is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_late_and_will_not_do_is_said_by_each_call() {
    // Bound, so that nobody else takes the port, and refusing everybody until it listens.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let broker = Nats::connect(&format!("nats://{address}")).await.unwrap();
    let listener = socket.listen(8).unwrap();
    let greeting = greeting("2.9.10", true, address.port());
    let serving = tokio::spawn(async move {
        loop {
            greet(&listener, &greeting).await;
        }
    });
    in_time("the reason", async {
        while !broker.ping().await.unwrap_err().to_string().contains("2.10 or newer is needed") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    serving.abort();
}

/// Killed three times, the last time with the loss of its disk, while offers are published and taken.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_tries_again_gets_through_a_server_that_keeps_dying() {
    const OFFERS: u128 = 600;
    let server = NatsServer::start();
    let (sender, taker) =
        (Nats::connect(&server.url()).await.unwrap(), Nats::connect(&server.url()).await.unwrap());
    let factory = "f1".parse().unwrap();
    let (done, mut progress) = tokio::sync::watch::channel(0);

    // Everything is published until it was taken, as the dispatcher does with its pickup deadline.
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
    let mut failures = 0;
    let mut seen_by_sender = progress.clone();
    let publishing = async {
        let mut round = 1;
        loop {
            for job in 0..OFFERS {
                let mut again = offer(job, "f1");
                again.dispatch_seq.0 = round;
                failures += usize::from(sender.publish(&[again]).await.is_err());
            }
            if *seen_by_sender.borrow_and_update() == OFFERS as usize {
                return;
            }
            round += 1;
        }
    };
    let killing = async {
        for (after, keep_the_disk) in [(50, true), (200, true), (350, false)] {
            progress.wait_for(|taken| *taken >= after).await.unwrap();
            tokio::task::block_in_place(|| {
                server.kill9();
                if keep_the_disk { server.start_again() } else { server.start_empty() }
            });
        }
    };
    let all = async { tokio::join!(taking, publishing, killing) };
    let (seen, (), ()) = in_time("six hundred offers", all).await;
    assert_eq!(seen, (0..OFFERS).map(JobId::from_u128).collect());
    assert!(failures > 0, "the deaths were noticed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_nobody_acknowledges_becomes_a_dead_letter_and_leaves_the_stream() {
    let server = NatsServer::start();
    let tuning = NatsTuning { ack_wait: Duration::from_millis(100) };
    let broker = Nats::connect_with(&server.url(), None, tuning).await.unwrap();
    let witness = Nats::connect(&server.url()).await.unwrap();
    let mut letters = broker.dead_letters().await.unwrap();
    let mut elsewhere = witness.dead_letters().await.unwrap();
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    broker.publish(&[offer(1, "f1")]).await.unwrap();
    for attempt in 1..=5 {
        let delivered = in_time("an offer", consumer.next()).await.unwrap();
        assert_eq!((delivered.offer, delivered.attempt), (offer(1, "f1"), attempt));
    }
    // The server looks again when somebody asks for more.
    let watching = async { tokio::join!(letters.next(), elsewhere.next()) };
    let (one, two) = tokio::select! {
        more = consumer.next() => panic!("a sixth delivery: {more:?}"),
        both = in_time("a dead letter", watching) => both,
    };
    let letter = one.unwrap();
    assert_eq!(letter, two.unwrap(), "mirrored once, for all");
    assert_eq!(letter.job_id, offer(1, "f1").job_id);
    assert_eq!(letter.reason, "offer was delivered 5 times and never acknowledged");
    // It was taken out of the stream: a consumer that counts anew does not meet it.
    let client = async_nats::connect(server.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    in_time("an empty stream", async {
        while context.get_stream("GIGA_OFFERS").await.unwrap().cached_info().state.messages > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let dead = context.get_stream("GIGA_DEAD").await.unwrap();
    assert_eq!(dead.cached_info().state.messages, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_were_deleted_are_made_again() {
    let server = NatsServer::start();
    let broker = Nats::connect(&server.url()).await.unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let factory = "f1".parse().unwrap();
    for job in 1..=2 {
        let mut consumer = broker.consume(&factory).await.unwrap();
        broker.publish(&[offer(job, "f1")]).await.unwrap();
        assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(job, "f1"));
        context.delete_stream("GIGA_OFFERS").await.unwrap();
        assert!(in_time("the end of the consumer", consumer.next()).await.is_err());
    }
    // The publisher can be the first to notice, too.
    broker.publish(&[offer(3, "f1")]).await.unwrap();
    let mut consumer = broker.consume(&factory).await.unwrap();
    assert_eq!(in_time("an offer", consumer.next()).await.unwrap().offer, offer(3, "f1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_stand_in_the_url_and_nowhere_else() {
    let server = NatsServer::start_with(&["--user", "ana", "--pass", "hunter2@home"]);
    let url = |password: &str| format!("nats://ana:{password}@{}", server.address());
    let broker = Nats::connect(&url("hunter2%40home")).await.unwrap();
    broker.ping().await.unwrap();
    assert!(!format!("{broker:?}").contains("hunter2"));
    let error = Nats::connect(&url("hunter3")).await.unwrap_err();
    let all = format!("{error} {error:?}");
    assert!(all.contains("refuses the credentials") && !all.contains("hunter3"), "{all}");
    let error = Nats::connect(&server.url()).await.unwrap_err();
    assert!(error.to_string().contains("refuses the credentials"), "{error}");
}

/// Enough of a server to say which version it is.
fn greeting(version: &str, jetstream: bool, port: u16) -> String {
    format!(
        "INFO {{\"server_id\":\"old\",\"server_name\":\"old\",\"version\":\"{version}\",\"proto\":1,\"go\":\"go1\",\
         \"host\":\"127.0.0.1\",\"port\":{port},\"max_payload\":1048576,\"jetstream\":{jetstream},\
         \"headers\":true,\"client_id\":1}}\r\nPONG\r\n"
    )
}

async fn greet(listener: &tokio::net::TcpListener, greeting: &str) {
    let (mut stream, _) = listener.accept().await.expect("a client comes");
    tokio::io::AsyncWriteExt::write_all(&mut stream, greeting.as_bytes()).await.expect("it listens");
    // Until the client has had enough.
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_server_and_one_without_jetstream_are_refused() {
    for (version, jetstream, reason) in [
        ("2.9.10", true, "the NATS server is version 2.9.10, and 2.10 or newer is needed"),
        ("2.10.0", false, "the NATS server runs without JetStream"),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let greeting = greeting(version, jetstream, port);
        let serving = tokio::spawn(async move { greet(&listener, &greeting).await });
        let url = format!("nats://127.0.0.1:{port}");
        let error = in_time("a refusal", Nats::connect(&url)).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        in_time("the end of the connection", serving).await.unwrap();
    }
}
