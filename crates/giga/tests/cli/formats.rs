//! `-o`: tables for people, JSON as the API said it, ids for pipes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::mask::mask;
use crate::world::{Holder, Home, giga, manifest, run};

fn three_jobs(home: &Home) {
    for (name, more) in [("first", ""), ("second", "priority: high\nrepo: hello\n"), ("third", "")] {
        home.write("job.md", manifest(name, more));
        home.giga(&["job", "submit", "job.md"]).ok();
    }
    home.giga(&["job", "cancel", "third"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_what_the_api_said() {
    let home = Home::new();
    let server = home.start();
    three_jobs(&home);
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let raw = |path: &'static str| {
        let request = reqwest::Client::new().get(format!("{}/api/fleet/{path}", server.url));
        let request = request.bearer_auth(token.trim());
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let printed = |args: &[&str]| {
        let mut args = args.to_vec();
        args.extend(["-o", "json"]);
        serde_json::from_str::<Value>(&home.giga(&args).ok()).unwrap()
    };
    assert_eq!(printed(&["job", "list"]), raw("jobs").await);
    assert_eq!(printed(&["flags", "list"]), raw("flags").await);
    assert_eq!(printed(&["factory", "list"]), raw("factories").await);
    assert_eq!(printed(&["token", "list"]), raw("tokens").await);
}

#[test]
fn lines_and_names_are_one_per_job() {
    let home = Home::new();
    let _server = home.start();
    three_jobs(&home);
    let lines = home.giga(&["job", "list", "-o", "jsonl"]).ok();
    let ids: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 3);
    let names = home.giga(&["job", "list", "-o", "name"]).ok();
    assert_eq!(names.lines().collect::<Vec<_>>(), ids);
    assert_eq!(run(giga(home.path()).args(["job", "list"]).env("GIGA_OUTPUT", "name")).ok(), names);
}

#[test]
fn pages_become_one_list() {
    let home = Home::new();
    let _server = home.start();
    three_jobs(&home);
    let count = |args: &[&str]| home.giga(args).ok().lines().count();
    assert_eq!(count(&["job", "list", "--limit", "2", "-o", "name"]), 2);
    assert_eq!(count(&["job", "list", "--all", "-o", "name"]), 3);
    let limited = run(giga(home.path()).args(["job", "list", "--limit", "2"]));
    assert!(limited.err.contains("see more with --limit or --all"), "{limited:?}");
    assert_eq!(count(&["job", "list", "--stage", "queued,blocked", "-o", "name"]), 2);
    assert_eq!(count(&["job", "list", "--priority", "high", "-o", "name"]), 1);
    assert_eq!(count(&["job", "list", "--repo", "hello", "-o", "name"]), 1);
    assert_eq!(count(&["job", "list", "--name", "fir", "-o", "name"]), 1);
    let nothing = run(giga(home.path()).args(["job", "list", "--stage", "shipped"]));
    assert_eq!((nothing.out.as_str(), nothing.err.as_str()), ("", "no jobs\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables() {
    let home = Home::new();
    let server = home.start();
    Holder::enroll(&home, &server, "mac-1", &["os:macos", "engine:shell"]).await;
    home.giga(&["factory", "enroll", "ci-7", "--products", "demo", "--capabilities", "os:linux"]).ok();
    three_jobs(&home);
    let golden = |name: &str, args: &[&str]| {
        let ran = run(giga(home.path()).args(args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let both = format!("{}---\n{}", ran.out, ran.err);
        insta::assert_snapshot!(format!("table__{name}"), mask(&both, home.path()));
    };
    golden("job_list", &["job", "list"]);
    golden("job_show", &["job", "show", "second"]);
    golden("factory_list", &["factory", "list"]);
    golden("factory_show", &["factory", "show", "mac-1"]);
    golden("factory_drain", &["factory", "drain", "mac-1"]);
    golden("factory_drain_undo", &["factory", "drain", "mac-1", "--undo"]);
    golden("factory_rotate", &["factory", "rotate-token", "mac-1"]);
    golden("factory_revoke", &["factory", "revoke-token", "mac-1"]);
    golden("factory_prune", &["factory", "prune", "--idle", "24h"]);
    golden("factory_deregister", &["factory", "deregister", "ci-7"]);
    golden("token_create", &["token", "create", "--role", "viewer", "--label", "eyes"]);
    golden("flags_set", &["flags", "set", "lease_ms", "30000"]);
    golden("flags_list", &["flags", "list"]);
    golden("metrics", &["metrics"]);
    golden("job_events", &["job", "events", "third"]);
    golden("version", &["version"]);
}

/// The same command with a terminal for its streams, which `script` makes.
fn on_a_terminal(command: &Command) -> Command {
    let line = std::iter::once(command.get_program()).chain(command.get_args());
    let line = line.map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
    script.env_clear().env("TERM", "xterm").current_dir(command.get_current_dir().unwrap());
    script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let home = Home::new();
    let _server = home.start();
    three_jobs(&home);
    let escapes = |text: &str| text.contains('\u{1b}');
    let list = || {
        let mut command = giga(home.path());
        command.args(["job", "list"]);
        command
    };
    assert!(!escapes(&run(&mut list()).ok()), "a pipe is no terminal");
    assert!(escapes(&run(list().env("CLICOLOR_FORCE", "1")).ok()), "unless it is said to be one");
    assert!(escapes(&run(&mut on_a_terminal(&list())).ok()));
    assert!(!escapes(&run(on_a_terminal(&list()).env("NO_COLOR", "1")).ok()));
    let mut refused = giga(home.path());
    refused.args(["job", "show", "none"]);
    assert!(run(&mut refused).err.starts_with("error: there is no job"));
    assert!(escapes(&run(&mut on_a_terminal(&refused)).out));
    assert!(run(on_a_terminal(&refused).env("NO_COLOR", "1")).out.starts_with("error: there is no job"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let home = Home::new();
    let _server = home.start();
    home.write("job.md", manifest("many", "verify: [\"a long command\"]\n"));
    for _ in 0..20 {
        home.giga(&["job", "submit", "job.md"]).ok();
    }
    let mut command = giga(home.path());
    command.args(["job", "list", "-o", "jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut listing = command.spawn().unwrap();
    let mut reader = BufReader::with_capacity(16, listing.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let ended = listing.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_body_cannot_steer_the_terminal() {
    let home = Home::new();
    let _server = home.start();
    home.write("job.md", "---\nname: evil\n---\n\u{1b}]0;owned\u{7}\u{1b}[2Jhello\n");
    home.giga(&["job", "submit", "job.md"]).ok();
    let shown = run(giga(home.path()).args(["job", "show", "evil"]).env("CLICOLOR_FORCE", "1")).ok();
    assert!(
        shown.contains("hello") && !shown.contains("\u{1b}]") && !shown.contains("\u{1b}[2J"),
        "{shown:?}"
    );
}
