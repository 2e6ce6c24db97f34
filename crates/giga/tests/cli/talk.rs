//! Jobs that ask people, and people who talk to jobs: the real binary, inside and outside of the job.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Holder, Home, Server, giga, run};

const PATIENCE: Duration = Duration::from_mins(1);

/// Ended when dropped, as by a power cut.
struct Factory(Child);

impl Drop for Factory {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn factory(home: &Home, id: &str) -> Factory {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_giga"));
    let folder = program.parent().unwrap().to_str().unwrap();
    let mut command = giga(home.path());
    command.args(["factory", "run", "--id", id, "--sandbox-read", folder]);
    let log = std::fs::File::create(home.path().join(format!("{id}.log"))).unwrap();
    let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next(), Some(format!("ready factory {id}")));
    Factory(process)
}

/// A job without a repository whose script uses `giga` as `$giga`.
fn submit(home: &Home, name: &str, more: &str, script: &str) -> String {
    let program = env!("CARGO_BIN_EXE_giga");
    let script = format!("giga={program}\n{script}").replace('\n', "\n  ");
    let manifest = format!(
        "---\nname: {name}\nproduct: demo\nengine: shell\nscript: |\n  {script}\nship: auto\nretry: {{max: 3, backoff: 0s}}\n{more}---\nDo it.\n"
    );
    let file = home.write(&format!("{name}.md"), manifest);
    home.giga(&["job", "submit", file.to_str().unwrap(), "-o", "name"]).ok().trim().to_owned()
}

fn job(home: &Home, id: &str) -> Value {
    serde_json::from_str(&home.giga(&["job", "show", id, "-o", "json"]).ok()).unwrap()
}

