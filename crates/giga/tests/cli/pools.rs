//! Factories that come with the work and leave after it, as real processes.

use std::process::Command;

use serde_json::Value;

use crate::bench::{Reader, Repo, event, shell_job, submit, up};
use crate::world::Home;

/// Nobody but the pool runs anything.
fn only_a_pool(home: &Home, more: &[&str]) -> crate::world::Server {
    let server = up(home, &["--factories", "0"]);
    let args = [&["pool", "set", "p", "--max", "2", "--idle", "1s"], more].concat();
    home.giga(&args).ok();
    server
}

/// Waits until this has happened to the pool, and returns the event: the first one past `after`.
fn pool_event(home: &Home, kind: &str, after: u64) -> Value {
    let mut feed = Reader::spawn(home, &["events", "-f", "--after", &after.to_string(), "-o", "jsonl"]);
    let line = feed.until(|line| serde_json::from_str::<Value>(line).unwrap()["type"] == kind);
    serde_json::from_str(&line).unwrap()
}

fn position(event: &Value) -> u64 {
    event["pos"].as_u64().unwrap()
}

/// The process of a member, by the handle that its driver gave.
fn process(home: &Home, factory: &str) -> String {
    let pool: Value = serde_json::from_str(&home.giga(&["pool", "show", "p", "-o", "json"]).ok()).unwrap();
    let members = pool["members"].as_array().unwrap();
    let member = members.iter().find(|member| member["factoryId"] == factory).expect("it is a member");
    let handle = member["handle"].as_str().expect("it was started");
    handle.rsplit(':').nth(1).unwrap().to_owned()
}

fn is_running(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|line| line.contains("--pool"))
}

#[test]
fn from_nothing_to_shipped_and_back_to_nothing() {
    let home = Home::new();
    let repo = Repo::hello(&home);
    let _server = only_a_pool(&home, &[]);
    let id =
        submit(&home, &shell_job("fix", "sed -i s/helo/hello/ greeting.txt", "grep -q hello greeting.txt"));
    let joined = pool_event(&home, "pool.joined", 0);
    let factory = joined["data"]["factoryId"].as_str().unwrap().to_owned();
    let pid = process(&home, &factory);
    event(&home, &id, "job.shipped");
    assert_eq!(repo.git(&["show", "main:greeting.txt"]), "hello\n");
    let left = pool_event(&home, "pool.left", position(&joined));
    assert_eq!(left["data"]["factoryId"], factory.as_str());
    assert!(!is_running(&pid), "its process is gone");
    assert_eq!(home.giga(&["factory", "list", "-o", "name"]).ok(), "");
    let kept = std::fs::read_dir(home.data().join("pools")).unwrap().count();
    assert_eq!(kept, 0, "and so is its folder");
    let tokens = home.giga(&["token", "list"]).ok();
    assert!(!tokens.contains(&factory), "{tokens}");
}

#[test]
fn a_factory_that_is_killed_is_replaced_and_its_work_is_done() {
    let home = Home::new();
    Repo::hello(&home);
    let _server = only_a_pool(&home, &[]);
    home.giga(&["flags", "set", "lease_ms", "3000"]).ok();
    home.giga(&["flags", "set", "heartbeat_interval_ms", "1000"]).ok();
    let gate = home.path().join("gate");
    let script = format!("until [ -e {} ]; do sleep 0.1; done; echo done > done.txt", gate.display());
    let id = submit(&home, &shell_job("wait", &script, "test -e done.txt"));
    event(&home, &id, "job.started");
    let first = pool_event(&home, "pool.joined", 0);
    let pid = process(&home, first["data"]["factoryId"].as_str().unwrap());
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    let second = pool_event(&home, "pool.joined", position(&first));
    assert_ne!(second["data"]["factoryId"], first["data"]["factoryId"]);
    std::fs::write(&gate, "").unwrap();
    event(&home, &id, "job.shipped");
    let runs: Value = serde_json::from_str(&home.giga(&["job", "show", &id, "-o", "json"]).ok()).unwrap();
    assert_eq!(runs["stage"], "shipped");
}

#[test]
fn a_coordinator_that_is_killed_finds_its_factories_again() {
    let home = Home::new();
    Repo::hello(&home);
    let server = only_a_pool(&home, &["--coordinator-url", "http://127.0.0.1:1"]);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    home.giga(&["pool", "set", "p", "--coordinator-url", &server.url]).ok();
    let gate = home.path().join("gate");
    let script = format!("until [ -e {} ]; do sleep 0.1; done; echo done > done.txt", gate.display());
    let id = submit(&home, &shell_job("wait", &script, "test -e done.txt"));
    event(&home, &id, "job.started");
    let joined = pool_event(&home, "pool.joined", 0);
    let pid = process(&home, joined["data"]["factoryId"].as_str().unwrap());
    server.kill9();
    assert!(is_running(&pid), "its work goes on");
    let mut again = crate::world::giga(home.path());
    again.args(["up", "--factories", "0", "--listen", &format!("127.0.0.1:{port}"), "--repos"]);
    again.arg(home.path().join("repos")).arg("--sandbox-write").arg(home.path());
    let _server = crate::world::Server::spawn(again, home.path());
    std::fs::write(&gate, "").unwrap();
    event(&home, &id, "job.shipped");
    let left = pool_event(&home, "pool.left", position(&joined));
    assert_eq!(left["data"]["factoryId"], joined["data"]["factoryId"], "the same one, and no other");
    assert!(!is_running(&pid));
    let starts: Value = serde_json::from_str(&home.giga(&["pool", "show", "p", "-o", "json"]).ok()).unwrap();
    assert_eq!(starts["starts"], 1);
}

#[test]
fn nonsense_is_refused_with_the_field() {
    let home = Home::new();
    let _server = home.start();
    let refused = home.giga(&["pool", "set", "p", "--min", "3", "--max", "1"]).fails(1);
    assert!(refused.contains("min: at most `max`, which is 1"), "{refused}");
    let refused = home.giga(&["pool", "set", "p", "--idle", "soon"]).fails(2);
    assert!(refused.contains("--idle: `soon` is not a time"), "{refused}");
    let refused = home.giga(&["pool", "set", "p", "--driver", "command"]).fails(1);
    assert!(refused.contains("command: the driver `command` needs the program"), "{refused}");
    home.giga(&["pool", "show", "p"]).fails(3);
    let none = home.giga(&["pool", "list"]);
    assert!(none.err.contains("giga pool set local --max 4"), "{none:?}");
}
