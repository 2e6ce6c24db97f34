//! Who is sent what, and never too much of it.

use std::collections::HashMap;

use giga_coordinator::{Dealt, NewTopicWork, OpenStream};
use giga_domain::topic::{Outcome, TopicStage};
use giga_domain::{JobId, limits};

use crate::topics::world::{World, enqueue, ids, taken, work};

#[tokio::test]
async fn a_stream_never_has_more_than_it_can_take_and_every_job_is_sent_once() {
    let world = World::by_hand().await;
    let all = [world.enqueue("mail", 40).await, world.enqueue("sms", 25).await].concat();
    let mut streams = [
        (world.open("w1", &["mail", "sms"], 3), 3, Vec::new()),
        (world.open("w2", &["mail"], 7), 7, Vec::new()),
        (world.open("w2", &["sms", "mail"], 2), 2, Vec::new()),
    ];
    let mut sent: HashMap<JobId, u32> = HashMap::new();
    let mut turn = 0;
    while sent.len() < all.len() {
        turn += 1;
        assert!(turn < 1_000, "it stands still with {} sent", sent.len());
        world.coordinator.topics().claim_once().await.unwrap();
        for (index, (stream, most, held)) in streams.iter_mut().enumerate() {
            let new: Vec<Dealt> = taken(stream).await;
            for dealt in &new {
                *sent.entry(dealt.job.id).or_default() += 1;
            }
            held.extend(new);
            assert!(held.len() <= *most, "stream {index} was sent {} of at most {most}", held.len());
            // Each reports at another pace.
            if turn % (index + 1) == 0 && !held.is_empty() {
                let done = held.remove(0);
                world.report(&done, Outcome::Success).await;
            }
        }
    }
    assert!(sent.values().all(|times| *times == 1));
    assert!(all.iter().all(|id| sent.contains_key(id)));
}

#[tokio::test]
async fn streams_of_a_topic_share_evenly_and_first_come_is_first_served() {
    let world = World::by_hand().await;
    let mut one = world.open("w1", &["mail"], 10);
    let mut two = world.open("w2", &["mail"], 10);
    let all = world.enqueue("mail", 10).await;
    world.claim().await;
    let (one, two) = (ids(&taken(&mut one).await), ids(&taken(&mut two).await));
    assert_eq!((one.len(), two.len()), (5, 5));
    assert!(one.is_sorted() && two.is_sorted());
    let mut both = [one, two].concat();
    both.sort_unstable();
    assert_eq!(both, all);
}

#[tokio::test]
async fn the_topics_of_one_stream_take_turns() {
    let world = World::by_hand().await;
    let mut stream = world.open("w1", &["mail", "sms"], 2);
    world.enqueue("mail", 50).await;
    world.enqueue("sms", 50).await;
    let mut served: HashMap<String, usize> = HashMap::new();
    for _ in 0..20 {
        world.coordinator.topics().claim_once().await.unwrap();
        for dealt in taken(&mut stream).await {
            *served.entry(dealt.topic.to_string()).or_default() += 1;
            world.report(&dealt, Outcome::Success).await;
        }
    }
    assert!(served["mail"] >= 10 && served["sms"] >= 10, "{served:?}");
}

#[tokio::test]
async fn two_streams_of_one_worker_are_two_pairs_of_hands() {
    let world = World::by_hand().await;
    let mut left = world.open("w1", &["mail"], 2);
    let mut right = world.open("w1", &["mail"], 3);
    world.enqueue("mail", 10).await;
    world.claim().await;
    assert_eq!((taken(&mut left).await.len(), taken(&mut right).await.len()), (2, 3));
}

