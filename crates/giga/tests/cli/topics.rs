//! `giga topic …` against a real coordinator.

use serde_json::{Value, json};

use crate::mask::mask;
use crate::world::{Home, giga, run};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_topic_is_fed_watched_paused_and_resumed() {
    let home = Home::new();
    let _server = home.start();
    let golden = |name: &str, args: &[&str]| {
        let ran = run(giga(home.path()).args(args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let both = format!("{}---\n{}", ran.out, ran.err);
        insta::assert_snapshot!(format!("topic__{name}"), mask(&both, home.path()));
    };
    golden("list_empty", &["topic", "list"]);
    let id = home
        .giga(&["topic", "enqueue", "mail", r#"{"to": "ana"}"#, "--key", "k1", "--priority", "high"])
        .ok();
    let id = id.trim();
    let again = run(giga(home.path()).args(["topic", "enqueue", "mail", r#"{"to": "ana"}"#, "--key", "k1"]));
    assert_eq!((again.out.trim(), again.err.contains("used before")), (id, true), "{again:?}");
    home.giga(&["topic", "enqueue", "mail", "--run-at", "2999-01-01T00:00:00Z"]).ok();
    golden("pause", &["topic", "pause", "mail"]);
    golden("list", &["topic", "list"]);
    golden("show", &["topic", "show", "mail"]);
    golden("job", &["topic", "jobs", "mail", id]);
    golden("jobs", &["topic", "jobs", "mail", "--state", "scheduled"]);
    golden("dead", &["topic", "dead", "mail"]);
    golden("retry", &["topic", "retry", "mail"]);
    home.giga(&["topic", "resume", "mail"]).ok();
    home.giga(&["topic", "pause", "--all"]).ok();
    let listed = run(giga(home.path()).args(["topic", "list"]));
    assert!(listed.err.contains("all topics are paused by token"), "{listed:?}");
    home.giga(&["topic", "resume", "--all"]).ok();
    let topic = parsed(&home.giga(&["topic", "show", "mail", "-o", "json"]).ok());
    assert_eq!((&topic["byState"]["ready"], topic.get("paused")), (&json!(1), None));
    assert_eq!(home.giga(&["topic", "list", "-o", "name"]).ok(), "mail\n");
    assert_eq!(home.giga(&["topic", "jobs", "mail", "-o", "name"]).ok().trim(), id);
}

#[test]
fn a_payload_comes_from_stdin_and_reaches_the_store_as_it_is() {
    let home = Home::new();
    let _server = home.start();
    home.write("letter.json", "{\"n\": 12345678901234567890123}\n");
    let file = std::fs::File::open(home.path().join("letter.json")).unwrap();
    let made = run(giga(home.path()).args(["topic", "enqueue", "mail", "-"]).stdin(file)).ok();
    let shown = home.giga(&["topic", "jobs", "mail", made.trim()]).ok();
    assert!(shown.contains(r#"{"n": 12345678901234567890123}"#), "{shown}");
}

#[test]
fn what_is_wrong_is_said_with_the_usual_codes() {
    let home = Home::new();
    let _server = home.start();
    let message = home.giga(&["topic", "enqueue", "mail", "{to: ana}"]).fails(2);
    assert!(message.contains("the payload is not JSON") && message.contains("quote plain text"), "{message}");
    home.giga(&["topic", "pause"]).fails(2);
    home.giga(&["topic", "pause", "mail", "--all"]).fails(2);
    let message = home.giga(&["topic", "show", "nothing"]).fails(3);
    assert!(
        message.contains("there is no topic `nothing`") && message.contains("giga topic list"),
        "{message}"
    );
    home.giga(&["topic", "jobs", "mail", "01J9ZK3V5N8Q4W2E6R7T1Y0ABC"]).fails(3);
    home.giga(&["topic", "enqueue", "mail", "1", "--key", "k"]).ok();
    let message = home.giga(&["topic", "enqueue", "mail", "2", "--key", "k"]).fails(5);
    assert!(message.contains("idempotency key `k`"), "{message}");
    let worker = home.giga(&["token", "create", "--role", "worker"]).ok();
    let listed = run(giga(home.path()).args(["topic", "list"]).env("GIGA_TOKEN", worker.trim()));
    assert_eq!(listed.code, Some(4), "a worker reads nothing: {listed:?}");
}
