//! What people are told on the way from a manifest to its merge, by the real binary with real factories and git.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::bench::{Reader, Repo, event, factory, job, shell_job, submit, up};
use crate::world::{Holder, Home, giga, manifest, run};

const FIX: &str = "echo hello > greeting.txt";

/// The same job, but somebody has to say when it ships.
fn by_hand(name: &str, script: &str) -> String {
    shell_job(name, script, "true").replace("ship: auto\n", "")
}

/// A command whose stderr is read while it runs; killed when dropped.
struct Talking(Child);

impl Talking {
    fn spawn(home: &Home, args: &[&str]) -> Self {
        let mut command = giga(home.path());
        Self(command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    #[track_caller]
    fn until(&mut self, part: &str) {
        let mut lines = BufReader::new(self.0.stderr.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(part)), "it ended without saying {part:?}");
    }

    fn interrupt(&self) {
        assert!(Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().unwrap().success());
    }

    /// How it ended, and what it said since the last look.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.0.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_where_somebody_is_needed() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    home.write("fix.md", manifest("fix", "engine: shell\nscript: 'true'\nreview: {quorum: 1}\n"));
    let submitted = home.giga(&["job", "submit", "fix.md"]);
    let next = "it runs when a factory is free; then it waits for a review (giga review fix), and is done on your word \
                (giga job ship fix)\n";
    assert_eq!(submitted.err, next);
    let (id, epoch) = mac.take("r1").await;
    mac.report(&id, epoch).await;

    let review = home.giga(&["job", "wait", "fix"]);
    assert!(review.out.contains("review"), "{review:?}");
    assert_eq!(review.fails(8), "fix waits for a review (0 of 1 approval, from anyone): giga review fix\n");
    home.giga(&["job", "wait", "fix", "--until", "review"]).ok();
    home.giga(&["job", "wait", "fix", "--until", "building"]).ok();
    let for_scripts = home.giga(&["job", "wait", "fix", "-o", "json"]);
    assert_eq!((for_scripts.err.as_str(), for_scripts.code), ("", Some(8)), "{for_scripts:?}");

    let mut patient = Talking::spawn(&home, &["job", "wait", "fix", "--keep-waiting"]);
    patient.until("fix waits for a review");
    home.giga(&["review", "fix", "--approve"]).ok();
    patient.until("fix is ready and waits for you: giga job ship fix");
    let ready = home.giga(&["job", "wait", "fix"]);
    assert_eq!(ready.fails(8), "fix is ready and waits for you: giga job ship fix\n");
    home.giga(&["job", "ship", "fix"]).ok();
    assert_eq!(patient.ended(), (Some(0), String::new()));

    for quiet in ["json", "jsonl", "name"] {
        assert_eq!(home.giga(&["job", "submit", "fix.md", "-o", quiet]).err, "", "{quiet}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_against_it_needs_words() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    home.write("fix.md", manifest("fix", "engine: shell\nscript: 'true'\nreview: {quorum: 1}\n"));
    home.giga(&["job", "submit", "fix.md"]).ok();
    let (id, epoch) = mac.take("r1").await;
    mac.report(&id, epoch).await;
    for verdict in ["--request-changes", "--reject"] {
        for words in [&[][..], &["-m", "  "]] {
            let refused = home.giga(&[&["review", "fix", verdict][..], words].concat()).fails(2);
            assert!(refused.contains(verdict) && refused.contains("-m TEXT"), "{refused}");
        }
    }
    assert_eq!(job(&home, &id)["stage"], "review", "nothing changed");
    home.giga(&["review", "fix", "--request-changes", "-m", "the test is missing"]).ok();
    assert_eq!(job(&home, &id)["stage"], "queued");
}

#[test]
fn shipping_is_followed_to_the_commit() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    let id = submit(&home, &by_hand("fix", FIX));
    let waited = home.giga(&["job", "wait", "fix"]);
    assert_eq!(waited.fails(8), "fix is ready and waits for you: giga job ship fix\n");
    let shipped = home.giga(&["job", "ship", "fix"]).ok();
    let commit = origin.git(&["rev-parse", "main"]);
    assert_eq!(shipped, format!("{id}  shipped  fix  {} in main\n", commit.trim()));
    assert_eq!(origin.git(&["show", "main:greeting.txt"]), "hello\n");
    let again = home.giga(&["job", "ship", "fix"]).ok();
    assert_eq!(again, shipped, "it is there, and is said to be");
}

/// Commits to main as somebody else does, who wrote the same line.
fn change_main(home: &Home, origin: &Repo, text: &str) {
    let seed = home.path().join("seed");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&seed).args(["-c", "user.name=Ana", "-c", "user.email=ana@example.invalid"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(git.args(args).status().unwrap().success(), "git {args:?}");
    };
    std::fs::write(seed.join("greeting.txt"), text).unwrap();
    git(&["commit", "-q", "-a", "-m", "by hand"]);
    git(&["push", "-q", origin.path().to_str().unwrap(), "HEAD:main"]);
}

#[test]
fn what_is_sent_back_says_why_and_goes_on() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    let id = submit(&home, &by_hand("fix", FIX));
    home.giga(&["job", "wait", "fix"]).fails(8);
    change_main(&home, &origin, "good morning\n");
    let back = home.giga(&["job", "ship", "fix"]).fails(1);
    assert!(back.starts_with("not merged, and sent back to be done again: "), "{back}");
    assert!(back.contains("greeting.txt") && back.ends_with("follow it with: giga job wait fix\n"), "{back}");
    home.giga(&["job", "wait", "fix"]).fails(8);
    assert_eq!(job(&home, &id)["leaseEpoch"], 2, "it ran again");
    home.giga(&["job", "ship", "fix"]).ok();
    assert_eq!(origin.git(&["show", "main:greeting.txt"]), "hello\n");
}

/// A hook of the origin that is asked before main moves.
fn guard_main(origin: &Repo, script: &str) {
    let hook = origin.path().join("hooks/pre-receive");
    let text = format!("#!/bin/sh\ngrep -q refs/heads/main || exit 0\n{script}\n");
    std::fs::write(&hook, text).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_remote_that_refuses_is_quoted() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let before = origin.git(&["rev-parse", "main"]);
    let _server = up(&home, &[]);
    submit(&home, &by_hand("fix", FIX));
    home.giga(&["job", "wait", "fix"]).fails(8);
    guard_main(&origin, "echo 'main is frozen until Monday' >&2; exit 1");
    let refused = home.giga(&["job", "ship", "fix"]);
    assert!(refused.out.contains("failed"), "{refused:?}");
    let said = refused.fails(1);
    assert!(said.starts_with("not merged: merge refused: "), "{said}");
    assert!(said.contains("main is frozen until Monday"), "{said}");
    assert!(said.ends_with("what can be done: giga job explain fix\n"), "{said}");
    assert_eq!(origin.git(&["rev-parse", "main"]), before);
    // The way on that is named there.
    std::fs::remove_file(origin.path().join("hooks/pre-receive")).unwrap();
    home.giga(&["job", "ship", "fix"]).ok();
    assert_eq!(origin.git(&["show", "main:greeting.txt"]), "hello\n");
}

#[test]
fn whoever_stops_following_is_told_that_it_goes_on() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    let id = submit(&home, &by_hand("fix", FIX));
    home.giga(&["job", "wait", "fix"]).fails(8);
    let gate = home.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    guard_main(&origin, &format!("read _ < {}", gate.display()));
    let following = Talking::spawn(&home, &["job", "ship", "fix"]);
    event(&home, &id, "job.merge_checked");
    following.interrupt();
    let (code, said) = following.ended();
    assert_eq!(code, Some(130));
    assert_eq!(said, "it is still shipping; follow it with: giga job wait fix\n");
    assert_eq!(job(&home, &id)["stage"], "shipping");
    std::fs::write(&gate, "go\n").unwrap();
    home.giga(&["job", "wait", "fix"]).ok();
    assert_eq!(origin.git(&["show", "main:greeting.txt"]), "hello\n");
    let detached = home.giga(&["job", "ship", "fix", "--detach"]).ok();
    assert!(detached.contains("shipped"), "{detached}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_promises_no_place_where_the_job_cannot_run() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["os:linux", "engine:shell"]).await;
    let planned = |more: &str| {
        home.write("job.md", manifest("x", more));
        home.giga(&["job", "plan", "job.md"]).ok()
    };
    let submitted = |more: &str| {
        home.write("job.md", manifest("x", more));
        let submitted = home.giga(&["job", "submit", "job.md"]);
        assert!(submitted.err.contains("warning: "), "{submitted:?}");
        home.giga(&["job", "explain", submitted.out.split_whitespace().next().unwrap()]).ok()
    };
    for prompt in ["", "engine: any\n"] {
        for told in [planned(prompt), submitted(prompt)] {
            assert!(told.contains("no factory has an engine that reads prompts"), "{told}");
            assert!(!told.contains("ould be placed"), "{told}");
        }
    }
    let (_, nothing) = mac.post("claim", json!({"factoryId": "mac-1", "requestId": "r"})).await;
    assert!(nothing.is_null(), "nor does it get one: {nothing}");

    home.write("job.md", manifest("x", "engine: shell\n"));
    for command in ["plan", "submit"] {
        let refused = home.giga(&["job", command, "job.md"]).fails(1);
        assert!(refused.contains("job.md:4: script is missing"), "{refused}");
    }

    let script = "engine: shell\nscript: 'true'\n";
    assert!(planned(script).contains("Would be placed on mac-1 now"));
    let beat = |more: serde_json::Value| {
        let mut beat = json!({"factoryId": "mac-1", "capabilities": ["engine:shell"], "seatLimit": 4});
        beat.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mac.post("factories/heartbeat", beat)
    };
    let (status, answer) = beat(json!({"canClone": true, "clones": ["https://example.org/team"]})).await;
    assert_eq!(status, 200, "{answer}");
    for (repo, placed) in [
        ("https://example.org/team/app.git", true),
        ("https://Example.org/team/app", true),
        ("https://example.org/teams/app.git", false),
        ("git@example.org:team/app.git", false),
        ("app", false),
    ] {
        let told = planned(&format!("{script}repo: {repo}\n"));
        assert_eq!(told.contains("Would be placed on mac-1"), placed, "{repo}: {told}");
        assert_eq!(told.contains("or may clone it"), !placed, "{repo}: {told}");
    }
    let known = json!({"repos": [{"name": "app", "url": "https://example.org/team/app.git"}]});
    assert_eq!(beat(known).await.0, 200);
    for (repo, placed) in
        [("app", true), ("https://example.org/team/app.git", true), ("https://evil.example/app.git", false)]
    {
        let told = planned(&format!("{script}repo: {repo}\n"));
        assert_eq!(told.contains("Would be placed on mac-1"), placed, "{repo}: {told}");
    }
}

/// What a real factory says of itself is what the plan goes by.
#[test]
fn a_factory_says_what_it_may_clone() {
    let home = Home::new();
    let _origin = Repo::hello(&home);
    let _server = up(&home, &["--factories", "0"]);
    let repos = home.path().join("repos");
    let args = ["factory", "run", "--id", "mine", "--repos", repos.to_str().unwrap()];
    let mut factory = Reader::spawn(&home, &[&args[..], &["--git-allow", "git@example.org:team"]].concat());
    factory.until(|line| line == "ready factory mine");
    let planned = |repo: &str| {
        let more = format!("engine: shell\nscript: 'true'\nrepo: {repo}\n");
        home.write("job.md", manifest("x", &more));
        home.giga(&["job", "plan", "job.md"]).ok().contains("Would be placed on mine")
    };
    assert!(planned("hello") && planned("git@example.org:team/app.git"));
    assert!(planned("ssh://git@example.org/team/app"), "another spelling of the same place");
    assert!(!planned("https://example.org/team/app") && !planned("goodbye"));
}

#[test]
fn a_failure_says_how_it_ended_and_when_it_is_tried_again() {
    let home = Home::new();
    let _origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    let id = submit(&home, &shell_job("plain", "echo boom >&2; exit 3", "true"));
    home.giga(&["job", "wait", &id]).fails(1);
    let told = home.giga(&["job", "explain", &id]).ok();
    assert!(told.contains("Failed: exited with code 3; waiting for an operator"), "{told}");
    assert!(told.contains("not retried, because the manifest does not say `retry: {on: [crash]}`"), "{told}");
    let log = home.giga(&["job", "logs", &id]).ok();
    assert!(log.contains("failed: exited with code 3: boom"), "{log}");
    let shown = home.giga(&["job", "show", &id]).ok();
    assert!(shown.contains("exited with code 3: boom") && !shown.contains("crash"), "{shown}");
    let events = home.giga(&["job", "events", &id]).ok();
    assert!(events.contains("exited with code 3 (attempt 1); will not be retried"), "{events}");

    let stubborn = shell_job("stubborn", "exit 3", "true");
    let stubborn =
        stubborn.replace("ship: auto\n", "ship: auto\nretry: {max: 3, backoff: 1h, on: [crash]}\n");
    let id = submit(&home, &stubborn);
    event(&home, &id, "job.retried");
    let told = home.giga(&["job", "explain", &id]).ok();
    assert!(told.contains("Waiting to be retried: attempt 2 of 4 at "), "{told}");
    assert!(told.contains("the last one failed: exited with code 3"), "{told}");
    assert!(home.giga(&["job", "show", &id]).ok().contains("last attempt"), "{told}");

    let last = shell_job("last", "true", "exit 2");
    let last =
        last.replace("ship: auto\n", "ship: auto\nretry: {max: 1, backoff: 0s, on: [verify_failed]}\n");
    let id = submit(&home, &last);
    home.giga(&["job", "wait", &id]).fails(1);
    let given_up = job(&home, &id);
    assert_eq!((&given_up["stage"], &given_up["attempts"]), (&json!("dead_letter"), &json!(2)));
    assert!(given_up["failure"]["detail"].as_str().unwrap().contains("exited with code 2"), "{given_up:#}");
}

#[test]
fn a_parent_recovers_with_its_child() {
    let home = Home::new();
    let _origin = Repo::hello(&home);
    let _server = up(&home, &[]);
    home.write(
        "release.md",
        "---\nname: release\nproduct: demo\nkind: composite\nonFailure: continue\n---\n",
    );
    home.giga(&["job", "submit", "release.md"]).ok();
    let once = home.path().join("once");
    let script =
        format!("if [ ! -e {0} ]; then touch {0}; exit 1; fi; echo hello > greeting.txt", once.display());
    home.write("child.md", shell_job("child", &script, "true"));
    home.giga(&["job", "submit", "child.md", "--parent", "release"]).ok();
    home.giga(&["job", "wait", "release"]).fails(1);
    let told = home.giga(&["job", "explain", "release"]).ok();
    assert!(told.contains("see why child failed, and retry it; this job follows"), "{told}");
    home.giga(&["job", "requeue", "child"]).ok();
    let parent = home.giga(&["job", "show", "release", "-o", "name"]).ok();
    event(&home, parent.trim(), "job.children_retried");
    home.giga(&["job", "wait", "release"]).ok();
}

#[test]
fn a_second_machine_under_a_live_name_is_refused() {
    let home = Home::new();
    let _server = up(&home, &["--factories", "0"]);
    std::fs::create_dir_all(home.path().join("repos")).unwrap();
    let first = factory(&home, "mine");
    // As a backup of the machine would be started elsewhere: it has the token.
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    for file in ["factory.token", "instance"] {
        std::fs::copy(home.data().join("factory/mine").join(file), elsewhere.join(file)).unwrap();
    }
    let again = ["factory", "run", "--once", "--id", "mine", "--base", elsewhere.to_str().unwrap()];
    let host = run(Command::new("uname").arg("-n")).ok();
    let refused = home.giga(&again).fails(1);
    assert!(refused.contains(&format!("factory mine is running on {} since 20", host.trim())), "{refused}");
    assert!(refused.contains("--take-over"), "{refused}");

    // The machine itself may come back at once, however it went.
    first.signal("KILL");
    assert_eq!(first.ended().code(), None);
    let first = factory(&home, "mine");

    home.giga(&[&again[..], &["--take-over"]].concat()).ok();
    let talk = home.path().join("talk.log");
    assert_eq!(first.ended().code(), Some(1), "it has to stop: {}", std::fs::read_to_string(&talk).unwrap());
    let said = std::fs::read_to_string(talk).unwrap();
    assert!(said.contains("factory mine is running on"), "{said}");
}