#[tokio::test]
async fn what_was_dealt_to_a_stream_that_is_gone_is_ready_again_at_once() {
    let world = World::by_hand().await;
    let all = world.enqueue("mail", 5).await;
    let mut stream = world.open("w1", &["mail"], 5);
    world.claim().await;
    let handed_out = stream.next(2, usize::MAX).await.unwrap();
    assert_eq!(ids(&handed_out), all[..2]);
    drop(stream);
    let mut other = world.open("w2", &["mail"], 10);
    world.claim().await;
    let again = taken(&mut other).await;
    assert_eq!(ids(&again), all[2..], "the worker that left may still be at work on the first two");
    assert!(again.iter().all(|dealt| dealt.job.attempt == 1), "no attempt is used up");
    for id in &all[..2] {
        assert_eq!(world.stage(*id).await, TopicStage::Running);
    }
    // It lost its connection, not its mind: its word still counts.
    world.report(&handed_out[0], Outcome::Success).await;
    assert_eq!(world.stage(all[0]).await, TopicStage::Done);
}

#[tokio::test]
async fn a_message_is_cut_by_count_and_by_bytes_and_loses_nothing() {
    let world = World::by_hand().await;
    let mut jobs: Vec<_> = (0..4).map(|_| work("mail")).collect();
    jobs[1].payload = vec![0; 100];
    let all = enqueue(&world.coordinator, jobs).await;
    let mut stream = world.open("w1", &["mail"], 10);
    world.claim().await;
    assert_eq!(ids(&stream.next(10, 50).await.unwrap()), all[..1], "the next is too large to go with it");
    assert_eq!(ids(&stream.next(10, 50).await.unwrap()), all[1..2], "a large one goes alone");
    assert_eq!(ids(&stream.next(1, 50).await.unwrap()), all[2..3]);
    assert_eq!(ids(&stream.next(10, 50).await.unwrap()), all[3..]);
}

#[tokio::test]
async fn a_stream_without_topics_or_room_is_refused() {
    let world = World::by_hand().await;
    let refused = |topics: usize, max_in_flight| {
        let open = OpenStream {
            product: "demo".parse().unwrap(),
            topics: (0..topics).map(|topic| format!("t{topic}").parse().unwrap()).collect(),
            worker: "w1".parse().unwrap(),
            max_in_flight,
        };
        world.coordinator.topics().open_stream(open).map(drop).unwrap_err().to_string()
    };
    assert_eq!(refused(0, 1), "topics: name 1 to 100 topics, not 0");
    assert_eq!(refused(101, 1), "topics: name 1 to 100 topics, not 101");
    assert_eq!(refused(1, 0), "maxInFlight: it must be from 1 to 10000, not 0");
    assert_eq!(refused(1, 10_001), "maxInFlight: it must be from 1 to 10000, not 10001");
}

#[tokio::test]
async fn the_bytes_that_a_stream_has_in_flight_are_bounded() {
    let world = World::by_hand().await;
    let large = limits::TOPIC_PAYLOAD_BYTES;
    let most = usize::try_from(limits::IN_FLIGHT_BYTES).unwrap();
    for topic in ["mail", "sms"] {
        for _ in 0..2 {
            let jobs = (0..100).map(|_| NewTopicWork { payload: vec![7; large], ..work(topic) }).collect();
            enqueue(&world.coordinator, jobs).await;
        }
    }
    let mut stream = world.open("w1", &["mail", "sms"], 10_000);
    let mut held: Vec<Dealt> = Vec::new();
    loop {
        let claimed = world.coordinator.topics().claim_once().await.unwrap();
        assert!(claimed * large <= (8 << 20) + 2 * large, "{claimed} wait for the transport");
        if claimed == 0 {
            break;
        }
        held.extend(taken(&mut stream).await);
    }
    let in_flight: usize = held.iter().map(|dealt| dealt.job.payload.len()).sum();
    assert!(in_flight <= most + 2 * large && in_flight + large >= most, "{in_flight} bytes of {most}");
    assert_eq!(world.coordinator.topics().claim_once().await.unwrap(), 0);
    for done in held.drain(..10) {
        world.report(&done, Outcome::Success).await;
    }
    let more = world.coordinator.topics().claim_once().await.unwrap();
    assert!((8..=12).contains(&more), "{more} for ten that were done");
}
