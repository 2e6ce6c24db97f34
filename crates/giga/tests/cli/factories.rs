//! Real jobs through the real binary: coordinator, factories, git, and what becomes of them when somebody leaves.

use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use crate::bench::{Reader, Repo, event, factory, job, shell_job, submit, up};
use crate::world::{Home, Server, giga};

const FIX: &str = "echo working on it\necho hello > greeting.txt";
/// Commits half of the work and stops there, until somebody resumes it.
const IN_TWO_HALVES: &str = "\
if [ ! -e first.txt ]; then
  echo one > first.txt
  git add first.txt
  git -c user.name=Engine -c user.email=engine@example.invalid commit -q -m 'the first half'
  echo half done
  exec sleep 600
fi
echo two > second.txt";

fn half_done(home: &Home, id: &str) {
    Reader::spawn(home, &["job", "logs", id, "-f"]).until(|line| line == "half done");
}

#[test]
fn a_job_is_built_verified_shipped_and_merged() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let server = up(&home, &[]);
    let id = submit(&home, &shell_job("fix-greeting", FIX, "grep -q hello greeting.txt"));
    home.giga(&["job", "wait", &id]).ok();
    event(&home, &id, "job.merged");

    let merged = job(&home, &id);
    assert_eq!(merged["merge"]["state"], "merged", "{merged:#}");
    let commit = merged["merge"]["commit"].as_str().unwrap();
    assert_eq!(origin.git(&["rev-parse", "main"]).trim(), commit);
    assert_eq!(origin.git(&["show", "main:greeting.txt"]), "hello\n");

    let log = home.giga(&["job", "logs", &id]).ok();
    assert!(log.contains("working on it\n") && log.contains("[giga] verify: grep -q hello"), "{log}");
    assert_eq!(
        home.giga(&["job", "logs", &id, "-f"]).ok(),
        log,
        "it has ended, so there is nothing to wait for"
    );
    let document: Value = serde_json::from_str(&home.giga(&["job", "logs", &id, "-o", "json"]).ok()).unwrap();
    assert_eq!((&document["text"], &document["complete"]), (&Value::from(log), &Value::from(true)));

    let token = home.data().join("factory/local-1/factory.token");
    assert_eq!(std::fs::metadata(token).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(server.stop("INT").code(), Some(0));
}

#[test]
fn the_first_steps_lead_somewhere() {
    let home = Home::new();
    let mut command = giga(home.path());
    command.args(["up", "--listen", "127.0.0.1:0"]);
    let _server = Server::spawn(command, home.path());
    home.giga(&["job", "init", "hello.md"]).ok();
    home.giga(&["job", "submit", "hello.md"]).ok();
    let log = home.giga(&["job", "logs", "-f", "hello"]).ok();
    assert!(log.contains("\nHello from a factory.\n"), "{log}");
    home.giga(&["job", "wait", "hello", "--until", "testing"]).ok();
    home.giga(&["job", "ship", "hello"]).ok();
    home.giga(&["job", "wait", "hello"]).ok();
}

#[test]
fn gc_lists_unmerged_work_and_removes_it_when_its_time_is_over() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    let id = submit(&home, &shell_job("fix-greeting", FIX, "true").replace("ship: auto", "ship: manual"));
    home.giga(&["job", "wait", &id, "--until", "testing"]).ok();
    home.giga(&["job", "cancel", &id]).ok();
    let result = format!("giga/job/{id}/1");

    let branches = || origin.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/giga/job"]);
    let listed = home.giga(&["gc"]).ok();
    let kept = listed.lines().find(|line| line.contains(&result) && line.contains("origin branch")).unwrap();
    assert!(kept.contains("kept") && kept.contains(" ago "), "{listed}");
    assert!(kept.contains("not merged; goes in 13 days (the job is cancelled)"), "{listed}");
    assert_eq!(branches().trim(), result);

    home.giga(&["flags", "set", "branch_retention_hours", "0"]).ok();
    let planned: Value = serde_json::from_str(&home.giga(&["gc", "--dry-run", "-o", "json"]).ok()).unwrap();
    let item = planned["items"].as_array().unwrap().iter().find(|item| item["kind"] == "origin branch");
    let item = item.unwrap();
    assert_eq!((&item["outcome"], &item["jobId"]), (&Value::from("would remove"), &Value::from(id)));
    assert!(item["name"] == *result && item["endedSecondsAgo"].is_u64(), "{item:#}");
    assert_eq!(branches().trim(), result, "a dry run touches nothing");
    assert!(home.giga(&["gc"]).ok().contains("removed"));
    assert_eq!(branches(), "");
    let again: Value = serde_json::from_str(&home.giga(&["gc", "-o", "json"]).ok()).unwrap();
    let outcomes = again["items"].as_array().unwrap().iter().map(|item| item["outcome"].as_str().unwrap());
    assert!(!outcomes.collect::<HashSet<_>>().contains("removed"), "{again:#}");
    home.giga(&["gc", "--base", "/"]).fails(1);
}

