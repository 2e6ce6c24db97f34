//! Event streams: nothing lost, nothing twice, whatever happens to the connection.

use giga_domain::token::Role;
use giga_domain::{EventSeq, FeedPos, HolderAction};
use serde_json::Value;

use crate::client::{Call, PATIENCE};
use crate::world::World;

/// A reader of server-sent events.
pub(crate) struct Sse {
    response: reqwest::Response,
    buffer: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Sse {
    pub(crate) async fn open(call: Call) -> Self {
        let response = call.open().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self { response, buffer: String::new() }
    }

    /// The next message, comments passed over; nothing when the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                if let Some(message) = parse(&block) {
                    return Some(message);
                }
                continue;
            }
            let chunk =
                tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("an event in time");
            self.buffer.push_str(std::str::from_utf8(&chunk.unwrap()?).unwrap());
        }
    }

    pub(crate) async fn comment(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                if block.starts_with(':') {
                    return block;
                }
                continue;
            }
            let chunk =
                tokio::time::timeout(PATIENCE, self.response.chunk()).await.unwrap().unwrap().unwrap();
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

fn parse(block: &str) -> Option<Message> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Message {
        id: field("id:")?.parse().unwrap(),
        event: field("event:")?.to_owned(),
        data: serde_json::from_str(field("data:")?).unwrap(),
    })
}

#[tokio::test]
async fn a_jobs_stream_starts_at_its_beginning_and_goes_on() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.submit("demo", "name: a").await;
    let path = format!("/api/fleet/jobs/{}/events/stream", job.id);
    let mut stream = Sse::open(world.get(&path).token(&world.admin)).await;
    let first = stream.next().await.unwrap();
    assert_eq!((first.id, first.event.as_str()), (1, "job.submitted"));
    assert_eq!((&first.data["seq"], &first.data["type"]), (&Value::from(1), &Value::from("job.submitted")));
    let held = world.claim("f-1", "r").await;
    world.submit("demo", "name: another").await;
    world.hold(&held, vec![HolderAction::Start]).await;
    assert_eq!(stream.next().await.unwrap().event, "job.assigned");
    assert_eq!(stream.next().await.unwrap().event, "job.started");
    let resumed = world.get(&path).token(&world.admin).header("last-event-id", "2");
    assert_eq!(Sse::open(resumed).await.next().await.unwrap().id, 3);
    let resumed = world.get(&format!("{path}?after=1")).token(&world.admin);
    assert_eq!(Sse::open(resumed).await.next().await.unwrap().id, 2);
}

#[tokio::test]
async fn the_fleet_stream_starts_at_the_present() {
    let world = World::start().await;
    world.submit("demo", "name: past").await;
    let viewer = world.token(Role::Viewer, &["demo"]).await;
    let mut all = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    let mut own = Sse::open(world.get("/api/fleet/events/stream").token(&viewer)).await;
    world.submit("other", "name: not-theirs").await;
    let job = world.submit("demo", "name: present").await;
    assert_eq!(all.next().await.unwrap().data["productId"], "other");
    let seen = own.next().await.unwrap();
    assert_eq!(
        (&seen.data["jobId"], &seen.data["pos"]),
        (&Value::from(job.id.to_string()), &Value::from(seen.id))
    );
    assert_eq!(all.next().await.unwrap(), seen);
}

/// The store was put back to a backup: whoever has read further hears what comes, and does not wait to be caught up with.
#[tokio::test]
async fn a_reader_ahead_of_the_feed_goes_on_at_its_end() {
    let world = World::start().await;
    let job = world.submit("demo", "name: past").await;
    let ahead = (world.coordinator.reads().feed_head().await.unwrap().0 + 1_000).to_string();
    let fleet = "/api/fleet/events/stream";
    let of_job = format!("/api/fleet/jobs/{}/events/stream", job.id);
    for path in [fleet, &of_job] {
        let by_header = world.get(path).token(&world.admin).header("last-event-id", &ahead);
        let by_parameter = world.get(&format!("{path}?after={ahead}")).token(&world.admin);
        let mut streams = [Sse::open(by_header).await, Sse::open(by_parameter).await];
        let (event, next) = if path == fleet {
            ("job.submitted", world.submit("demo", "name: next").await.id)
        } else {
            world.factory("f-1", &[]).await;
            ("job.assigned", world.claim("f-1", "r").await.id)
        };
        for stream in &mut streams {
            // A silent stream still says that it is there.
            let heard = tokio::time::timeout(PATIENCE, stream.next()).await.expect("an event").unwrap();
            assert_eq!((heard.event.as_str(), &heard.data["jobId"]), (event, &Value::from(next.to_string())));
        }
    }
}

