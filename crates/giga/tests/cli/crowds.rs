//! What anybody who reaches a coordinator can do to it at once, against the real process: calls of others are answered
//! meanwhile, and its memory stays within what docs/security.md says.

use std::time::Duration;

use futures::StreamExt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{Holder, Home, Server, manifest};

/// Generous: alone it takes milliseconds.
const PROMPT: Duration = Duration::from_secs(10);
const MIB: u64 = 1024 * 1024;
/// As docs/security.md says.
const MEMORY: u64 = 400 * MIB;

/// So that this process can be a crowd.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}

fn admin(home: &Home) -> String {
    std::fs::read_to_string(home.data().join("admin.token")).unwrap().trim().to_owned()
}

async fn connect(server: &Server, begin: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(begin).await.unwrap();
    stream
}

async fn crowd(server: &Server, count: usize, begin: &[u8]) -> Vec<TcpStream> {
    let mut crowd = Vec::with_capacity(count);
    for _ in 0..count {
        crowd.push(connect(server, begin).await);
    }
    crowd
}

/// A caller that nobody knows yet, and a holder: both are served now.
async fn everybody_is_served(
    server: &Server,
    admin: &str,
    holder: &Holder,
    held: &(String, u64),
    when: &str,
) {
    let calls = async {
        let newcomer = reqwest::Client::new();
        let jobs = newcomer.get(format!("{}/api/fleet/jobs", server.url)).bearer_auth(admin).send().await;
        assert_eq!(jobs.unwrap().status(), 200, "{when}");
        let (job, epoch) = held;
        let (status, answer) =
            holder.post(&format!("jobs/{job}/lease/renew"), json!({"leaseEpoch": epoch})).await;
        assert_eq!(status, 200, "{when}: {answer}");
    };
    tokio::time::timeout(PROMPT, calls).await.unwrap_or_else(|_| panic!("nobody was served: {when}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn crowds_of_strangers_hold_nobody_up_and_cost_little() {
    allow_many_files();
    let home = Home::new();
    let server = home.start_with(&["--max-connections", "6000"]);
    let holder = Holder::enroll(&home, &server, "f-1", &["os:linux"]).await;
    let file = home.write("job.md", manifest("held", ""));
    home.giga(&["job", "submit", file.to_str().unwrap()]).ok();
    let held = holder.take("r-1").await;
    let admin = admin(&home);
    let served = |when| everybody_is_served(&server, &admin, &holder, &held, when);

    let request = format!(
        "GET /api/fleet/events/stream?after=0 HTTP/1.1\r\nhost: giga\r\nauthorization: Bearer {admin}\r\n\r\n"
    );
    let _readers = crowd(&server, 1_000, request.as_bytes()).await;
    served("a thousand event streams that nobody reads").await;
    let _silent = crowd(&server, 5_000, b"").await;
    served("5,000 connections that say nothing").await;
    let _slow = crowd(&server, 1_000, b"GET /livez HTTP/1.1\r\nhost: giga\r\nslow: ").await;
    served("1,000 heads that do not end").await;
    let _half = crowd(&server, 1_000, b"PRI * HTTP/2.0\r\n").await;
    served("1,000 halves of HTTP/2's preface").await;

    let guess = |number: usize| {
        format!(
            "GET /api/fleet/jobs HTTP/1.1\r\nhost: giga\r\nauthorization: Bearer giga_{number:064x}\r\n\r\n"
        )
    };
    let mut guesses = Vec::new();
    for number in 0..500 {
        guesses.push(connect(&server, guess(number).as_bytes()).await);
    }
    served("500 guesses of a token").await;
    for mut guess in guesses {
        let mut answer = [0; 12];
        guess.read_exact(&mut answer).await.unwrap();
        assert!(matches!(&answer, b"HTTP/1.1 401" | b"HTTP/1.1 429"), "{answer:?}");
    }
    let memory = server.resident_bytes();
    assert!(memory < MEMORY, "{} MiB", memory / MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_never_end_and_many_at_once_cost_little() {
    let home = Home::new();
    let server = home.start();
    let holder = Holder::enroll(&home, &server, "f-1", &["os:linux"]).await;
    let mut held = Vec::new();
    for number in 0..12 {
        let file = home.write("job.md", manifest(&format!("held-{number}"), ""));
        home.giga(&["job", "submit", file.to_str().unwrap()]).ok();
    }
    let (status, answer) = holder
        .post(
            "factories/heartbeat",
            json!({"factoryId": "f-1", "capabilities": ["os:linux"], "seatLimit": 16}),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    for number in 0..12 {
        held.push(holder.take(&format!("r-{number}")).await);
    }
    let admin = admin(&home);

    let piece = vec![7u8; MIB as usize];
    let mut unfinished = Vec::new();
    for number in 0..40 {
        let (job, epoch) = &held[number % held.len()];
        let head = format!(
            "POST /api/fleet/jobs/{job}/artifacts?name=half-{number}&leaseEpoch={epoch} HTTP/1.1\r\nhost: giga\r\n\
             authorization: Bearer {}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
            holder.token,
            64 * MIB
        );
        let mut stream = connect(&server, head.as_bytes()).await;
        // As much as is taken: who has to wait for others is not read from.
        for _ in 0..10 {
            if tokio::time::timeout(Duration::from_millis(100), stream.write_all(&piece)).await.is_err() {
                break;
            }
        }
        unfinished.push(stream);
    }
    // The same with bodies that are read whole: as much as is allowed of each, and no end.
    let head = format!(
        "POST /api/fleet/topics/mail/jobs HTTP/1.1\r\nhost: giga\r\nauthorization: Bearer {admin}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        16 * MIB
    );
    for _ in 0..40 {
        let mut stream = connect(&server, head.as_bytes()).await;
        for _ in 0..15 {
            // Whoever has no room for it says so and closes.
            if stream.write_all(&piece).await.is_err() {
                break;
            }
        }
        unfinished.push(stream);
    }
    everybody_is_served(&server, &admin, &holder, &held[0], "eighty unfinished bodies").await;
    let memory = server.resident_bytes();
    assert!(memory < MEMORY, "with eighty unfinished bodies: {} MiB", memory / MIB);
    drop(unfinished);

    let upload = |number: usize| {
        let (job, epoch) = held[number].clone();
        let url = format!("{}/api/fleet/jobs/{job}/artifacts?name=whole&leaseEpoch={epoch}", server.url);
        let request = reqwest::Client::new().post(url).bearer_auth(&holder.token);
        let pieces = futures::stream::iter(vec![piece.clone(); 60]).map(Ok::<_, std::io::Error>);
        request.header("content-type", "text/plain").body(reqwest::Body::wrap_stream(pieces)).send()
    };
    let answers = futures::future::join_all((0..12).map(upload)).await;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
    }
    let memory = server.resident_bytes();
    assert!(memory < MEMORY, "after twelve uploads at once: {} MiB", memory / MIB);
}
