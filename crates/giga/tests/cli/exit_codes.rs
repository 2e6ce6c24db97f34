//! Scripts decide by these numbers.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::world::{Holder, Home, giga, manifest, run};

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_as_the_job_did() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    let submit = |name: &str, more: &str| {
        home.write("job.md", manifest(name, more));
        home.giga(&["job", "submit", "job.md"]).ok();
    };

    submit("cancelled", "");
    home.giga(&["job", "cancel", "cancelled"]).ok();
    home.giga(&["job", "wait", "cancelled"]).fails(1);

    for (name, reason, code) in [("crashed", "crash", 1), ("spent", "budget_exceeded", 7)] {
        submit(name, "engine: shell\nscript: 'true'\n");
        let (job, epoch) = mac.take(name).await;
        assert_eq!(mac.fail(&job, epoch, reason).await["stage"], "failed");
        let waited = home.giga(&["job", "wait", name]);
        assert!(waited.out.contains(&reason.replace('_', " ")), "{waited:?}");
        waited.fails(code);
    }

    submit("rejected", "engine: shell\nscript: 'true'\nreview: {quorum: 1}\n");
    let (job, epoch) = mac.take("rejected").await;
    mac.report(&job, epoch).await;
    home.giga(&["review", "rejected", "--reject", "-m", "not like this"]).ok();
    home.giga(&["job", "wait", "rejected"]).fails(6);
    home.giga(&["job", "wait", "rejected", "--until", "failed"]).ok();

    submit("slow", "capabilities: [nowhere]\n");
    let late = home.giga(&["job", "wait", "slow", "--timeout", "50ms"]);
    assert!(late.fails(124).contains("timed out"));

    submit("shipped", "engine: shell\nscript: 'true'\nship: auto\n");
    let (job, epoch) = mac.take("shipped").await;
    mac.report(&job, epoch).await;
    home.giga(&["job", "wait", "shipped"]).ok();
    let several = home.giga(&["job", "wait", "shipped", "rejected", "crashed"]);
    assert_eq!(several.out.lines().count(), 3);
    several.fails(6);
}

#[test]
fn what_was_refused_decides() {
    let home = Home::new();
    let _server = home.start();
    home.write("job.md", manifest("one", ""));
    home.write("other.md", manifest("other", "idempotencyKey: k\n"));
    home.write("another.md", manifest("another", "idempotencyKey: k\n"));
    home.giga(&["job", "submit", "job.md"]).ok();
    home.giga(&["job", "submit", "other.md"]).ok();

    home.giga(&["job", "show", "nobody"]).fails(3);
    home.giga(&["factory", "show", "nobody"]).fails(3);
    home.giga(&["job", "ship", "one"]).fails(5);
    home.giga(&["job", "submit", "another.md"]).fails(5);
    home.giga(&["factory", "enroll", "mac-1"]).ok();
    home.giga(&["factory", "enroll", "mac-1"]).fails(5);
    home.giga(&["job", "fly"]).fails(2);
    home.giga(&["job", "list", "-o", "xml"]).fails(2);
    home.giga(&["review", "one", "-m", "nice"]).fails(2);
    home.giga(&["--url", "nonsense", "job", "list"]).fails(2);
    home.giga(&["job", "submit", "nowhere.md"]).fails(1);
}

#[test]
fn who_may_not_is_told_so() {
    let home = Home::new();
    let server = home.start();
    let viewer = home.giga(&["token", "create", "--role", "viewer", "--label", "eyes"]).ok();
    let viewer = viewer.trim();
    home.write("job.md", manifest("one", ""));
    let elsewhere = Home::new();
    let as_viewer = |token: &str, args: &[&str]| {
        run(giga(elsewhere.path()).args(args).env("GIGA_URL", &server.url).env("GIGA_TOKEN", token))
    };
    as_viewer(viewer, &["job", "list"]).ok();
    let job = home.path().join("job.md");
    let refused = as_viewer(viewer, &["job", "submit", job.to_str().unwrap()]).fails(4);
    assert!(refused.contains("viewer") && refused.contains("hint: "), "{refused}");

    let id = home.giga(&["token", "list", "-o", "jsonl"]).ok();
    let id = id.lines().find(|line| line.contains("eyes")).unwrap();
    let id = serde_json::from_str::<serde_json::Value>(id).unwrap()["id"].as_str().unwrap().to_owned();
    home.giga(&["token", "revoke", &id]).ok();
    as_viewer(viewer, &["job", "list"]).fails(4);

    let nobody = run(giga(elsewhere.path()).args(["job", "list", "--url", &server.url])).fails(4);
    assert!(nobody.contains("no token") && nobody.contains("GIGA_TOKEN"), "{nobody}");
    let cut_off = as_viewer(&viewer[..20], &["job", "list"]).fails(2);
    assert!(cut_off.contains("cut off"), "{cut_off}");
}

#[test]
fn a_token_of_one_product_stays_there() {
    let home = Home::new();
    let _server = home.start();
    let token = home.giga(&["token", "create", "--role", "submitter", "--product", "demo"]).ok();
    home.write("demo.md", manifest("mine", ""));
    home.write("shop.md", "---\nname: theirs\nproduct: shop\n---\n");
    let with_token = |args: &[&str]| run(giga(home.path()).args(args).env("GIGA_TOKEN", token.trim()));
    with_token(&["job", "submit", "demo.md"]).ok();
    with_token(&["job", "submit", "shop.md"]).fails(4);
    home.giga(&["job", "submit", "shop.md"]).ok();
    assert!(!with_token(&["job", "list"]).ok().contains("theirs"));
    assert!(!home.giga(&["job", "list", "--product", "shop"]).ok().contains("mine"));
}

#[test]
fn nobody_there_says_how_to_change_that() {
    let home = Home::new();
    let server = home.start();
    let url = server.url.clone();
    server.kill9();
    let refused = home.giga(&["job", "list"]).fails(1);
    assert!(refused.contains(&format!("cannot reach the coordinator at {url}")), "{refused}");
    assert!(refused.contains("hint: is the coordinator running? start it with `giga up`"), "{refused}");
}

#[test]
fn an_interrupt_is_130() {
    let home = Home::new();
    let _server = home.start();
    home.write("job.md", manifest("one", ""));
    home.giga(&["job", "submit", "job.md"]).ok();
    let mut command = giga(home.path());
    command.args(["job", "events", "one", "-f"]).stdout(Stdio::piped());
    let mut following = command.spawn().unwrap();
    // Its first line shows that it is at work.
    let mut line = String::new();
    BufReader::new(following.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("job.submitted"), "{line}");
    assert!(Command::new("kill").args(["-INT", &following.id().to_string()]).status().unwrap().success());
    assert_eq!(following.wait().unwrap().code(), Some(130));
}
