//! A job from its manifest to shipped, through the command line on one side and plain HTTP on the other.

use serde_json::Value;

use crate::mask::{mask, mask_scores, squeeze};
use crate::world::{Holder, Home, giga, manifest, run, run_with_input};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_from_submit_to_shipped() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["os:linux", "engine:shell"]).await;

    home.write(
        "fix.md",
        manifest("fix-greeting", "engine: shell\nscript: 'true'\nreview: {quorum: 1, reviewers: [ana]}\n"),
    );
    let id = home.giga(&["job", "submit", "fix.md", "-o", "name"]).ok().trim().to_owned();
    let golden = |name: &str, args: &[&str]| {
        let out = home.giga(args).ok();
        // Runs have durations between their columns.
        let masked = mask(&out, home.path());
        let masked = if out.contains("Runs") { squeeze(&masked) } else { masked };
        let masked = if out.contains("SCORE") { mask_scores(&masked) } else { masked };
        insta::assert_snapshot!(format!("life__{name}"), masked);
    };
    golden("explain_placed", &["job", "explain", &id]);

    let (job, epoch) = mac.take("r1").await;
    assert_eq!(job, id);
    golden("explain_building", &["job", "explain", &id]);
    golden("list", &["job", "list"]);
    let reported = mac.report(&job, epoch).await;
    assert_eq!(reported["stage"], "review");
    golden("review", &["review", "fix-greeting"]);

    // Whoever is not on the list has no say.
    let refused = home.giga(&["review", &id, "--approve", "--as", "bo"]);
    assert!(refused.fails(4).contains("bo"));
    golden("approved", &["review", &id, "--approve", "--as", "ana", "-m", "reads well"]);
    golden("explain_testing", &["job", "explain", &id]);
    assert!(home.giga(&["job", "wait", &id, "--until", "testing"]).ok().contains("ready to ship"));
    golden("ship", &["job", "ship", &id, "-m", "go"]);

    let waited = home.giga(&["job", "wait", &id]).ok();
    assert!(waited.contains("shipped"), "{waited}");
    golden("show", &["job", "show", &id]);
    golden("events", &["job", "events", &id]);
    golden("metrics", &["metrics"]);
    let stages: Vec<Value> = home
        .giga(&["job", "events", &id, "-f", "-o", "jsonl"])
        .ok()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["to"].clone())
        .collect();
    assert_eq!(stages.last().unwrap(), "shipped", "following a job that has ended shows all of it and ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn submit_and_wait_in_one_go() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["os:linux", "engine:shell"]).await;
    let text = manifest("auto", "engine: shell\nscript: 'true'\nship: auto\n");
    let path = home.path().to_owned();
    let submitted = tokio::task::spawn_blocking(move || {
        run_with_input(giga(&path).args(["job", "submit", "-", "--wait"]), text.as_bytes())
    });
    // The job is there as soon as a claim finds it; a claim that finds nothing is answered at once.
    let (job, epoch) = loop {
        let (status, grant) =
            mac.post("claim", serde_json::json!({"factoryId": "mac-1", "requestId": "r1"})).await;
        if status == 200 {
            break (grant["job"]["id"].as_str().unwrap().to_owned(), grant["leaseEpoch"].as_u64().unwrap());
        }
        assert!(!submitted.is_finished(), "{:?}", submitted.await);
        tokio::task::yield_now().await;
    };
    let start = serde_json::json!({"leaseEpoch": epoch, "stage": "building"});
    mac.send(reqwest::Method::PATCH, &format!("jobs/{job}"), start).await;
    mac.report(&job, epoch).await;
    let out = submitted.await.unwrap().ok();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("queued") && lines[1].contains("shipped"), "{out}");
}

#[test]
fn jobs_are_meant_by_id_by_part_of_it_or_by_name() {
    let home = Home::new();
    let _server = home.start();
    for name in ["one", "two", "twin", "twin"] {
        home.write("job.md", manifest(name, ""));
        home.giga(&["job", "submit", "job.md"]).ok();
    }
    let id = home.giga(&["job", "list", "--name", "one", "-o", "name"]).ok().trim().to_owned();
    for meant in [id.as_str(), "one", &id[16..], &id.to_lowercase(), &id[18..].to_lowercase()] {
        assert_eq!(home.giga(&["job", "show", meant, "-o", "name"]).ok().trim(), id, "{meant}");
    }
    let ambiguous = home.giga(&["job", "cancel", "twin"]).fails(2);
    assert!(ambiguous.contains("`twin` matches 2 jobs"), "{ambiguous}");
    assert!(home.giga(&["job", "show", "three"]).fails(3).contains("there is no job `three`"));
    assert!(
        home.giga(&["job", "show", "01J9ZK3V5N8Q4W2E6R7T1Y0ABC"]).fails(3).contains("there is no job 01J9")
    );
}

#[test]
fn one_invocation_makes_one_job_and_two_make_two() {
    let home = Home::new();
    let _server = home.start();
    home.write("plain.md", manifest("plain", ""));
    home.write("keyed.md", manifest("keyed", "idempotencyKey: ticket-812\n"));
    for file in ["plain.md", "plain.md", "keyed.md"] {
        home.giga(&["job", "submit", file]).ok();
    }
    let again = run(giga(home.path()).args(["job", "submit", "keyed.md"]));
    assert!(again.err.contains("the key `ticket-812` was used before"), "{again:?}");
    let names = home.giga(&["job", "list", "-o", "jsonl"]).ok();
    assert_eq!(names.matches("\"name\":\"plain\"").count(), 2);
    assert_eq!(names.matches("\"name\":\"keyed\"").count(), 1);
}

#[test]
fn a_starter_manifest_is_written_once() {
    let home = Home::new();
    let _server = home.start();
    home.giga(&["job", "init", "new.md"]).ok();
    assert!(home.giga(&["job", "init", "new.md"]).fails(1).contains("--force"));
    home.write("new.md", "mine");
    home.giga(&["job", "init", "new.md", "--force"]).ok();
    let plan = home.giga(&["job", "plan", "new.md"]).ok();
    assert!(plan.contains("Nothing was submitted"), "{plan}");
    assert!(home.giga(&["job", "list"]).ok().is_empty());
    home.giga(&["job", "submit", "new.md"]).ok();
    assert!(home.giga(&["job", "list"]).ok().contains("hello"));
}
