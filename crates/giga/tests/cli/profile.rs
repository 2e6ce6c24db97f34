//! `giga profile …`, and what `giga review` shows, against a real coordinator.

use serde_json::{Value, json};

use crate::mask::{mask, squeeze};
use crate::world::{Holder, Home, giga, manifest, run};

const CODER: &str =
    "---\nengine: shell\npriority: high\nbudget: {usd: 2.50}\n---\nYou write small changes.\n";

fn in_demo(home: &Home, args: &[&str]) -> crate::world::Ran {
    run(giga(home.path()).args(args).env("GIGA_PRODUCT", "demo"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_made_named_and_handed_to_the_factory() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    home.write("coder.md", CODER);
    assert_eq!(in_demo(&home, &["profile", "add", "coder", "coder.md"]).ok(), "coder@1\n");
    assert_eq!(in_demo(&home, &["profile", "add", "coder", "coder.md"]).ok(), "coder@1\n", "nothing changed");
    home.write("coder.md", CODER.replace("high", "low"));
    let added = in_demo(&home, &["profile", "add", "coder", "coder.md", "-o", "json"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&added).unwrap()["version"], 2);
    let golden = |name: &str, args: &[&str]| {
        // Durations make their column as wide as they happen to be.
        let shown = squeeze(&mask(&in_demo(&home, args).ok(), home.path()));
        insta::assert_snapshot!(format!("profile__{name}"), shown);
    };
    golden("list", &["profile", "list"]);
    golden("show", &["profile", "show", "coder"]);
    golden("show_version", &["profile", "show", "coder@1"]);

    home.write("job.md", manifest("named", "persona: coder\nscript: 'true'\nidempotencyKey: k\n"));
    let id = home.giga(&["job", "submit", "job.md", "-o", "name"]).ok();
    let again = home.giga(&["job", "submit", "job.md", "-o", "name"]).ok();
    assert_eq!(id, again, "the manifest's own key counts, although only the coordinator knows the profile");
    let (status, grant) = mac.post("claim", json!({"factoryId": "mac-1", "requestId": "r"})).await;
    assert_eq!(status, 200);
    assert_eq!(grant["job"]["personaMd"], "You write small changes.\n");
    assert_eq!(
        (&grant["job"]["manifest"]["persona"], &grant["job"]["priority"]),
        (&json!("coder@2"), &json!("low"))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let home = Home::new();
    let _server = home.start();
    home.write("bad.md", "---\nengine: claude\nname: x\n---\nYou.\n");
    let message = in_demo(&home, &["profile", "add", "coder", "bad.md"]).fails(1);
    assert!(message.contains("bad.md:3: name belongs to each job"), "{message}");
    assert!(message.contains("giga profile add --help"), "{message}");
    in_demo(&home, &["profile", "add", "coder", "nowhere.md"]).fails(1);
    assert!(in_demo(&home, &["profile", "show", "coder"]).fails(3).contains("no profile coder"));
    home.write("coder.md", CODER);
    in_demo(&home, &["profile", "add", "coder", "coder.md"]).ok();
    in_demo(&home, &["profile", "show", "coder@2"]).fails(3);
    in_demo(&home, &["profile", "show", "coder@two"]).fails(1);
    home.write("job.md", manifest("named", "persona: codr\n"));
    let message = home.giga(&["job", "submit", "job.md"]).fails(1);
    assert!(
        message.contains("job.md:4: persona names the profile codr") && message.contains("`coder`"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_shows_checks_cost_and_what_was_said_before() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    home.write("job.md", manifest("fix", "engine: shell\nscript: 'true'\nverify: [make test]\n"));
    home.giga(&["job", "submit", "job.md"]).ok();
    let asked = home.giga(&["review", "fix", "--request", "--quorum", "2", "--reviewers", "ana,bo,cy"]).ok();
    assert!(asked.contains("0 of 2 approvals, from ana or bo or cy"), "{asked}");
    home.giga(&["review", "fix", "--quorum", "2"]).fails(2);
    home.giga(&["review", "fix", "--request", "-m", "please"]).fails(2);
    let too_many = home.giga(&["review", "fix", "--request", "--quorum", "2", "--reviewers", "ana"]).fails(1);
    assert!(too_many.contains("quorum"), "{too_many}");

    let report = |epoch: u64, cost: f64| {
        json!({"leaseEpoch": epoch, "report": {"costUsd": cost, "tokens": 1_000, "checks": [
            {"command": "make test", "passed": true, "wallMs": 4_200, "output": "ok 1\nok 2\n\u{1b}[31mred\n"},
        ]}})
    };
    let (job, epoch) = mac.take("r1").await;
    let (status, reported) = mac.post(&format!("jobs/{job}/report"), report(epoch, 0.4)).await;
    assert_eq!((status, &reported["stage"]), (200, &json!("review")));
    home.giga(&["review", "fix", "--request-changes", "--as", "ana", "-m", "the test is missing"]).ok();
    let (job, epoch) = mac.take("r2").await;
    mac.post(&format!("jobs/{job}/report"), report(epoch, 0.25)).await;
    home.giga(&["review", "fix", "--approve", "--as", "bo"]).ok();
    let shown = home.giga(&["review", "fix"]).ok();
    assert!(!shown.contains('\u{1b}'), "nothing that a command printed steers the terminal: {shown:?}");
    insta::assert_snapshot!("review__in_full", squeeze(&mask(&shown, home.path())));

    let operator = home.giga(&["token", "create", "--role", "operator", "--label", "cy"]).ok();
    let with = |args: &[&str]| run(giga(home.path()).args(args).env("GIGA_TOKEN", operator.trim()));
    let forged = with(&["review", "fix", "--approve", "--as", "ana"]).fails(4);
    assert!(forged.contains("this token reviews as `cy`") && forged.contains("only an admin"), "{forged}");
    assert!(with(&["review", "fix", "--approve"]).ok().contains("ready to ship"));
}
