//! The owner's own checkouts: what is said about them before the work starts, and after it.

use std::path::PathBuf;

use serde_json::Value;

use crate::bench::{Repo, event, git, job, submit, up};
use crate::world::{Home, giga, run};

/// A checkout without an origin under `HOME/repos`.
fn notes(home: &Home) -> PathBuf {
    let folder = home.path().join("repos/my team/my notes");
    std::fs::create_dir_all(&folder).unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    std::fs::write(folder.join("notes.txt"), "one\n").unwrap();
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    folder.canonicalize().unwrap()
}

fn manifest(ship: &str) -> String {
    format!(
        "---\nname: note\nproduct: demo\nrepo: my notes\nengine: shell\nscript: echo 1 > new.txt\nship: {ship}\n---\n\
         Note it.\n"
    )
}

#[test]
fn where_results_go_is_said_before_the_work_starts_and_when_it_is_done() {
    let home = Home::new();
    let folder = notes(&home);
    Repo::hello(&home);
    std::fs::create_dir_all(home.path().join("repos/broken/.git")).unwrap();
    let server = up(&home, &[]);
    let said = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    let there = folder.display();
    let into = format!("giga/main in {there}: main is checked out there; --update-checkouts moves it");
    for line in [
        format!(
            "hello             → main in {}",
            home.path().canonicalize().unwrap().join("repos/hello.git").display()
        ),
        format!("my team/my notes  → {into}"),
        "skipped broken: fatal: not a git repository".to_owned(),
    ] {
        assert!(said.contains(&line), "{line}\n{said}");
    }

    let repos = home.path().join("repos");
    let doctor = run(giga(home.path()).env("GIGA_REPOS", repos).args(["doctor", "-o", "json"]));
    let doctor: Value = serde_json::from_str(&doctor.out).unwrap();
    let findings = doctor["findings"].as_array().unwrap();
    let of = |name: &str| findings.iter().find(|f| f["kind"] == "repo" && f["name"] == name).unwrap();
    assert_eq!(of("my team/my notes")["detail"], format!("results go to {into}"));
    assert_eq!(of("broken")["state"], "missing");

    let id = submit(&home, &manifest("manual"));
    event(&home, &id, "job.reported");
    let plan = home.giga(&["job", "plan", "job.md"]).ok();
    assert!(plan.contains(&format!("Its result would be merged into {into}.")), "{plan}");
    let shipped = home.giga(&["job", "ship", &id]);
    assert!(
        shipped.err.contains(&format!("because main is checked out in {there}; `git merge giga/main` there")),
        "{shipped:?}"
    );
    assert!(!folder.join("new.txt").exists());
    git(&folder, &["merge", "-q", "giga/main"]);
    assert!(folder.join("new.txt").exists(), "as it said");
    assert!(home.giga(&["job", "show", &id]).ok().contains("merged into giga/main as"));
    drop(server);
}

#[test]
fn a_checkout_is_updated_where_up_was_told_so() {
    let home = Home::new();
    let folder = notes(&home);
    let _server = up(&home, &["--update-checkouts"]);
    let said = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    assert!(said.contains("→ main in") && said.contains("while its files are unchanged"), "{said}");
    let id = submit(&home, &manifest("auto"));
    event(&home, &id, "job.merged");
    assert!(folder.join("new.txt").exists());
    assert_eq!(job(&home, &id)["merge"]["into"], "main");
}

#[test]
fn a_project_does_not_decide_about_files_of_others() {
    let home = Home::new();
    home.write("giga.toml", "update-checkouts = true\n");
    let refused = home.giga(&["factory", "run", "--once"]).fails(2);
    assert!(refused.contains("may not set `update-checkouts`"), "{refused}");
    home.write("giga.toml", "update-checkouts = 1\n");
    let refused = home.giga(&["config", "show"]).fails(2);
    assert!(refused.contains("`update-checkouts` must be true or false"), "{refused}");
}