#[test]
fn a_failed_verification_fails_the_job_and_the_log_says_why() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let before = origin.git(&["rev-parse", "main"]);
    let _server = up(&home, &[]);
    let id = submit(&home, &shell_job("wrong", FIX, "echo looked and found nothing; false"));
    home.giga(&["job", "wait", &id]).fails(1);
    let failed = job(&home, &id);
    assert_eq!(failed["stage"], "failed");
    assert_eq!(failed["failure"]["reason"], "verify_failed", "{failed:#}");
    let log = home.giga(&["job", "logs", &id]).ok();
    assert!(log.contains("looked and found nothing") && log.contains("verify failed"), "{log}");
    assert_eq!(origin.git(&["rev-parse", "main"]), before);
}

#[test]
fn a_leaving_factory_hands_its_work_to_another() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let _server = up(&home, &["--factories", "0"]);
    let first = factory(&home, "first");
    let id = submit(&home, &shell_job("in-two-halves", IN_TWO_HALVES, "test -e second.txt"));
    half_done(&home, &id);
    let second = factory(&home, "second");
    first.signal("TERM");
    assert_eq!(first.ended().code(), Some(0), "left in good order");

    home.giga(&["job", "wait", &id]).ok();
    event(&home, &id, "job.merged");
    let history = origin.git(&["log", "--format=%s", "main"]);
    assert!(history.contains("the first half"), "{history}");
    assert_eq!(origin.git(&["show", "main:second.txt"]), "two\n");
    assert_eq!(job(&home, &id)["lastFactoryId"], "second");
    assert_eq!(job(&home, &id)["attempts"], 0, "a hand-over costs no attempt");
    assert!(home.giga(&["job", "logs", &id, "--epoch", "1"]).ok().contains("half done"));
    second.signal("INT");
    assert_eq!(second.ended().code(), Some(0));
}

#[test]
fn a_second_signal_does_not_wait_for_a_stubborn_engine() {
    let home = Home::new();
    let _origin = Repo::hello(&home);
    let _server = up(&home, &["--factories", "0"]);
    let stubborn = factory(&home, "stubborn");
    let script = "trap '' TERM\necho half done\nwhile :; do sleep 1; done";
    let id = submit(&home, &shell_job("stubborn", script, "true"));
    half_done(&home, &id);
    // Two kinds, because two of one kind may arrive as one.
    stubborn.signal("TERM");
    stubborn.signal("INT");
    assert_eq!(stubborn.ended().code(), Some(130));
    let engine = format!("GIGA_JOB_ID={id}");
    // Killed before the factory went; the kernel may take a moment to clear it away.
    let gone = (0..10_000).any(|_| processes_with(&engine).is_empty());
    assert!(gone, "the engine goes with its factory");
}

#[test]
fn stopping_up_saves_what_runs() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let server = up(&home, &[]);
    let id = submit(&home, &shell_job("in-two-halves", IN_TWO_HALVES, "test -e second.txt"));
    half_done(&home, &id);
    assert_eq!(server.stop("TERM").code(), Some(0));

    let server = up(&home, &["--factories", "0"]);
    let waiting = job(&home, &id);
    assert_eq!(waiting["stage"], "queued", "{waiting:#}");
    assert!(waiting["checkpoint"]["commit"].is_string(), "{waiting:#}");
    assert_eq!(server.stop("TERM").code(), Some(0));

    let _server = up(&home, &["--factories", "2"]);
    event(&home, &id, "job.merged");
    assert!(origin.git(&["log", "--format=%s", "main"]).contains("the first half"));
}

/// Ids of the processes whose environment or command line has this in it.
fn processes_with(text: &str) -> Vec<u32> {
    let ids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let read = |file: &str| std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        [read("environ"), read("cmdline")].iter().any(|bytes| String::from_utf8_lossy(bytes).contains(text))
    })
    .collect()
}

#[test]
fn nothing_outlives_a_killed_up() {
    let home = Home::new();
    let _origin = Repo::hello(&home);
    let mut command = giga(home.path());
    command.args(["up", "--listen", "127.0.0.1:0", "--factories", "2", "--repos"]);
    command.arg(home.path().join("repos")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut ready = [0; 6];
    process.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    let id = submit(&home, &shell_job("in-two-halves", IN_TWO_HALVES, "true"));
    half_done(&home, &id);
    assert!(!processes_with(&format!("GIGA_JOB_ID={id}")).is_empty(), "the engine runs");

    process.kill().unwrap();
    process.wait().unwrap();
    // Each of its factories holds the other end, so that it ends with the last of them.
    let mut output = String::new();
    process.stderr.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(processes_with(&format!("GIGA_JOB_ID={id}")), [0; 0], "the engine is gone: {output}");
    assert_eq!(processes_with(home.path().to_str().unwrap()), [0; 0], "and so is all of it: {output}");
}

#[test]
fn a_crashed_factory_comes_back_by_itself() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    let id = submit(&home, &shell_job("in-two-halves", IN_TWO_HALVES, "test -e second.txt"));
    half_done(&home, &id);
    let base = home.data().join("factory/local-1");
    let of_factory = processes_with("--until-stdin-ends").into_iter().find(|process| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(base.canonicalize().unwrap().to_str().unwrap())
    });
    let killed = std::process::Command::new("kill").args(["-9", &of_factory.unwrap().to_string()]).status();
    assert!(killed.unwrap().success());

    event(&home, &id, "job.merged");
    assert!(origin.git(&["log", "--format=%s", "main"]).contains("the first half"));
}

