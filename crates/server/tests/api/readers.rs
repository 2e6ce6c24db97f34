//! Readers of events that are far behind, or that never read: they cost a bounded amount, and hold nobody up.

use std::time::{Duration, Instant};

use giga_coordinator::NewItem;
use giga_domain::manifest::parse_markdown;
use giga_domain::rate::Rate;
use giga_server::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::streams::Sse;
use crate::world::{World, actor};

/// What a reader that never reads may cost, its connection included.
const PER_READER: usize = 200 * 1024;

/// One event each, with something in it.
pub(crate) async fn events(world: &World, count: usize) {
    for round in 0..count.div_ceil(1_000) {
        let items = (0..count.min(1_000)).map(|number| {
            let name = format!("{round}-{number}-{}", "x".repeat(100));
            let text = format!("---\nname: {name}\n---\nDo it.\n");
            let (manifest, body) = parse_markdown(text.as_bytes()).unwrap();
            NewItem { product: "demo".parse().unwrap(), manifest, body }
        });
        world.coordinator.submit_many(items.collect(), actor()).await.unwrap();
    }
}

/// Of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

async fn ask_for_everything(world: &World) -> TcpStream {
    let address = world.url.strip_prefix("http://").unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    // So that little of it is kept on the way.
    socket.set_recv_buffer_size(4096).unwrap();
    let mut socket = socket.connect(address.parse().unwrap()).await.unwrap();
    let request = format!(
        "GET /api/fleet/events/stream?after=0 HTTP/1.1\r\nhost: giga\r\nauthorization: Bearer {}\r\n\r\n",
        world.admin
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    // The beginning of the answer: from here on the server writes and nobody reads.
    let mut first = [0; 12];
    socket.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    socket
}

/// Set for the process that is measured.
const ALONE: &str = "GIGA_TEST_ALONE";

/// In a process of its own, because memory is counted per process and other tests use some.
#[test]
fn a_thousand_readers_that_never_read_cost_little_and_hold_nobody_up() {
    if std::env::var_os(ALONE).is_some() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        return runtime.worker_threads(2).enable_all().build().unwrap().block_on(a_thousand_readers());
    }
    let name = "readers::a_thousand_readers_that_never_read_cost_little_and_hold_nobody_up";
    let measured = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&measured.stdout);
    assert!(
        measured.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&measured.stderr)
    );
}

async fn a_thousand_readers() {
    let world = World::start().await;
    events(&world, 5_000).await;
    let before = memory();
    let mut silent = Vec::new();
    for _ in 0..1_000 {
        silent.push(ask_for_everything(&world).await);
    }
    let mut live = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    events(&world, 200).await;
    for _ in 0..200 {
        live.next().await.unwrap();
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 1_000 * PER_READER, "{} MiB", grown >> 20);
    world.get("/api/fleet/jobs").token(&world.admin).gives(200).await;
}

#[tokio::test]
async fn a_reader_far_behind_is_brought_up_at_a_bounded_speed_and_misses_nothing() {
    let history_speed = Rate { per_second: 500.0, burst: 500.0 };
    let world = World::start_with(ServerOptions { history_speed, ..ServerOptions::default() }).await;
    events(&world, 2_000).await;
    let began = Instant::now();
    let mut stream = Sse::open(world.get("/api/fleet/events/stream?after=0").token(&world.admin)).await;
    let mut last = 0;
    for _ in 0..2_000 {
        let id = stream.next().await.unwrap().id;
        assert!(id > last);
        last = id;
    }
    // 500 at once, the rest at 500 per second.
    assert!(began.elapsed() >= Duration::from_millis(2_800), "{:?}", began.elapsed());
}

#[tokio::test]
async fn event_streams_are_bounded_in_number_and_say_when_to_come_back() {
    let world = World::start_with(ServerOptions { event_streams: 2, ..ServerOptions::default() }).await;
    let open = || world.get("/api/fleet/events/stream").token(&world.admin);
    let mut response = open().open().await;
    let first = response.chunk().await.unwrap().unwrap();
    assert_eq!(&first[..], b"retry: 2000\n\n");
    let _other = open().open().await;
    let refused = open().refused(429, "too_many_requests", "2 event streams are open").await;
    assert_eq!(refused.header("retry-after"), "2");
}
