//! Following events across a coordinator that goes away and comes back.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::world::{Home, Server, giga, manifest};

#[test]
fn a_follower_misses_nothing_while_the_coordinator_restarts() {
    let home = Home::new();
    let server = home.start();
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    home.write("job.md", manifest("followed", ""));
    home.giga(&["job", "submit", "job.md"]).ok();

    let mut command = giga(home.path());
    command
        .args(["job", "events", "followed", "-f", "-o", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut following = command.spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut talk = BufReader::new(following.stderr.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["seq"], 1);

    server.kill9();
    assert!(talk.next().unwrap().unwrap().starts_with("connection lost"));
    let mut command = giga(home.path());
    command.args(["serve", "--listen", &address]);
    let _server = Server::spawn(command, home.path());
    home.giga(&["job", "cancel", "followed"]).ok();
    assert_eq!(talk.next().unwrap().unwrap(), "reconnected; nothing was missed");
    let last = next();
    assert_eq!((last["seq"].as_u64(), last["to"].as_str()), (Some(2), Some("cancelled")));
    assert!(following.wait().unwrap().success(), "the job has ended, so has the stream");
}

#[test]
fn the_fleets_events_start_now_or_where_they_are_told() {
    let home = Home::new();
    let _server = home.start();
    home.giga(&["factory", "enroll", "before"]).ok();
    let all = home.giga(&["events", "--after", "0", "-o", "jsonl"]).ok();
    assert!(all.contains("factory.enrolled"), "{all}");

    let mut command = giga(home.path());
    command.args(["events", "-f", "--after", "0", "-o", "name"]).stdout(Stdio::piped());
    let mut following = command.spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "factory.enrolled"));
    home.giga(&["factory", "drain", "before"]).ok();
    assert!(lines.any(|line| line == "factory.draining"));
    following.kill().unwrap();
    following.wait().unwrap();
}
