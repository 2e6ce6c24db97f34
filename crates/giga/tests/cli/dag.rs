//! Several jobs at once, children of a job, and the picture of a tree.

use serde_json::Value;

use crate::mask::mask;
use crate::world::{Holder, Home, giga, manifest, run, run_with_input};

/// Waits in the coordinator, not here.
fn wait_for(home: &Home, job: &str, stage: &str) {
    home.giga(&["job", "wait", job, "--until", stage, "--timeout", "20s"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_made_drawn_and_worked_off() {
    let home = Home::new();
    let server = home.start();
    let linux = Holder::enroll(&home, &server, "linux-1", &["os:linux"]).await;
    home.write("release.md", manifest("release", "kind: composite\n"));
    home.write("build.md", manifest("build", "ship: auto\n"));
    home.write("test.md", manifest("test", "deps: [build]\nship: auto\n"));
    home.write("docs.md", manifest("docs", "kind: composite\n"));
    home.write("page.md", manifest("page", "capabilities: [nobody]\n"));
    home.giga(&["job", "submit", "release.md"]).ok();
    let made = home.giga(&["job", "submit", "build.md", "test.md", "docs.md", "--parent", "release"]);
    let made = made.ok();
    assert!(made.contains("build") && made.contains("test") && made.contains("docs"), "{made}");
    let one = run(giga(home.path()).args(["job", "submit", "page.md", "--parent", "docs"]));
    assert!(one.err.contains("warning: page: ") && one.err.contains("nobody"), "{one:?}");
    let children = home.giga(&["job", "list", "--parent", "release", "--all"]).ok();
    let listed = ["build", "test", "docs", "page"].map(|name| children.contains(name));
    assert_eq!(listed, [true, true, true, false], "only those right below it: {children}");

    let (job, epoch) = linux.take("r-1").await;
    linux.report(&job, epoch).await;
    wait_for(&home, "test", "queued");
    let (job, epoch) = linux.take("r-2").await;
    let drawn = home.giga(&["dag", "release"]).ok();
    insta::assert_snapshot!("dag__release", mask(&drawn, home.path()));
    let json: Value = serde_json::from_str(&home.giga(&["dag", "release", "-o", "json"]).ok()).unwrap();
    assert_eq!((&json["progress"]["percent"], &json["progress"]["total"]), (&33.into(), &3.into()));
    assert_eq!(json["jobs"].as_array().unwrap().len(), 5);

    linux.report(&job, epoch).await;
    let explained = home.giga(&["job", "explain", "release"]).ok();
    assert!(explained.contains("2 of 3 shipped") && explained.contains("(docs): blocked"), "{explained}");
    // It says what goes with it, and everything does.
    let cancelled = run(giga(home.path()).args(["job", "cancel", "release"]));
    assert!(
        cancelled.err.contains("2 jobs below it that had not finished are cancelled as well"),
        "{cancelled:?}"
    );
    wait_for(&home, "page", "cancelled");
    let drawn = home.giga(&["dag", "release"]).ok();
    assert!(drawn.lines().any(|line| line.contains("page") && line.contains("cancelled")), "{drawn}");
    let alone = run(giga(home.path()).args(["job", "cancel", "release"]));
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""), "there is nothing left to go with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_one_submit() {
    let home = Home::new();
    let _server = home.start();
    home.write("a.md", manifest("a", "deps: [b]\n"));
    home.write("b.md", manifest("b", ""));
    home.write("bad.md", manifest("bad", "priority: hihg\n"));
    home.write("round.md", manifest("round", "deps: [a]\n"));
    let refused = home.giga(&["job", "submit", "a.md", "b.md", "bad.md"]).fails(1);
    assert!(
        refused.contains("bad.md:4: priority must be") && refused.contains("did you mean `high`?"),
        "{refused}"
    );
    home.write("b-round.md", manifest("b", "deps: [round]\n"));
    let refused = home.giga(&["job", "submit", "b-round.md", "a.md", "round.md"]).fails(1);
    assert!(refused.contains("b-round.md: ") && refused.contains("b → round → a → b"), "{refused}");
    assert_eq!(home.giga(&["job", "list", "-o", "name"]).ok(), "", "all or none");

    let ids = home.giga(&["job", "submit", "a.md", "b.md", "-o", "name"]).ok();
    let ids: Vec<&str> = ids.lines().collect();
    assert_eq!(ids.len(), 2);
    let json: Value = serde_json::from_str(&home.giga(&["job", "show", ids[0], "-o", "json"]).ok()).unwrap();
    assert_eq!(
        (&json["name"], &json["stage"], &json["deps"][0]),
        (&"a".into(), &"blocked".into(), &ids[1].into())
    );
    // From stdin too, and under a parent that is not there.
    let text = manifest("c", "");
    let piped =
        run_with_input(giga(home.path()).args(["job", "submit", "-", "b.md", "-o", "name"]), text.as_bytes());
    assert_eq!(piped.ok().lines().count(), 2);
    home.giga(&["job", "submit", "b.md", "--parent", "nobody"]).fails(3);
    home.giga(&["dag", "nobody"]).fails(3);
    assert!(home.giga(&["job", "submit"]).fails(2).contains("FILE"));
}
