//! The client against a server that behaves as badly as the test wants: what is repeated, what is not, and what
//! becomes of each answer.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::sync::Arc;

use giga_api::client::{Client, ClientError, ClientOptions, Idempotency, Signal};
use giga_api::wire::{OperatorAction, ProblemCode};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers connections in turn with these texts; an empty one hangs up after the request was read.
struct Script {
    client: Client,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    async fn play(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            for answer in answers {
                let (mut connection, _) = listener.accept().await.unwrap();
                let request = read_request(&mut connection).await;
                seen.lock().push(request);
                connection.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let token = Some("secret".to_owned());
        let options =
            ClientOptions { url, token, product: Some("demo".to_owned()), ..ClientOptions::default() };
        Self { client: Client::new(options).unwrap(), requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

/// Head and body, so that hanging up does not look like a refusal to listen.
async fn read_request(connection: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = connection.read(&mut buffer).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) || count == 0 {
                return text;
            }
        }
    }
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn json(body: &str) -> String {
    answer("200 OK", "application/json", body)
}

fn problem(status: u16, code: &str) -> String {
    let body = format!(r#"{{"title":"t","status":{status},"code":"{code}","detail":"because"}}"#);
    answer(&format!("{status} X"), "application/problem+json", &body)
}

fn hang_up() -> String {
    String::new()
}

const JOB: &str = r#"{"id":"01J9ZK3V5N8Q4W2E6R7T1Y0ABC","productId":"demo","name":"x","kind":"agent",
"stage":"queued","priority":"normal","rev":1,"leaseEpoch":0,"capabilities":[],"deps":[],"depsMode":"all",
"attempts":0,"dispatchSeq":0,"createdAt":"","updatedAt":"","enqueuedAt":"","fromTheFuture":7}"#;

#[tokio::test]
async fn looking_is_repeated_until_it_succeeds() {
    let script = Script::play(vec![hang_up(), problem(503, "unavailable"), json(JOB)]).await;
    let job = script.client.job("01J9ZK3V5N8Q4W2E6R7T1Y0ABC").await.unwrap();
    assert_eq!((job.name.as_str(), &job.json["fromTheFuture"]), ("x", &serde_json::json!(7)));
    let requests = script.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].starts_with("GET /api/fleet/jobs/01J9ZK3V5N8Q4W2E6R7T1Y0ABC HTTP/1.1"));
    let head = requests[0].to_lowercase();
    assert!(head.contains("authorization: bearer secret") && head.contains("x-product-id: demo"), "{head}");
}

#[tokio::test]
async fn it_gives_up_in_the_end() {
    let script = Script::play(vec![problem(503, "unavailable"); 10]).await;
    let error = script.client.flags().await.unwrap_err();
    assert_eq!(error.code(), Some(ProblemCode::Unavailable));
    assert_eq!(script.requests().len(), 4);
}

#[tokio::test]
async fn what_may_have_happened_is_not_done_twice() {
    let script = Script::play(vec![hang_up(), json(JOB)]).await;
    let error = script.client.act("x", OperatorAction::Ship, None, Some(7)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    let requests = script.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].contains("if-match: \"rev-7\""), "{}", requests[0]);
}

