//! Who the broker is at Service Bus: keys, signatures and identities, refused and renewed.

use std::time::Duration;

use giga_broker::{ServiceBus, ServiceBusAccess, ServiceBusCredential, ServiceBusTuning};
use giga_ports::Broker;
use giga_testkit::broker_suite::{in_time, offer};
use giga_testkit::servicebus::{KEY, RULE, ServiceBusPeer};
use serde_json::{Value, json};

use crate::conformance_servicebus::access;

fn by_variables(peer: &ServiceBusPeer, pairs: &[(&str, &str)]) -> ServiceBusAccess {
    let variables: Vec<_> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let credential = ServiceBusCredential::from_variables(&variables).unwrap();
    ServiceBusAccess { credential, ..access(&peer.connection_string()) }
}

async fn works(broker: &ServiceBus, job: u128) {
    let mut consumer = broker.consume(&"f1".parse().unwrap()).await.unwrap();
    broker.publish(&[offer(job, "f1")]).await.unwrap();
    let delivered = in_time("an offer", consumer.next()).await.unwrap();
    assert_eq!(delivered.offer, offer(job, "f1"));
    consumer.ack(&delivered).await.unwrap();
}

fn list(peer: &ServiceBusPeer, order: &str) -> Vec<Value> {
    serde_json::from_str(&peer.order(order, &json!({}))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_says_why_and_never_what_it_was() {
    let peer = ServiceBusPeer::start();
    for (rule, key) in [(RULE, "aHVudGVyMg=="), ("nobody", KEY)] {
        let text = ServiceBusPeer::connection_string_of(peer.address(), rule, key);
        let error = ServiceBus::connect(&peer.url(), access(&text)).await.unwrap_err();
        let all = format!("{error} {error:?} {:?}", access(&text));
        assert!(all.contains("InvalidSignature") && all.contains(rule), "{all}");
        assert!(!all.contains(key), "{all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_managed_identity_gets_its_token_from_the_machine() {
    let peer = ServiceBusPeer::start();
    let host = format!("http://{}", peer.address());
    let access =
        by_variables(&peer, &[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &host), ("AZURE_CLIENT_ID", "c1")]);
    let broker = ServiceBus::connect(&peer.url(), access.clone()).await.unwrap();
    works(&broker, 1).await;
    let asked = list(&peer, "asked");
    assert!(asked.iter().all(|ask| ask["kind"] == "identity" && ask["client_id"] == "c1"), "{asked:?}");
    assert!(list(&peer, "put").iter().all(|put| put["type"] == "jwt"));
    peer.order("refuse", &json!({"why": "Identity not found"}));
    let error = ServiceBus::connect(&peer.url(), access).await.unwrap_err();
    assert!(error.to_string().contains("Identity not found"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_identity_exchanges_the_token_in_its_file() {
    let peer = ServiceBusPeer::start();
    let host = format!("http://{}", peer.address());
    let file = std::env::temp_dir().join(format!("giga-federated-{}", std::process::id()));
    std::fs::write(&file, "federated\n").unwrap();
    let path = file.to_str().unwrap().to_owned();
    let pairs = [
        ("AZURE_FEDERATED_TOKEN_FILE", path.as_str()),
        ("AZURE_TENANT_ID", "contoso"),
        ("AZURE_CLIENT_ID", "c1"),
        ("AZURE_AUTHORITY_HOST", host.as_str()),
    ];
    let access = by_variables(&peer, &pairs);
    let broker = ServiceBus::connect(&peer.url(), access.clone()).await.unwrap();
    works(&broker, 1).await;
    let asked = list(&peer, "asked");
    assert!(asked.iter().all(|ask| ask["path"] == "/contoso/oauth2/v2.0/token"), "{asked:?}");
    std::fs::write(&file, "hunter2").unwrap();
    let error = ServiceBus::connect(&peer.url(), access.clone()).await.unwrap_err().to_string();
    assert!(error.contains("AADSTS700211") && !error.contains("hunter2"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = ServiceBus::connect(&peer.url(), access).await.unwrap_err().to_string();
    assert!(error.contains("AZURE_FEDERATED_TOKEN_FILE"), "{error}");
}

/// The stand-in closes links whose token is over. Here they live for three seconds.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_renewed_before_they_expire() {
    let peer = ServiceBusPeer::start();
    let tuning = ServiceBusTuning { signed_for: Duration::from_secs(3), ..ServiceBusTuning::default() };
    let key = ServiceBus::connect_with(&peer.url(), access(&peer.connection_string()), tuning).await.unwrap();
    peer.order("lifetime", &json!({"seconds": 3}));
    let host = format!("http://{}", peer.address());
    let access = by_variables(&peer, &[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &host)]);
    let identity = ServiceBus::connect(&peer.url(), access).await.unwrap();
    let [one, two] = ["f1", "f2"].map(|name| name.parse().unwrap());
    let (mut first, mut second) = (key.consume(&one).await.unwrap(), identity.consume(&two).await.unwrap());
    let puts = |audience: &str| {
        let is_it = |put: &&Value| put["audience"].as_str().unwrap().ends_with(audience);
        list(&peer, "put").iter().filter(is_it).count()
    };
    in_time("four tokens each", async {
        while ["Subscriptions/f1", "Subscriptions/f2"].iter().any(|audience| puts(audience) < 4) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // The same links: neither consumer has ended.
    key.publish(&[offer(1, "f1"), offer(2, "f2")]).await.unwrap();
    assert_eq!(in_time("an offer", first.next()).await.unwrap().offer, offer(1, "f1"));
    assert_eq!(in_time("an offer", second.next()).await.unwrap().offer, offer(2, "f2"));
}

/// A second opinion on the stand-in itself: what the official client for Python thinks of it.
#[test]
fn the_official_client_agrees_with_the_stand_in() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = root.join("target/tools/servicebus-client");
    assert!(
        packages.join("azure/servicebus").exists(),
        "run `cargo xtask setup`, which installs the client for Python"
    );
    let peer = ServiceBusPeer::start();
    peer.order("topic", &json!({"name": "t", "duplicates": 60_000}));
    for (name, lock) in [("f1", 60_000), ("f2", 60_000), ("f3", 800)] {
        let rule = json!({"name": "target", "properties": {"targetFactoryId": name}});
        peer.order(
            "subscription",
            &json!({"topic": "t", "name": name, "lock": lock, "deliveries": 2, "rule": rule}),
        );
    }
    let mut client = std::process::Command::new("python3");
    client.arg(root.join("tests/servicebus-peer/client.py"));
    client.args([peer.address(), RULE, KEY, "t", "f1", "f2", "f3"]).env("PYTHONPATH", packages);
    let output = client.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "agreed", "{}", String::from_utf8_lossy(&output.stderr));
}
