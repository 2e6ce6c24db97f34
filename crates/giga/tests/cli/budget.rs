//! `giga budget …` and `giga product …` against a real coordinator.

use serde_json::{Value, json};

use crate::mask::mask;
use crate::world::{Holder, Home, giga, manifest, run};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_set_spent_from_paused_and_resumed() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    let golden = |name: &str, args: &[&str]| {
        let ran = run(giga(home.path()).args(args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let both = format!("{}---\n{}", ran.out, ran.err);
        insta::assert_snapshot!(format!("budget__{name}"), mask(&both, home.path()));
    };
    golden("list_empty", &["budget", "list"]);
    golden("show_without_limit", &["budget", "show", "demo"]);
    golden("set", &["budget", "set", "demo", "--total", "10", "--job", "2.50"]);

    home.write("one.md", manifest("one", "engine: shell\nscript: 'true'\n"));
    home.write("two.md", manifest("two", "engine: shell\nscript: 'true'\n"));
    home.giga(&["job", "submit", "one.md"]).ok();
    let (job, epoch) = mac.take("r1").await;
    let spend = json!({"leaseEpoch": epoch, "spend": {"usd": 1.25, "tokens": 1_200}});
    let (status, _) = mac.post(&format!("jobs/{job}/lease/renew"), spend).await;
    assert_eq!(status, 200);
    golden("show_running", &["budget", "show", "demo"]);
    mac.report(&job, epoch).await;
    golden("show_spent", &["budget", "show", "demo"]);

    // Without a terminal nobody can be asked, and nobody is.
    golden("pause", &["budget", "pause", "demo", "-m", "too many retries"]);
    home.giga(&["job", "submit", "two.md"]).ok();
    let (status, _) = mac.post("claim", json!({"factoryId": "mac-1", "requestId": "r2"})).await;
    assert_eq!(status, 204, "a paused product starts nothing");
    golden("list", &["budget", "list"]);
    golden("resume", &["budget", "resume", "demo"]);
    let (job, epoch) = mac.take("r2").await;
    home.giga(&["budget", "pause", "demo", "--stop-running", "--yes"]).ok();
    let (_, answer) = mac.post(&format!("jobs/{job}/lease/renew"), json!({"leaseEpoch": epoch})).await;
    assert_eq!(answer["directives"], json!(["preempt"]));
    home.giga(&["budget", "resume", "demo"]).ok();
}

#[test]
fn what_is_not_named_stays_and_none_takes_a_limit_away() {
    let home = Home::new();
    let _server = home.start();
    let set = |args: &[&str]| {
        let all = [&["budget", "set", "demo", "-o", "json"], args].concat();
        parsed(&home.giga(&all).ok())
    };
    assert_eq!(set(&["--day", "5", "--month", "$100"])["ceilings"], json!({"day": 5.0, "month": 100.0}));
    assert_eq!(set(&["--day", "none", "--week", "0.5"])["ceilings"], json!({"week": 0.5, "month": 100.0}));
    assert_eq!(set(&["--job", "2"])["jobUsd"], 2.0);
    // Whoever sets a limit that jobs can overrun is told so, beside the answer.
    let loud = home.giga(&["budget", "set", "demo", "--job", "none"]);
    assert!(loud.err.contains("giga budget set demo --job USD"), "{loud:?}");
    assert_eq!(home.giga(&["budget", "set", "demo", "--job", "2"]).err, "");
    let last = set(&["--job", "none"]);
    assert_eq!((last.get("jobUsd"), &last["ceilings"]["week"]), (None, &json!(0.5)));
    home.giga(&["budget", "set", "demo"]).fails(2);
    assert!(home.giga(&["budget", "set", "demo", "--day", "lots"]).fails(2).contains("dollars such as 2.50"));
    assert!(home.giga(&["budget", "set", "demo", "--day", "2000000000"]).fails(1).contains("ceilings.day"));
    assert_eq!(home.giga(&["budget", "list", "-o", "name"]).ok(), "demo\n");
    // The product that is named is meant, whatever the settings say.
    home.giga(&["budget", "show", "demo", "--product", "shop"]).ok();
}

#[test]
fn a_limit_that_is_reached_stays_shut_with_the_code_for_money() {
    let home = Home::new();
    let _server = home.start();
    home.giga(&["budget", "set", "demo", "--total", "1"]).ok();
    let corrected = home.giga(&["budget", "correct", "demo", "--usd", "1.20", "-m", "billed apart"]).ok();
    assert!(corrected.contains("paused") && corrected.contains("the total limit is reached"), "{corrected}");
    let message = home.giga(&["budget", "resume", "demo"]).fails(7);
    assert!(message.contains("giga budget set demo --total USD"), "{message}");
    home.giga(&["budget", "correct", "demo", "--usd", "-0.70", "-m", "refunded"]).ok();
    let open = home.giga(&["budget", "show", "demo"]).ok();
    assert!(open.contains("active, $0.50 left of the total limit"), "{open}");
    home.giga(&["budget", "correct", "demo", "--usd", "1"]).fails(2);
    home.giga(&["budget", "correct", "demo", "--usd", "0", "-m", "x"]).fails(1);

    let drawn = home.giga(&["budget", "burndown", "demo"]).ok();
    assert!(drawn.contains("$0.50 spent of $1.00"), "{drawn}");
    assert!(drawn.contains('█') || drawn.contains('▄'), "{drawn}");
    let json = parsed(&home.giga(&["budget", "burndown", "demo", "--bucket", "1d", "-o", "json"]).ok());
    assert_eq!(json["bucketMs"], 86_400_000);
    assert!(home.giga(&["budget", "burndown", "demo", "--bucket", "1w"]).fails(1).contains("not a duration"));
    let nothing = home.giga(&["budget", "burndown", "other"]).ok();
    assert!(nothing.contains("$0.00 spent, no limit") && !nothing.contains("NaN"), "{nothing}");
}

#[test]
fn who_may_not_is_told_so() {
    let home = Home::new();
    let _server = home.start();
    let token = |role: &str| home.giga(&["token", "create", "--role", role, "--product", "demo"]).ok();
    let (viewer, operator) = (token("viewer"), token("operator"));
    let with = |token: &str, args: &[&str]| run(giga(home.path()).args(args).env("GIGA_TOKEN", token.trim()));
    with(&viewer, &["budget", "show", "demo"]).ok();
    with(&viewer, &["budget", "show", "shop"]).fails(4);
    with(&viewer, &["budget", "pause", "demo"]).fails(4);
    with(&operator, &["budget", "pause", "demo"]).ok();
    with(&operator, &["budget", "set", "demo", "--day", "5"]).fails(4);
    with(&operator, &["product", "set", "demo", "--share", "5"]).fails(4);
}

#[test]
fn a_product_is_shown_and_set_part_by_part() {
    let home = Home::new();
    let _server = home.start();
    assert_eq!(home.giga(&["product", "list"]).ok(), "");
    let set = |args: &[&str]| {
        let all = [&["product", "set", "demo", "-o", "json"], args].concat();
        parsed(&home.giga(&all).ok())
    };
    set(&["--share", "3", "--repos", "hello,notes"]);
    let weighed = set(&["--weight", "affinity=1.5", "--weight", "load=0"]);
    assert_eq!((&weighed["share"], &weighed["repos"]), (&json!(3.0), &json!(["hello", "notes"])));
    assert_eq!((&weighed["weights"]["affinity"], &weighed["weights"]["load"]), (&json!(1.5), &json!(0.0)));
    let shown = home.giga(&["product", "show", "demo"]).ok();
    assert!(shown.contains("hello, notes") && shown.contains("affinity 1.5"), "{shown}");
    assert_eq!(set(&["--repos", ""])["repos"], json!([]));
    assert!(home.giga(&["product", "list"]).ok().contains("demo"));
    home.giga(&["product", "set", "shop", "--repos", "hello"]).ok();
    let owned = home.giga(&["product", "set", "demo", "--repos", "hello"]).fails(5);
    assert!(owned.contains("belongs to product shop"), "{owned}");
    home.giga(&["product", "set", "demo"]).fails(2);
    assert!(home.giga(&["product", "set", "demo", "--weight", "speed=1"]).fails(2).contains("capabilityFit"));
    home.giga(&["product", "set", "demo", "--share", "0"]).fails(1);
}

#[test]
fn a_policy_is_set_part_by_part_and_outlives_other_settings() {
    let home = Home::new();
    let _server = home.start();
    let set = |args: &[&str]| home.giga(&[&["product", "policy", "demo"], args].concat());
    set(&["--quorum", "2", "--auto-ship", "no", "--engines", "claude,codex"]).ok();
    set(&["--sandbox", "yes", "--network", "list", "--max-children", "9", "--max-depth", "2"]).ok();
    home.giga(&["product", "set", "demo", "--share", "3"]).ok();
    let shown = home.giga(&["product", "show", "demo"]).ok();
    let policy = "at least 2 approval(s); nothing ships by itself; engines claude, codex; sandbox; network list; \
                  at most 9 children per job; children at most 2 deep";
    assert!(shown.contains(policy), "{shown}");
    set(&["--max-children", "none", "--engines", "", "--network", "open", "--max-depth", "none"]).ok();
    let shown = home.giga(&["product", "show", "demo"]).ok();
    assert!(shown.contains("policy   at least 2 approval(s); nothing ships by itself; sandbox\n"), "{shown}");

    for (wrong, words) in [
        (&["--auto-ship", "maybe"], "write yes or no"),
        (&["--max-children", "-1"], "unexpected argument"),
        (&["--max-children", "many"], "or none"),
        (&["--network", "shut"], "open, list"),
    ] {
        let refused = set(wrong).fails(2);
        assert!(refused.contains(words), "{refused}");
    }
    assert!(set(&[]).fails(2).contains("say what to set"));
    assert!(set(&["--max-depth", "17"]).fails(1).contains("policy.maxDepth"));
}
