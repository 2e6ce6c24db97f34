//! Receivers that behave badly, on this machine and for real: what is said about each, and who is never visited.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{At, effect, listen, webhook, world};
use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{any, post};
use giga_domain::EffectOutcome;
use giga_effects::{Allowed, Config, HttpEffects, Lookup, signature};
use giga_ports::{Effects, EffectsError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

async fn outcome(world: &HttpEffects, url: &str) -> EffectOutcome {
    world.deliver(&effect(), Some(&webhook(url))).await
}

fn failed(outcome: EffectOutcome) -> (String, Option<Duration>) {
    match outcome {
        EffectOutcome::Failed { detail, after } => (detail, after),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_receiver_can_tell_who_sent_it_and_whether_it_came_before() {
    let (sender, mut heard) = mpsc::unbounded_channel::<(HeaderMap, Bytes)>();
    let hook = post(async move |headers: HeaderMap, body: Bytes| {
        sender.send((headers, body)).unwrap();
        StatusCode::NO_CONTENT
    });
    let base = listen(Router::new().route("/hook", hook)).await;
    let world = world(&["127.0.0.1"]);
    for _ in 0..2 {
        let delivered = outcome(&world, &format!("{base}/hook")).await;
        assert_eq!(delivered, EffectOutcome::Delivered { detail: "204 No Content".to_owned() });
        let (headers, body) = heard.recv().await.unwrap();
        assert_eq!(headers["webhook-id"], "wh:1:7");
        assert_eq!(headers["webhook-timestamp"], "1700000000");
        assert_eq!(headers["content-type"], "application/json");
        let secret = webhook(&base).secret;
        assert_eq!(headers["webhook-signature"], signature(&secret, "wh:1:7", 1_700_000_000, &body));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&body).unwrap(), effect().payload);
    }
}

#[tokio::test]
async fn each_answer_has_its_meaning() {
    let status = |code: u16| any(async move || StatusCode::from_u16(code).unwrap());
    let later =
        |code: u16| any(async move || (StatusCode::from_u16(code).unwrap(), [("retry-after", "90")], "calm"));
    let app = Router::new()
        .route("/200", status(200))
        .route("/404", status(404))
        .route("/410", status(410))
        .route("/500", status(500))
        .route("/429", later(429))
        .route("/503", later(503))
        .route("/502", later(502))
        .route("/long", any(async || "x".repeat(1024 * 1024)));
    let base = listen(app).await;
    let world = world(&["127.0.0.1"]);
    let ask = async |path: &str| outcome(&world, &format!("{base}{path}")).await;
    assert!(matches!(ask("/200").await, EffectOutcome::Delivered { .. }));
    assert!(matches!(ask("/long").await, EffectOutcome::Delivered { .. }), "nobody reads all of it");
    assert_eq!(failed(ask("/404").await), ("404 Not Found".to_owned(), None));
    assert_eq!(failed(ask("/500").await).1, None);
    assert_eq!(
        failed(ask("/429").await),
        ("429 Too Many Requests: calm".to_owned(), Some(Duration::from_secs(90)))
    );
    assert_eq!(failed(ask("/503").await).1, Some(Duration::from_secs(90)));
    assert_eq!(failed(ask("/502").await).1, None);
    match ask("/410").await {
        EffectOutcome::Refused { detail } => assert!(detail.contains("gone for good"), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    let (canary, visits) = canary().await;
    for code in [301, 302, 303, 307, 308] {
        let location = format!("{canary}/secrets");
        let hook = any(async move || (StatusCode::from_u16(code).unwrap(), [("location", location)]));
        let base = listen(Router::new().route("/hook", hook)).await;
        // Even where the target itself would be allowed.
        let (detail, _) = failed(outcome(&world(&["127.0.0.1"]), &format!("{base}/hook")).await);
        assert!(detail.contains("never followed"), "{detail}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

/// A server that takes everything, and how often it was visited.
async fn canary() -> (String, Arc<AtomicUsize>) {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let canary = any(async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        StatusCode::OK
    });
    let base = listen(Router::new().fallback(canary)).await;
    (base, visits)
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_never_visited() {
    let (base, visits) = canary().await;
    let port = base.rsplit(':').next().unwrap();
    let world = world(&[]);
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]", "0"] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/hook");
            // What a name leads to may change; what an address says does not.
            match (host, outcome(&world, &url).await) {
                ("localhost", EffectOutcome::Failed { .. }) => {}
                (_, EffectOutcome::Refused { .. }) if host != "localhost" => {}
                (_, other) => panic!("{url}: {other:?}"),
            }
            assert!(matches!(world.check_url(&url).await, Err(EffectsError::Malformed(_))), "{url}");
        }
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    assert!(matches!(
        outcome(&crate::common::world(&["127.0.0.1"]), &base).await,
        EffectOutcome::Delivered { .. }
    ));
    assert_eq!(visits.load(Ordering::SeqCst), 1, "the canary can count");
}

/// A name that is public when it is looked at and private when it is connected to.
struct Rebinds(AtomicUsize);

#[async_trait]
impl Lookup for Rebinds {
    async fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { "93.184.216.34" } else { "127.0.0.1" }.parse().unwrap()])
    }
}

#[tokio::test]
async fn a_name_that_changes_its_mind_leads_nowhere() {
    let (base, visits) = canary().await;
    let port = base.rsplit(':').next().unwrap();
    let lookup = Arc::new(Rebinds(AtomicUsize::new(0)));
    let world = HttpEffects::with_lookup(Config::default(), Arc::new(At(0)), lookup.clone()).unwrap();
    let url = format!("https://rebinds.example:{port}/");
    assert_eq!(world.check_url(&url).await, Ok(()), "it looked harmless when it was added");
    match outcome(&world, &url).await {
        EffectOutcome::Failed { detail, .. } => assert!(detail.contains("127.0.0.1"), "{detail}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        (visits.load(Ordering::SeqCst), lookup.0.load(Ordering::SeqCst)),
        (0, 2),
        "one look per connection"
    );
}

/// Whatever is written to a connection after the request was read.
async fn raw(answer: &'static [u8], then_hang: bool) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0u8; 4096];
                let _ = stream.read(&mut buffer).await;
                let _ = stream.write_all(answer).await;
                if then_hang {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    base
}

#[tokio::test]
async fn broken_and_slow_receivers_are_tried_again_later() {
    let world = crate::common::impatient(&["127.0.0.1"]);
    for (answer, hangs, expected) in [
        (&b""[..], false, "connection"),
        (&b"garbage\r\n\r\n"[..], false, "connection"),
        (&b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"[..], false, "connection"),
        (&b""[..], true, "no answer within"),
        (&b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nslow"[..], true, "no answer within"),
    ] {
        let (detail, _) = failed(outcome(&world, &raw(answer, hangs).await).await);
        assert!(detail.contains(expected), "{detail}");
    }
    // Answers and closes, and answers twice: the first answer counts.
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"[..],
        &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n"[..],
    ] {
        let delivered = outcome(&world, &raw(answer, false).await).await;
        assert!(matches!(delivered, EffectOutcome::Delivered { .. }), "{delivered:?}");
    }
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (detail, _) = failed(outcome(&world, &format!("http://{nobody}/s3cret-path")).await);
    assert!(detail.contains("cannot be reached") && !detail.contains("s3cret"), "{detail}");
}

#[tokio::test]
async fn a_webhook_that_is_gone_is_refused() {
    let refused = world(&[]).deliver(&effect(), None).await;
    assert!(matches!(refused, EffectOutcome::Refused { .. }), "{refused:?}");
    assert!(Allowed::read(["nonsense!"]).is_err());
}