/// A reader that is cut off again and again while writers are at work sees the feed as it is, once.
#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_loses_and_repeats_nothing() {
    const WRITERS: usize = 4;
    const EACH: usize = 60;
    let world = World::start().await;
    let from = world.coordinator.reads().feed_head().await.unwrap();
    let mut stream = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    let writing = async {
        let writers = (0..WRITERS).map(|writer| {
            let world = &world;
            async move {
                for n in 0..EACH {
                    world.submit("demo", &format!("name: job-{writer}-{n}")).await;
                }
            }
        });
        futures::future::join_all(writers).await;
    };
    let reading = async {
        let mut seen: Vec<u64> = Vec::new();
        while seen.len() < WRITERS * EACH {
            // Cut off after a few events, mid-page more often than not.
            for _ in 0..=(seen.len() % 13) {
                if seen.len() < WRITERS * EACH {
                    seen.push(stream.next().await.unwrap().id);
                }
            }
            let last = seen.last().unwrap().to_string();
            let call =
                world.get("/api/fleet/events/stream").token(&world.admin).header("last-event-id", &last);
            stream = Sse::open(call).await;
        }
        seen
    };
    let ((), seen) = tokio::join!(writing, reading);
    let feed = world.coordinator.feed(from, 10_000).await.unwrap();
    assert_eq!(seen, feed.iter().map(|event| event.pos.0).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_other_coordinators_write_is_seen_too() {
    let look_every = std::time::Duration::from_millis(20);
    let options = giga_server::ServerOptions { look_every, ..giga_server::ServerOptions::default() };
    let world = World::start_deaf(options).await;
    let mut stream = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    let tag =
        world.get("/api/fleet/queue-state").token(&world.admin).gives(200).await.header("etag").to_owned();
    let poll = world.get("/api/fleet/queue-state?wait=60s").token(&world.admin).header("if-none-match", &tag);
    let poll = tokio::spawn(poll.send());
    let job = world.submit("demo", "name: a").await;
    assert_eq!(stream.next().await.unwrap().data["jobId"], job.id.to_string());
    assert_eq!(poll.await.unwrap().status, 200);
}

#[tokio::test]
async fn a_quiet_stream_ends_with_its_token() {
    let look_every = std::time::Duration::from_millis(20);
    let options = giga_server::ServerOptions { look_every, ..giga_server::ServerOptions::default() };
    let world = World::start_with(options).await;
    let job = world.submit("demo", "name: a").await;
    let (token, secret) = world
        .coordinator
        .issue_token(Role::Viewer, Vec::new(), String::new(), crate::world::actor())
        .await
        .unwrap();
    let path = format!("/api/fleet/jobs/{}/events/stream", job.id);
    let mut stream = Sse::open(world.get(&path).token(secret.reveal())).await;
    assert_eq!(stream.next().await.unwrap().id, 1);
    world.coordinator.revoke_token(token.id, crate::world::actor()).await.unwrap();
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn pages_of_the_feed_join_without_gaps() {
    let world = World::start().await;
    for n in 0..30 {
        let product = if n % 3 == 0 { "demo" } else { "other" };
        world.submit(product, &format!("name: job-{n}")).await;
    }
    let viewer = world.token(Role::Viewer, &["demo"]).await;
    for token in [&world.admin, &viewer] {
        let mut seen = Vec::new();
        let mut after = 0;
        loop {
            let page = world.get(&format!("/api/fleet/events?after={after}&limit=4")).token(token);
            let page = page.gives(200).await.json();
            seen.extend(page["events"].as_array().unwrap().iter().map(|e| e["pos"].as_u64().unwrap()));
            match page["nextAfter"].as_u64() {
                Some(next) => after = next,
                None => break,
            }
        }
        let feed = world.coordinator.feed(FeedPos::ZERO, 1_000).await.unwrap();
        let demo = "demo".parse().unwrap();
        let visible = feed.iter().filter(|e| token == &world.admin || e.product.as_ref() == Some(&demo));
        assert_eq!(seen, visible.map(|e| e.pos.0).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_long_history_is_told_whole() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    for n in 0..250 {
        let checkpoint = giga_domain::Checkpoint { note: Some(n.to_string()), ..Default::default() };
        world.hold(&job, vec![HolderAction::Checkpoint(checkpoint)]).await;
    }
    let count =
        world.coordinator.reads().job_events(job.id, EventSeq::ZERO, 1_000).await.unwrap().len() as u64;
    let path = format!("/api/fleet/jobs/{}/events/stream", job.id);
    let mut stream = Sse::open(world.get(&path).token(&world.admin)).await;
    for seq in 1..=count {
        assert_eq!(stream.next().await.unwrap().id, seq);
    }
}

#[tokio::test]
async fn a_quiet_stream_says_that_it_is_there() {
    let options = giga_server::ServerOptions {
        keep_alive: std::time::Duration::from_millis(20),
        ..giga_server::ServerOptions::default()
    };
    let world = World::start_with(options).await;
    let mut stream = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    assert_eq!(stream.comment().await, ": still here\n\n");
}
