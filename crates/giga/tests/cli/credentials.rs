//! Tokens with an end, one admin per folder, keys that are replaced: as people meet them.

use std::time::{Duration, Instant};

use giga_testkit::postgres::TestDatabase;
use serde_json::Value;

use crate::world::{Home, Server, giga, run};

const PATIENCE: Duration = Duration::from_mins(1);

fn tokens(home: &Home) -> Vec<Value> {
    let listed = home.giga(&["token", "list", "-o", "jsonl"]).ok();
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_token_ends_and_is_renewed() {
    let home = Home::new();
    let _server = home.start();
    let created = home.giga(&["token", "create", "--role", "viewer", "--label", "short", "--expires", "1s"]);
    assert!(
        created.err.contains("works until") && created.err.contains("giga token renew tok-"),
        "{created:?}"
    );
    let secret = created.ok().trim().to_owned();
    let list = || run(giga(home.path()).args(["job", "list"]).env("GIGA_TOKEN", &secret));
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        let asked = list();
        if asked.code != Some(0) {
            break asked.fails(4);
        }
        assert!(Instant::now() < deadline, "it never ended");
    };
    let id = tokens(&home).into_iter().find(|token| token["label"] == "short").unwrap()["id"].clone();
    let id = id.as_str().unwrap();
    assert!(refused.contains("the token expired at"), "{refused}");
    assert!(refused.contains(&format!("giga token renew {id}")), "{refused}");
    assert!(home.giga(&["token", "list"]).ok().contains("expired"));

    let wrong = home.giga(&["token", "renew", id, "--expires", "5 parsecs"]).fails(1);
    assert!(wrong.contains("`5 parsecs` is not a lifetime") && wrong.contains("90d"), "{wrong}");
    list().fails(4);
    home.giga(&["token", "renew", "tok-0000000000000000"]).fails(3);
    assert!(home.giga(&["token", "renew", id]).ok().contains("works until"));
    list().ok();
    assert!(home.giga(&["token", "renew", id, "--expires", "never"]).ok().contains("never expires"));
    home.giga(&["token", "revoke", id]).ok();
    let gone = home.giga(&["token", "renew", id]).fails(1);
    assert!(gone.contains("was revoked"), "{gone}");
    list().fails(4);
}

#[test]
fn a_default_is_shown() {
    let home = Home::new();
    let _server = home.start();
    let created = home.giga(&["token", "create", "--role", "viewer", "--label", "usual", "-o", "json"]).ok();
    let created: Value = serde_json::from_str(&created).unwrap();
    assert!(created["expiresAt"].is_string(), "{created}");
    let never = home.giga(&["token", "create", "--role", "viewer", "--expires", "never"]);
    assert!(never.err.contains("never expires"), "{never:?}");
    home.giga(&["factory", "enroll", "mac"]).ok();
    let listed = home.giga(&["token", "list"]).ok();
    let row = |label: &str| listed.lines().find(|line| line.contains(label)).unwrap().to_owned();
    assert!(row("usual").contains("in 89d") || row("usual").contains("in 90d"), "{listed}");
    assert!(row("factory mac").contains("in 29d") || row("factory mac").contains("in 30d"), "{listed}");
    assert!(row("local admin of").contains("of this machine"), "{listed}");
    assert_eq!(listed.matches("of this machine").count(), 1, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_emptied_has_one_admin_all_the_same() {
    let home = Home::new();
    let database = TestDatabase::new().await;
    let start = || {
        let mut command = giga(home.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", database.url()]);
        // The folder is not the one that has the logs: without those it would be another place for them.
        command.arg("--artifacts").arg(home.path().join("bytes"));
        Server::spawn(command, home.path())
    };
    for _ in 0..3 {
        let server = start();
        let admins = tokens(&home);
        let live = admins.iter().filter(|token| token["revokedAt"].is_null()).count();
        assert_eq!(live, 1, "{admins:#?}");
        server.stop("TERM");
        std::fs::remove_dir_all(home.data()).unwrap();
    }
    let server = start();
    let before = tokens(&home).len();
    server.stop("TERM");
    let _server = start();
    assert_eq!(tokens(&home).len(), before, "a folder that is not emptied keeps its own");
}

#[test]
fn keys_are_rotated_by_hand() {
    let home = Home::new();
    let _server = home.start();
    assert_eq!(home.giga(&["key", "rotate"]).ok().trim(), "rotated links, job-tokens, sign-ins");
    assert_eq!(home.giga(&["key", "rotate"]).ok().trim(), "rotated links, job-tokens, sign-ins");
    let events = home.giga(&["events", "--after", "0", "-o", "name"]).ok();
    assert!(events.contains("key.rotated"), "{events}");
    let viewer = home.giga(&["token", "create", "--role", "operator"]).ok();
    run(giga(home.path()).args(["key", "rotate"]).env("GIGA_TOKEN", viewer.trim())).fails(4);
}