#[test]
fn once_takes_one_job_and_leaves() {
    let home = Home::new();
    let _origin = Repo::hello(&home);
    let _server = up(&home, &["--factories", "0"]);
    let repos = home.path().join("repos");
    let once = |home: &Home| {
        let args = ["factory", "run", "--once", "--id", "one", "--repos", repos.to_str().unwrap()];
        home.giga(&args).ok()
    };
    assert_eq!(once(&home), "ready factory one\n", "nothing to do");
    let id = submit(&home, &shell_job("fix-greeting", FIX, "true"));
    let other = submit(&home, &shell_job("fix-greeting-too", FIX, "true"));
    once(&home);
    let stages = [&id, &other].map(|id| job(&home, id)["stage"].as_str().unwrap().to_owned());
    assert_eq!(stages.iter().filter(|stage| *stage == "queued").count(), 1, "{stages:?}");
}

#[test]
fn a_name_belongs_to_one_factory() {
    let home = Home::new();
    let _server = up(&home, &["--factories", "0"]);
    home.giga(&["factory", "run", "--once", "--id", "mine"]).ok();
    let elsewhere = home.path().join("elsewhere");
    let run = ["factory", "run", "--once", "--id", "mine", "--base", elsewhere.to_str().unwrap()];
    let refused = home.giga(&run).fails(1);
    assert!(refused.contains("enrolled already") && refused.contains("--take-over"), "{refused}");
    home.giga(&[&run[..], &["--take-over"]].concat()).ok();
}

#[test]
fn one_agent_per_folder() {
    let home = Home::new();
    let _server = up(&home, &["--factories", "0"]);
    std::fs::create_dir_all(home.path().join("repos")).unwrap();
    let first = factory(&home, "mine");
    let refused = home.giga(&["factory", "run", "--once", "--id", "mine"]).fails(1);
    assert!(refused.contains("another factory is running in") && refused.contains("--base DIR"), "{refused}");
    drop(first);
    home.giga(&["factory", "run", "--once", "--id", "mine"]).ok();
}

#[test]
fn a_token_that_an_admin_handed_over_is_enough() {
    let home = Home::new();
    let server = up(&home, &["--factories", "0"]);
    let token = home.giga(&["factory", "enroll", "elsewhere-1"]).ok();
    let elsewhere = Home::new();
    elsewhere.write("factory.token", &token);
    let run = ["factory", "run", "--once", "--id", "elsewhere-1", "--url", &server.url];
    elsewhere.giga(&[&run[..], &["--token-file", "factory.token"]].concat()).ok();
    // Kept: the next start needs no token.
    assert_eq!(elsewhere.giga(&run).ok(), "ready factory elsewhere-1\n");
}

#[test]
fn a_factory_needs_a_coordinator_and_a_token() {
    let home = Home::new();
    let refused = home.giga(&["factory", "run", "--url", "http://127.0.0.1:1"]).fails(1);
    assert!(refused.contains("not enrolled"), "{refused}");
    let refused = home.giga(&["factory", "run", "--repos", "nowhere"]).fails(2);
    assert!(refused.contains("flag --repos:") && refused.contains("is not a folder"), "{refused}");
    let refused = home.giga(&["up", "--seats", "0"]).fails(2);
    assert!(refused.contains("`0` is not a number from 1 to 256"), "{refused}");
    let refused = home.giga(&["factory", "run", "--git-allow", "ext::sh"]).fails(2);
    assert!(refused.contains("flag --git-allow:"), "{refused}");
    home.write("giga.toml", "[engines.claude]\nprogram = \"./evil\"\n");
    let refused = home.giga(&["factory", "run"]).fails(2);
    assert!(refused.contains("may not set `[engines]`"), "{refused}");
}

#[test]
fn the_doctor_says_what_is_missing() {
    let home = Home::new();
    let found: Value = serde_json::from_str(&home.giga(&["doctor", "-o", "json"]).ok()).unwrap();
    let state = |found: &Value, name: &str| {
        let all = found["findings"].as_array().unwrap();
        let one = all.iter().find(|finding| finding["name"].as_str().unwrap().starts_with(name));
        one.unwrap_or_else(|| panic!("no {name}: {found:#}"))["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&found, "git"), "ready");
    assert_eq!(state(&found, "shell"), "ready");
    assert_eq!(state(&found, "http://"), "missing", "nothing runs yet");
    let _server = home.start();
    let found: Value = serde_json::from_str(&home.giga(&["doctor", "-o", "json"]).ok()).unwrap();
    assert_eq!(state(&found, "http://"), "ready");

    // Nothing on the path: no git, so no job.
    let mut command = giga(home.path());
    let nothing = home.path().join("nothing");
    let bare = crate::world::run(command.args(["doctor"]).env("PATH", nothing)).fails(1);
    assert_eq!(bare, "", "all is said on stdout");
}