#[tokio::test]
async fn a_submit_is_repeated_only_under_a_key() {
    let submitted = format!(r#"{{"job":{JOB},"routable":true,"warnings":[]}}"#);
    for (idempotency, sent) in
        [(Idempotency::Nothing, 1), (Idempotency::InManifest, 2), (Idempotency::Key("cli-1".to_owned()), 2)]
    {
        let script = Script::play(vec![hang_up(), json(&submitted)]).await;
        let result = script.client.submit(b"---\nname: x\n---\n".to_vec(), &idempotency).await;
        assert_eq!(result.is_ok(), sent == 2, "{idempotency:?}");
        let requests = script.requests();
        assert_eq!(requests.len(), sent, "{idempotency:?}");
        let keyed = requests.iter().all(|request| request.contains("idempotency-key: cli-1"));
        assert_eq!(keyed, matches!(idempotency, Idempotency::Key(_)), "the same key each time");
    }
}

#[tokio::test]
async fn answers_that_are_none_of_ours_are_told_apart() {
    let page = answer("200 OK", "text/html", "<html>hello</html>");
    let broken = answer("500 Internal Server Error", "text/html", "<html>\u{1b}[31mno</html>");
    let elsewhere =
        "HTTP/1.1 302 Found\r\nlocation: http://elsewhere.invalid/\r\ncontent-length: 0\r\n\r\n".to_owned();
    let script = Script::play(vec![page, broken, elsewhere]).await;
    for status in [200, 500, 302] {
        match script.client.flags().await.unwrap_err() {
            ClientError::BadAnswer { status: given, reason, .. } => {
                assert_eq!(given, status);
                assert!(!reason.contains('\u{1b}'), "{reason:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(script.requests().len(), 3, "a redirect is not followed: it would carry the token along");
}

/// A proxy whose coordinator is gone, or did not answer in time: what only looks is asked again, what may have happened is not.
#[tokio::test]
async fn a_proxy_that_reached_nobody_is_as_nobody() {
    let gateway = answer("502 Bad Gateway", "text/html", "<html>no</html>");
    let late = answer("504 Gateway Timeout", "text/html", "<html>late</html>");
    let script = Script::play(vec![gateway.clone(), late, json(JOB)]).await;
    script.client.job("01J9ZK3V5N8Q4W2E6R7T1Y0ABC").await.unwrap();
    assert_eq!(script.requests().len(), 3);
    let script = Script::play(vec![gateway, json(JOB)]).await;
    let error = script.client.act("x", OperatorAction::Ship, None, Some(7)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn what_was_typed_stays_one_part_of_the_path() {
    let script = Script::play(vec![problem(404, "not_found")]).await;
    let error = script.client.job("../tokens?x=1#y").await.unwrap_err();
    assert_eq!(error.code(), Some(ProblemCode::NotFound));
    let request = &script.requests()[0];
    assert!(request.starts_with("GET /api/fleet/jobs/..%2Ftokens%3Fx=1%23y HTTP/1.1"), "{request}");
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_off() {
    let event = |seq: u64| {
        format!(
            "id: {seq}\nevent: job.started\ndata: {{\"pos\":{seq},\"seq\":{seq},\"at\":\"\",\"type\":\"job.started\",\"cause\":\"\",\"actor\":\"\",\"data\":{{}}}}\n\n"
        )
    };
    let stream = |text: String| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
    };
    // The second event is cut off: it was never told, so it is asked for again.
    let cut_off = format!("{}id: 2\ndata: {{\"po", event(1));
    let script = Script::play(vec![
        stream(cut_off),
        problem(503, "unavailable"),
        stream(event(2)),
        problem(401, "unauthenticated"),
    ])
    .await;
    let mut follow = script.client.follow_job("x", 0);
    let mut heard = Vec::new();
    let end = loop {
        match follow.next().await {
            Ok(Signal::Event(event)) => heard.push(format!("event {}", event.seq.unwrap())),
            Ok(Signal::Lost(_)) => heard.push("lost".to_owned()),
            Ok(Signal::Back) => heard.push("back".to_owned()),
            Err(error) => break error,
        }
    };
    assert_eq!(heard, ["event 1", "lost", "back", "event 2", "lost"]);
    assert_eq!(end.code(), Some(ProblemCode::Unauthenticated), "a refusal is final");
    let asked: Vec<String> = script
        .requests()
        .iter()
        .map(|request| request.lines().find(|line| line.starts_with("last-event-id")).unwrap().to_owned())
        .collect();
    assert_eq!(asked, ["last-event-id: 0", "last-event-id: 1", "last-event-id: 1", "last-event-id: 2"]);
}
