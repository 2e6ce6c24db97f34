//! The question that everybody asks first: why does nothing happen?

use serde_json::Value;

use crate::mask::mask;
use crate::world::{Holder, Home, manifest};

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_that_nobody_has_is_named_with_what_to_do() {
    let home = Home::new();
    let server = home.start();
    for id in ["linux-1", "linux-2"] {
        Holder::enroll(&home, &server, id, &["os:linux", "engine:shell"]).await;
    }
    home.write("build.md", manifest("wants-build", "engine: shell\nscript: make\ncapabilities: [build]\n"));

    let submitted = crate::world::run(crate::world::giga(home.path()).args(["job", "submit", "build.md"]));
    assert!(submitted.err.contains("warning: ") && submitted.err.contains("`build`"), "{submitted:?}");
    assert!(submitted.err.contains("hint: giga job explain"), "{submitted:?}");

    let text = home.giga(&["job", "explain", "wants-build"]).ok();
    insta::assert_snapshot!("explain__build", mask(&text, home.path()));
    let json: Value =
        serde_json::from_str(&home.giga(&["job", "explain", "wants-build", "-o", "json"]).ok()).unwrap();
    let summary = json["summary"].as_str().unwrap();
    assert!(summary.contains("`build`"), "the capability is named: {summary}");
    assert!(
        summary.contains("no factory") || summary.contains("nobody"),
        "and that nobody has it: {summary}"
    );
    assert!(summary.contains("os:linux") && summary.contains("engine:shell"), "and what there is: {summary}");
    let remedies = json["remedies"].as_array().unwrap();
    assert!(
        remedies
            .iter()
            .any(|r| r["message"].as_str().unwrap().contains("`build`") && r["command"].is_string()),
        "a command that helps: {remedies:?}"
    );
    let factories = json["factories"].as_array().unwrap();
    assert_eq!(factories.len(), 2);
    assert!(factories.iter().all(|f| f["feasible"] == false && f["rejectedBy"]["filter"] == "capabilities"));

    // The dry run says the same before anything is submitted, and refuses under `strict`.
    let plan = home.giga(&["job", "plan", "build.md"]).ok();
    insta::assert_snapshot!("explain__build_plan", mask(&plan, home.path()));
    home.giga(&["flags", "set", "strict", "true"]).ok();
    assert!(home.giga(&["job", "submit", "build.md"]).fails(1).contains("`build`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_would_run_shows_every_score() {
    let home = Home::new();
    let server = home.start();
    Holder::enroll(&home, &server, "linux-1", &["os:linux", "engine:shell"]).await;
    Holder::enroll(&home, &server, "xcode-1", &["os:macos", "engine:shell", "has:xcode"]).await;
    home.write("job.md", manifest(
            "easy",
            "engine: shell\nscript: make\ncapabilities: [os:linux]\nbudget: {usd: 1.5}\nretry: {max: 1, on: [crash]}\n",
        ));
    let plan = home.giga(&["job", "plan", "job.md"]).ok();
    assert!(plan.contains("It costs $3.00 at most"), "{plan}");
    let retries = "It is tried up to 2 times. Retried: a lost factory, a problem of the machine or the network, an engine \
                   that breaks off, an exit code other than 0. Not retried: a failed verification, a run that takes too \
                   long, a spent budget.";
    assert!(plan.contains(retries), "{plan}");
    home.giga(&["job", "submit", "job.md"]).ok();
    let text = home.giga(&["job", "explain", "easy"]).ok();
    let header = text.lines().find(|line| line.contains("FACTORY")).unwrap().to_owned();
    assert!(
        header.contains("SCORE") && header.contains("CAPABILITY FIT") && header.contains("REASON"),
        "{text}"
    );
    let row = |id: &str| {
        text.lines().find(|line| line.contains(id) && !line.contains("placed")).unwrap().to_owned()
    };
    assert!(row("linux-1").contains("fits"), "{text}");
    assert!(row("xcode-1").contains("no") && row("xcode-1").contains("`os:linux`"), "{text}");
}
