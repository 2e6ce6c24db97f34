//! Coordinator and factory on Azure Service Bus, or what stands in for it here.

use std::time::{Duration, Instant};

use giga_testkit::certificates::Authority;
use giga_testkit::servicebus::ServiceBusPeer;
use serde_json::{Value, json};

use crate::bench::{Reader, Repo, event, shell_job, submit};
use crate::world::{Home, Server, giga, run};

fn shown(home: &Home, args: &[&str]) -> Value {
    serde_json::from_str(&home.giga(&[args, &["-o", "json"]].concat()).ok()).unwrap()
}

/// Until the factory says that jobs reach it in this way.
fn until_delivered_by(home: &Home, mode: &str) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while shown(home, &["factory", "show", "mac-1"])["actualDelivery"] != mode {
        assert!(Instant::now() < deadline, "the factory is not reached by {mode}");
    }
}

#[test]
fn a_job_is_planned_in_the_shadow_and_then_read_by_a_factory_with_a_signature_of_its_own() {
    let home = Home::new();
    let _repo = Repo::hello(&home);
    let peer = ServiceBusPeer::start();
    let connection = home.write("connection.txt", peer.connection_string()).display().to_string();
    let broker = ["--broker", &peer.url(), "--servicebus-connection", &connection];
    let _server = home.start_with(&broker);

    let mut command = giga(home.path());
    command.args(["broker", "servicebus-token", "mac-1", "--expires", "1h"]).args(broker);
    let signed = run(&mut command);
    assert!(
        signed.out.starts_with("SharedAccessSignature sr=") && signed.out.contains("Subscriptions%2Fmac-1"),
        "{signed:#?}"
    );
    assert!(signed.err.contains("mac-1 can read its offers with it until"), "{signed:#?}");
    let own = home.write("mac-1.txt", &signed.out).display().to_string();

    home.giga(&["flags", "set", "delivery", "shadow"]).ok();
    home.giga(&["flags", "set", "heartbeat_interval_ms", "500"]).ok();
    let repos = home.path().join("repos").display().to_string();
    let mut factory = Reader::spawn(
        &home,
        &[
            "factory",
            "run",
            "--id",
            "mac-1",
            "--repos",
            &repos,
            "--broker",
            &peer.url(),
            "--servicebus-connection",
            &own,
        ],
    );
    factory.until(|line| line == "ready factory mac-1");
    let script = |name: &str| {
        shell_job(name, &format!("echo {name} > {name}.txt"), &format!("grep {name} {name}.txt"))
    };
    // In the shadow the plan is published and nothing acts on it; polling may be faster than the plan, so again.
    let offered = || peer.state()["fleet"]["received"].as_u64().unwrap();
    for round in 0.. {
        assert!(round < 10, "nothing was planned: {}", peer.state());
        let polled = submit(&home, &script(&format!("polled-{round}")));
        event(&home, &polled, "job.merged");
        if offered() > 0 {
            break;
        }
    }
    assert!(peer.subscription("fleet", "shadow").is_object(), "{}", peer.state());
    until_delivered_by(&home, "shadow");

    home.giga(&["flags", "set", "delivery", "broker"]).ok();
    until_delivered_by(&home, "broker");
    let before = offered();
    let job = submit(&home, &script("second"));
    event(&home, &job, "job.merged");
    assert!(offered() > before, "{}", peer.state());
    let own = peer.subscription("fleet", "mac-1");
    assert_eq!((&own["messages"], &own["dead"]), (&json!(0), &json!(0)), "acknowledged: {own}");
    assert_eq!(peer.subscription("fleet", "mac-1")["rules"], json!({"target": {"targetFactoryId": "mac-1"}}));
}

/// AMQP and the management of entities by TLS, as Azure has them, with a CA that the machine is told to trust.
#[test]
fn nothing_is_said_to_a_namespace_that_the_machine_does_not_trust() {
    let home = Home::new();
    let authority = Authority::new();
    let peer = ServiceBusPeer::start();
    peer.encrypt(&authority.issue("peer", &["127.0.0.1"]));
    let connection = home.write("connection.txt", peer.connection_string()).display().to_string();
    let port = peer.address().rsplit(':').next().unwrap();
    let url = format!("{}?tls=true&management={port}", peer.url());
    let serve = |ca: &std::path::Path| {
        let mut command = giga(home.path());
        command.env("SSL_CERT_FILE", ca).args(["serve", "--listen", "127.0.0.1:0", "--broker", &url]);
        command.args(["--servicebus-connection", &connection]);
        command
    };
    let refused = run(&mut serve(&Authority::new().file())).fails(1);
    assert!(refused.contains("no TLS with Service Bus"), "{refused}");
    assert_eq!(peer.state(), json!({}), "nothing was made");
    let server = Server::spawn(serve(&authority.file()), home.path());
    assert!(peer.state()["fleet-hints"].is_object(), "{}", peer.state());
    drop(server);
}

#[test]
fn what_is_wrong_with_the_credential_is_said_before_anything_starts() {
    let home = Home::new();
    let peer = ServiceBusPeer::start();
    let wrong = ServiceBusPeer::connection_string_of(peer.address(), "root", "aHVudGVyMg==");
    let file = home.write("connection.txt", wrong).display().to_string();
    let serve = |args: &[&str]| {
        home.giga(&[&["serve", "--listen", "127.0.0.1:0", "--broker", &peer.url()], args].concat())
    };
    let error = serve(&["--servicebus-connection", &file]).fails(1);
    assert!(error.contains("InvalidSignature") && !error.contains("aHVudGVyMg"), "{error}");
    let error = serve(&["--servicebus-connection", "nowhere.txt"]).fails(2);
    assert!(error.contains("--servicebus-connection") && error.contains("nowhere.txt"), "{error}");
    let shown = home.giga(&["config", "show"]).ok();
    assert!(shown.contains("servicebus-connection"), "{shown}");
    let error = home.giga(&["broker", "servicebus-token", "mac-1", "--broker", "nats://host"]).fails(2);
    assert!(error.contains("servicebus://"), "{error}");
}