/// Follows the events of the job until one is of this type.
fn event(home: &Home, id: &str, kind: &str) -> Value {
    let mut command = giga(home.path());
    command.args(["job", "events", id, "-f", "-o", "jsonl"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut follow = command.spawn().unwrap();
    let began = Instant::now();
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let found = events.find(|event| event["type"] == kind || began.elapsed() > PATIENCE);
    let _ = follow.kill();
    let _ = follow.wait();
    found.filter(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {:#}", job(home, id)))
}

fn logs(home: &Home, id: &str) -> String {
    home.giga(&["job", "logs", id]).ok()
}

const ASKS: &str =
    "port=$($giga ask 'Which port?' --option 8080 --option 9090) || exit 3\necho \"port is $port\"";

#[test]
fn a_script_asks_and_goes_on_with_the_answer() {
    let home = Home::new();
    let _server = home.start();
    let _factory = factory(&home, "mac");
    let id = submit(&home, "asks", "", ASKS);
    event(&home, &id, "job.question_asked");

    let shown = job(&home, &id);
    assert_eq!((&shown["stage"], &shown["needsInput"]), (&json!("building"), &json!(true)), "{shown:#}");
    assert_eq!(shown["openQuestions"][0]["options"], json!(["8080", "9090"]));
    let listed = home.giga(&["job", "list", "--needs-input"]).ok();
    assert!(listed.contains("needs input") && listed.contains("asks"), "{listed}");
    let all = home.giga(&["job", "questions"]).ok();
    assert!(all.contains("Which port?") && all.contains("8080 | 9090"), "{all}");
    let why = home.giga(&["job", "explain", &id]).ok();
    assert!(why.contains("asks: Which port?, asked just now, it fails at "), "{why}");
    assert!(why.contains(&format!("giga job answer {id} --question 1 8080|9090")), "{why}");
    let alerts = home.giga(&["alerts"]).ok();
    assert!(alerts.contains("Needs input") && alerts.contains("Which port?"), "{alerts}");
    let waited = home.giga(&["job", "wait", &id]).fails(8);
    assert!(
        waited.contains("asks asks: Which port?\n  giga job answer asks --question 1 '8080'"),
        "{waited}"
    );

    home.giga(&["job", "answer", &id, "9090"]).ok();
    home.giga(&["job", "wait", &id]).ok();
    assert!(logs(&home, &id).contains("port is 9090"), "{}", logs(&home, &id));
    let again = home.giga(&["job", "answer", &id, "--question", "1", "8080"]).fails(5);
    assert!(again.contains("already: 9090"), "{again}");
    let talk = home.giga(&["job", "questions", &id]).ok();
    assert!(talk.contains("answered: 9090"), "{talk}");
    let kinds = event(&home, &id, "job.question_answered");
    assert_eq!(kinds["data"]["answer"], "9090");
    assert_eq!(job(&home, &id)["leaseEpoch"], 1, "one run did it");
}

#[test]
fn a_question_that_stays_open_frees_the_seat_and_the_answer_brings_the_job_back() {
    let home = Home::new();
    let _server = home.start_with(&[]);
    let _factory = factory(&home, "mac");
    home.giga(&["flags", "set", "lease_ms", "3000"]).ok();
    let id = submit(&home, "parks", "ask: {parkAfter: 1s}\n", ASKS);
    event(&home, &id, "job.parked");

    let parked = job(&home, &id);
    assert_eq!((&parked["stage"], &parked["needsInput"]), (&json!("queued"), &json!(true)), "{parked:#}");
    assert_eq!(parked["attempts"], 0);
    let why = home.giga(&["job", "explain", &id]).ok();
    assert!(why.contains("Waiting for an answer to: Which port?"), "{why}");
    // The seat is free: the factory has one.
    let other = submit(&home, "other", "", "echo other");
    home.giga(&["job", "wait", &other]).ok();

    home.giga(&["job", "answer", &id, "8080"]).ok();
    home.giga(&["job", "wait", &id]).ok();
    assert!(logs(&home, &id).contains("port is 8080"), "{}", logs(&home, &id));
    let done = job(&home, &id);
    assert_eq!(done["attempts"], 0);
    let talk: Value =
        serde_json::from_str(&home.giga(&["job", "questions", &id, "-o", "json"]).ok()).unwrap();
    assert_eq!(talk["questions"].as_array().unwrap().len(), 1, "it was asked once: {talk:#}");
}

#[test]
fn nobody_answers() {
    let home = Home::new();
    let _server = home.start();
    let _factory = factory(&home, "mac");
    home.giga(&["flags", "set", "lease_ms", "3000"]).ok();
    let takes = "code=0; port=$($giga ask 'Which port?' --default 7070) || code=$?\necho \"port is $port, code $code\"";
    let id = submit(&home, "defaults", "ask: {deadline: 1s}\n", takes);
    home.giga(&["job", "wait", &id, "--keep-waiting"]).ok();
    let log = logs(&home, &id);
    assert!(log.contains("port is 7070, code 9"), "{log}");
    assert!(event(&home, &id, "job.question_answered")["cause"].as_str().unwrap().contains("default"));

    let id = submit(&home, "fails", "ask: {deadline: 1s}\n", ASKS);
    home.giga(&["job", "wait", &id, "--keep-waiting"]).fails(1);
    let failed = job(&home, &id);
    assert_eq!(failed["failure"]["reason"], "unanswered", "{failed:#}");
    assert_eq!(failed["failure"]["detail"], "nobody answered in time: Which port?");
    assert_eq!(failed["needsInput"], false);

    // Parked when its time is up: nobody runs it then, so the coordinator says it.
    let id = submit(&home, "parked", "ask: {parkAfter: 1s, deadline: 4s}\n", ASKS);
    event(&home, &id, "job.parked");
    home.giga(&["job", "wait", &id, "--keep-waiting"]).fails(1);
    assert_eq!(job(&home, &id)["failure"]["reason"], "unanswered");
}

#[test]
fn a_question_outlives_a_killed_factory() {
    let home = Home::new();
    let _server = home.start();
    home.giga(&["flags", "set", "lease_ms", "2000"]).ok();
    let first = factory(&home, "mac");
    let id = submit(&home, "outlives", "", ASKS);
    event(&home, &id, "job.question_asked");
    drop(first);
    event(&home, &id, "job.lease_expired");
    let queued = job(&home, &id);
    assert_eq!((&queued["stage"], &queued["needsInput"]), (&json!("queued"), &json!(true)), "{queued:#}");

    let _second = factory(&home, "linux");
    home.giga(&["job", "answer", &id, "9090"]).ok();
    home.giga(&["job", "wait", &id]).ok();
    assert!(logs(&home, &id).contains("port is 9090"), "{}", logs(&home, &id));
    let talk: Value =
        serde_json::from_str(&home.giga(&["job", "questions", &id, "-o", "json"]).ok()).unwrap();
    assert_eq!(talk["questions"].as_array().unwrap().len(), 1, "it was asked once: {talk:#}");
}

#[test]
fn what_people_say_is_in_the_next_run_once() {
    let home = Home::new();
    let _server = home.start();
    let id = submit(&home, "listens", "", "cat \"$GIGA_CONVERSATION\"");
    let said = home.giga(&["job", "say", &id, "keep the", "old spelling"]);
    assert!(said.err.contains("it reads this when it runs next"), "{}", said.err);
    said.ok();
    let _factory = factory(&home, "mac");
    home.giga(&["job", "wait", &id]).ok();
    let log = logs(&home, &id);
    assert!(log.contains(" to you: keep the old spelling"), "{log}");
    assert_eq!(event(&home, &id, "job.message_delivered")["data"]["leaseEpoch"], 1);
    let talk = home.giga(&["job", "questions", &id, "-o", "json"]).ok();
    let talk: Value = serde_json::from_str(&talk).unwrap();
    assert_eq!(talk["messages"][0]["delivered"]["leaseEpoch"], 1, "{talk:#}");
    assert!(home.giga(&["job", "say", &id, "too late"]).fails(5).contains("final"));
}

#[test]
fn a_job_does_not_answer_itself_and_nobody_asks_outside_of_one() {
    let home = Home::new();
    let _server = home.start();
    let _factory = factory(&home, "mac");
    let script = "$giga ask 'May I?' --permission --option yes --option no > answer & asked=$!\n\
                  $giga job answer \"$GIGA_JOB_ID\" yes 2>&1 || echo \"code $?\"\n\
                  wait $asked; cat answer";
    let id = submit(&home, "sly", "", script);
    event(&home, &id, "job.question_asked");
    let refused = home.giga(&["job", "answer", &id, "sure"]).fails(1);
    assert!(refused.contains("answer with one of yes, no"), "{refused}");
    home.giga(&["job", "answer", &id, "no"]).ok();
    home.giga(&["job", "wait", &id]).ok();
    let log = logs(&home, &id);
    assert!(
        log.contains("this is the token of job") && log.contains("\ncode 4\n") && log.contains("\nno\n"),
        "{log}"
    );
    let outside = home.giga(&["ask", "anybody?"]).fails(2);
    assert!(outside.contains("works inside a job"), "{outside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_the_job_asks_nothing() {
    let home = Home::new();
    let server: Server = home.start();
    let mac = Holder::enroll(&home, &server, "mac", &["engine:any", "engine:shell"]).await;
    let id = submit(&home, "lost", "", "true");
    let (taken, epoch) = mac.take("one").await;
    assert_eq!(taken, id);
    let ask = |epoch: u64| json!({"leaseEpoch": epoch, "text": "Which port?"});
    let path = format!("jobs/{id}/questions");
    let (status, asked) = mac.post(&path, ask(epoch)).await;
    assert_eq!((status, &asked["number"]), (201, &json!(1)), "{asked}");
    let (status, again) = mac.post(&path, ask(epoch)).await;
    assert_eq!((status, &again["number"]), (201, &json!(1)), "the same again: {again}");
    for (stale, body) in [(path.clone(), ask(epoch + 1)), (path.clone(), ask(epoch - 1))] {
        let (status, refused) = mac.post(&stale, body).await;
        assert_eq!((status, &refused["code"]), (409, &json!("fenced")), "{refused}");
    }
    let delivered = json!({"leaseEpoch": epoch + 1, "seqs": [1]});
    let (status, refused) = mac.post(&format!("jobs/{id}/conversation/delivered"), delivered).await;
    assert_eq!((status, &refused["code"]), (409, &json!("fenced")), "{refused}");
    for (body, field) in [
        (json!({"leaseEpoch": epoch, "text": " "}), "text"),
        (json!({"leaseEpoch": epoch, "text": "x", "kind": "permission"}), "options"),
        (json!({"leaseEpoch": epoch, "text": "x", "options": ["a", "a"]}), "options[1]"),
        (
            json!({"leaseEpoch": epoch, "text": "x", "options": ["a"], "kind": "permission", "default": "b"}),
            "default",
        ),
        (json!({"leaseEpoch": epoch, "text": "x", "deadline": "soon"}), "deadline"),
    ] {
        let (status, refused) = mac.post(&path, body).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!(field)), "{refused}");
    }
    // The holder hears of an answer with its next renewal, and reads it.
    let renew = json!({"leaseEpoch": epoch});
    let (_, answer) = mac.post(&format!("jobs/{id}/lease/renew"), renew.clone()).await;
    assert_eq!(answer["directives"], json!([]));
    home.giga(&["job", "answer", &id, "8080"]).ok();
    let (_, answer) = mac.post(&format!("jobs/{id}/lease/renew"), renew.clone()).await;
    assert_eq!(answer["directives"], json!(["input"]));
    let path = format!("jobs/{id}/conversation/delivered");
    let (status, _) = mac.post(&path, json!({"leaseEpoch": epoch, "seqs": [1]})).await;
    assert_eq!(status, 204);
    let (_, answer) = mac.post(&format!("jobs/{id}/lease/renew"), renew).await;
    assert_eq!(answer["directives"], json!([]));
    // A viewer reads and says nothing.
    let viewer = home.giga(&["token", "create", "--role", "viewer"]).ok();
    let as_viewer = |words: &[&str]| {
        run(Command::new(env!("CARGO_BIN_EXE_giga"))
            .args(words)
            .env("GIGA_TOKEN", viewer.trim())
            .env("GIGA_URL", &server.url))
    };
    as_viewer(&["job", "questions", &id]).ok();
    as_viewer(&["job", "say", &id, "hello"]).fails(4);
}
