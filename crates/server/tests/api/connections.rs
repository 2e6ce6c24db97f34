//! Connections of those who begin something and do not go on, who only want to be in the way, or who are too many:
//! they are let go, and nobody else notices.

use std::time::Duration;

use giga_server::{Listener, ServerOptions, Tls, serve};
use giga_testkit::certificates::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::streams::Sse;
use crate::world::World;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const NO_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// Sooner than the pings of HTTP/2 would notice anything.
const SOON: Duration = Duration::from_secs(5);

/// HEADERS of `GET /` on this stream, which end there or go on.
fn get(stream: u32, are_all: bool) -> Vec<u8> {
    let flags = if are_all { 0x5 } else { 0x1 };
    let fields = [0x82, 0x86, 0x84, 0x41, 0x01, b'x'];
    let mut frame = vec![0, 0, fields.len() as u8, 1, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(fields);
    frame
}

fn reset(stream: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 4, 3, 0];
    frame.extend(stream.to_be_bytes());
    frame.extend([0, 0, 0, 8]);
    frame
}

fn address(world: &World) -> &str {
    world.url.strip_prefix("http://").unwrap()
}

/// Everything until the server closes, which has to be soon.
async fn until_closed(mut connection: TcpStream, what: &str) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, connection.read_to_end(&mut answer)).await;
    // Closed with something unread counts as well.
    let _ = read.unwrap_or_else(|_| panic!("{what} is still connected"));
    answer
}

#[tokio::test]
async fn whoever_begins_and_does_not_go_on_is_let_go() {
    let options = ServerOptions { head_timeout: Duration::from_millis(100), ..ServerOptions::default() };
    let world = World::start_with(options).await;
    let whole = [PREFACE, NO_SETTINGS].concat();
    for (what, begun) in [
        ("half a preface", PREFACE[..10].to_vec()),
        ("a preface", PREFACE.to_vec()),
        ("a preface with settings", whole.clone()),
        ("half a head", [whole, get(1, false)].concat()),
    ] {
        let mut connection = TcpStream::connect(address(&world)).await.unwrap();
        connection.write_all(&begun).await.unwrap();
        until_closed(connection, what).await;
    }
}

#[tokio::test]
async fn half_a_handshake_is_let_go() {
    let world = World::start().await;
    let authority = Authority::new();
    let issued = authority.issue("here", &["127.0.0.1"]);
    let tls = Tls::from_files(&issued.cert, &issued.key).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let encrypted = tcp.local_addr().unwrap();
    let options = ServerOptions { head_timeout: Duration::from_millis(100), ..ServerOptions::default() };
    let coordinator = world.coordinator.clone();
    tokio::spawn(serve(coordinator, Listener::new(tcp, Some(tls)), options, world.shutdown.clone()));
    // A record of 512 bytes with a ClientHello, of which five come.
    for begun in [&b"\x16"[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"] {
        let mut connection = TcpStream::connect(encrypted).await.unwrap();
        connection.write_all(begun).await.unwrap();
        until_closed(connection, "half a handshake").await;
    }
}

#[tokio::test]
async fn calls_that_are_reset_at_once_cost_the_connection() {
    let world = World::start().await;
    let mut connection = TcpStream::connect(address(&world)).await.unwrap();
    let mut flood = [PREFACE, NO_SETTINGS].concat();
    for stream in (1..4_000).step_by(2) {
        flood.extend(get(stream, true));
        flood.extend(reset(stream));
    }
    // It may be closed before all of it is sent.
    let _ = connection.write_all(&flood).await;
    let answer = until_closed(connection, "a flood of resets").await;
    let enhance_your_calm = [0, 0, 0, 0xb];
    assert!(answer.windows(4).any(|word| word == enhance_your_calm), "{answer:?}");
    world.get("/api/fleet/jobs").token(&world.admin).gives(200).await;
}

#[tokio::test]
async fn the_silent_keep_nobody_out_and_cut_nobody_off() {
    let world = World::start_with(ServerOptions { max_connections: 40, ..ServerOptions::default() }).await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let mut events = Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    let renew = |token: &str| {
        let renew = world.post(&format!("/api/fleet/jobs/{}/lease/renew", job.id)).token(token);
        renew.json(serde_json::json!({"leaseEpoch": job.epoch.0})).gives(200)
    };
    renew(&token).await;
    let mut silent = Vec::new();
    for round in 0..300 {
        silent.push(TcpStream::connect(address(&world)).await.unwrap());
        if round % 30 == 0 {
            renew(&token).await;
            let fresh = reqwest::Client::builder().no_proxy().build().unwrap();
            let answer = fresh.get(format!("{}/api/fleet/jobs", world.url)).bearer_auth(&world.admin);
            assert_eq!(answer.send().await.unwrap().status(), 200, "a newcomer with a token");
        }
    }
    crate::readers::events(&world, 1).await;
    events.next().await.expect("the stream that was open before them is still open");
}

#[tokio::test]
async fn metrics_have_a_listener_of_their_own_and_nothing_else_is_there() {
    let world = World::start().await;
    let [tcp, metrics] = [TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await];
    let metrics = metrics.unwrap();
    let url = format!("http://{}", metrics.local_addr().unwrap());
    let listener = Listener::new(tcp.unwrap(), None).with_metrics(Some(metrics));
    let (coordinator, stop) = (world.coordinator.clone(), world.shutdown.clone());
    let server = tokio::spawn(serve(coordinator, listener, ServerOptions::default(), stop));
    let answer = world.http.get(format!("{url}/metrics")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains("giga_store_up 1"));
    for other in ["/", "/readyz", "/api/fleet/jobs", "/api/fleet/metrics"] {
        let answer = world.http.get(format!("{url}{other}")).bearer_auth(&world.admin).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{other}");
    }
    assert_eq!(world.http.post(format!("{url}/metrics")).send().await.unwrap().status(), 405);
    world.shutdown.cancel();
    server.await.unwrap().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .connect(url.strip_prefix("http://").unwrap().parse().unwrap())
        .await
        .expect_err("it stops with the rest");
}
