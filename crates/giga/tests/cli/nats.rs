//! A NATS server with the accounts that `giga` prints: coordinator and factories work with keys of their own.

use std::os::unix::fs::PermissionsExt;

use giga_testkit::nats::NatsServer;
use serde_json::Value;

use crate::bench::{Reader, Repo, event, shell_job, submit};
use crate::world::{Home, giga, run};

#[test]
fn a_factory_with_a_key_of_its_own_gets_its_offers() {
    let home = Home::new();
    let _repo = Repo::hello(&home);
    let keys = home.path().join("keys");
    let config = |factories: &[&str]| {
        let mut command = giga(home.path());
        run(command.args(["broker", "nats-config", "--keys"]).arg(&keys).args(factories))
    };
    let made = config(&["mac-1"]);
    assert_eq!(made.err.matches("made a key: ").count(), 2, "{made:#?}");
    let key = |name: &str| keys.join(name).display().to_string();
    for name in ["coordinator.nk", "factories/mac-1.nk"] {
        assert_eq!(std::fs::metadata(key(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        let seed = std::fs::read_to_string(key(name)).unwrap();
        assert!(!made.out.contains(seed.trim()), "what is printed holds no secret");
    }
    let again = config(&["mac-1"]);
    assert_eq!((again.out, again.err), (made.out.clone(), String::new()), "keys are made once");

    let settings = home.write("nats.conf", &made.out);
    let nats = NatsServer::start_with(&["-c", settings.to_str().unwrap()]);
    let refused = home.giga(&["serve", "--listen", "127.0.0.1:0", "--broker", &nats.url()]).fails(1);
    assert!(refused.contains("refuses the credentials"), "{refused}");
    let _server = home.start_with(&["--broker", &nats.url(), "--nats-key", &key("coordinator.nk")]);
    home.giga(&["flags", "set", "delivery", "broker"]).ok();
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
            &nats.url(),
            "--nats-key",
            &key("factories/mac-1.nk"),
        ],
    );
    factory.until(|line| line == "ready factory mac-1");
    let job = submit(&home, &shell_job("greet", "echo hello > greeting.txt", "grep hello greeting.txt"));
    event(&home, &job, "job.merged");
    let shown: Value =
        serde_json::from_str(&home.giga(&["factory", "show", "mac-1", "-o", "json"]).ok()).unwrap();
    assert_eq!(shown["actualDelivery"], "broker", "{shown}");

    // Without names, those that the coordinator knows.
    let fleet = config(&[]);
    assert_eq!(fleet.out, made.out, "{fleet:#?}");
    // A machine that made its key itself hands over the public half.
    let public = made.out.split("nkey: ").nth(2).unwrap().split_whitespace().next().unwrap();
    home.write("keys/factories/ci-7.pub", public);
    let with_public = config(&["ci-7"]);
    assert!(
        with_public.out.contains("\"giga-factory-ci-7\"") && with_public.out.contains(public),
        "{with_public:#?}"
    );
}

#[test]
fn a_key_that_is_none_is_named() {
    let home = Home::new();
    let file = home.write("key", "no seed");
    let error = home.giga(&["serve", "--broker", "nats://127.0.0.1:1", "--nats-key", "key"]).fails(2);
    assert!(error.contains("--nats-key") && error.contains(file.to_str().unwrap()), "{error}");
}
