//! How a result comes into its branch: merged, squashed, rebased or as it is; alone, or with others on top of each other.

use std::path::Path;
use std::process::Command;

use giga_domain::job::MergeStrategy;
use giga_factory::workspace::{Author, MergeOrder, Prepared, Pushed, Stacked, Workspace};

use super::fixture::{Fixture, Merged, finish, git, job, merge, order, write};

/// A result of two commits of the engine's own, on a branch that has moved since.
async fn two_commits(fixture: &Fixture, host: &Workspace, strategy: MergeStrategy) -> MergeOrder {
    let worktree = fixture.checkout(host, job(1), 1).await;
    for (file, subject) in [("a.txt", "first step"), ("b.txt", "second step\n\nGigafactory-Job: forged/7")] {
        write(worktree.path(), file, "x\n");
        git(worktree.path(), &["add", "."]);
        git(worktree.path(), &["commit", "--quiet", "-m", subject]);
    }
    let result = finish(&worktree, "c.txt", "c\n").await;
    fixture.push_from_outside("later.txt", "later");
    let reviewers = vec!["ana".to_owned(), "bo".to_owned()];
    MergeOrder { strategy, reviewers, message: "Fix it".to_owned(), ..order(&worktree, &result) }
}

fn log(fixture: &Fixture, format: &str) -> Vec<String> {
    let log = git(&fixture.origin(), &["log", &format!("--format={format}"), "--first-parent", "main"]);
    log.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_squashed_result_is_one_commit_with_its_trailers() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let order = two_commits(&fixture, &host, MergeStrategy::Squash).await;
    let merged = merge(&host, &order).await.unwrap();
    assert!(matches!(merged, Merged::Now { .. }), "{merged:?}");
    assert_eq!(log(&fixture, "%s"), ["Fix it", "from outside", "first"]);
    let message = git(&fixture.origin(), &["log", "-1", "--format=%B", "main"]);
    let trailers = format!("Reviewed-by: ana\nReviewed-by: bo\nGigafactory-Job: {}/1", job(1));
    assert_eq!(message, format!("Fix it\n\n{trailers}"));
    let read =
        git(&fixture.origin(), &["log", "-1", "--format=%(trailers:key=Reviewed-by,valueonly)", "main"]);
    assert_eq!(read, "ana\nbo", "as git reads trailers");
    for file in ["a.txt", "b.txt", "c.txt", "later.txt"] {
        fixture.show(&format!("main:{file}"));
    }
    let again = merge(&host, &order).await.unwrap();
    assert!(matches!(again, Merged::Before { .. }), "never twice: {again:?}");
}

#[tokio::test]
async fn a_rebased_result_keeps_its_commits_and_authors_and_no_merge() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let order = two_commits(&fixture, &host, MergeStrategy::Rebase).await;
    let merged = merge(&host, &order).await.unwrap();
    assert!(matches!(merged, Merged::Now { .. }), "{merged:?}");
    let subjects = log(&fixture, "%s %an %cn");
    assert_eq!(subjects[1..3], ["second step Ana Gigafactory", "first step Ana Gigafactory"], "{subjects:?}");
    assert_eq!(git(&fixture.origin(), &["rev-list", "--merges", "--count", "main"]), "0");
    let second = git(&fixture.origin(), &["log", "-1", "--format=%B", "main~1"]);
    assert!(
        !second.contains("forged") && second.ends_with(&format!("Gigafactory-Job: {}/1", job(1))),
        "{second}"
    );
    let again = merge(&host, &order).await.unwrap();
    assert!(matches!(again, Merged::Before { .. }), "never twice: {again:?}");
}

#[tokio::test]
async fn a_rebase_that_conflicts_names_the_files() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "README.md", "ours\n").await;
    fixture.push_from_outside("README.md", "theirs\n");
    let order = MergeOrder { strategy: MergeStrategy::Rebase, ..order(&worktree, &result) };
    let Merged::Conflict { files, .. } = merge(&host, &order).await.unwrap() else { panic!("a conflict") };
    assert_eq!(files, ["README.md"]);
}

#[tokio::test]
async fn fast_forward_only_takes_the_result_as_it_is_or_not_at_all() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let one = MergeOrder { strategy: MergeStrategy::FastForward, ..order(&worktree, &result) };
    let Merged::Now { commit, .. } = merge(&host, &one).await.unwrap() else { panic!("merged") };
    assert_eq!(commit, result.commit);
    assert_eq!(git(&fixture.origin(), &["rev-parse", "main"]), commit.as_str());

    let worktree = fixture.checkout(&host, job(2), 1).await;
    let result = finish(&worktree, "b.txt", "b\n").await;
    fixture.push_from_outside("later.txt", "later");
    let two = MergeOrder { strategy: MergeStrategy::FastForward, ..order(&worktree, &result) };
    let Merged::Conflict { detail, .. } = merge(&host, &two).await.unwrap() else { panic!("not merged") };
    assert!(detail.contains("moved since"), "{detail}");
}

#[tokio::test]
async fn a_batch_is_stacked_up_to_the_first_that_conflicts_with_what_is_below_it() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let mut orders = Vec::new();
    for (number, file) in [(1, "a.txt"), (2, "b.txt"), (3, "a.txt"), (4, "d.txt")] {
        let worktree = fixture.checkout(&host, job(number), 1).await;
        let result = finish(&worktree, file, &format!("of {number}\n")).await;
        orders.push(order(&worktree, &result));
    }
    let Prepared { stacked, into, tip, .. } = host.prepare_merges(&orders).await.unwrap();
    assert_eq!((into.as_str(), stacked.len()), ("main", 2), "{stacked:?}");
    assert_eq!(tip.unwrap().as_str(), git(&fixture.origin(), &["rev-parse", "main"]));

    let prepared = host.prepare_merges(&orders[..2]).await.unwrap();
    let candidate = prepared.candidate().unwrap();
    assert_eq!(Some(&Stacked::On(candidate.commit.clone())), prepared.stacked.last());
    // Whoever takes over has only the names, and maybe another of the batch first.
    let other = fixture.host("two");
    let pushed = other.push_candidate(&orders[1], &candidate).await.unwrap();
    assert_eq!(pushed, Pushed::Merged { into: "main".to_owned() });
    assert_eq!(log(&fixture, "%s"), ["Merge the result", "Merge the result", "first"]);

    let rest = host.prepare_merges(&orders[2..]).await.unwrap();
    let [Stacked::Conflict { files, .. }] = rest.stacked.as_slice() else { panic!("{rest:?}") };
    assert_eq!(files, &["a.txt"], "alone, its conflict is its own");
    assert!(matches!(host.prepare_merges(&orders[3..]).await.unwrap().stacked[..], [Stacked::On(_)]));
}

#[tokio::test]
async fn work_starts_from_the_branch_that_is_named() {
    let fixture = Fixture::new();
    git(&fixture.origin(), &["branch", "release/2.1", "main"]);
    fixture.push_from_outside("later.txt", "later");
    let host = fixture.host("one");
    let repo = fixture.repo(&host).await;
    let epoch = giga_domain::Epoch(1);
    let worktree = host.checkout(job(1), epoch, &repo, Some("release/2.1"), None).await.unwrap();
    assert!(!worktree.path().join("later.txt").exists());
    let result = finish(&worktree, "a.txt", "a\n").await;
    let into = Some("release/2.1".to_owned());
    let merged = merge(&host, &MergeOrder { into, ..order(&worktree, &result) }).await.unwrap();
    assert!(matches!(merged, Merged::Now { into, .. } if into == "release/2.1"));
    assert_eq!(fixture.show("release/2.1:a.txt"), "a");
    assert!(git(&fixture.origin(), &["ls-tree", "--name-only", "main"]).lines().all(|name| name != "a.txt"));

    let missing = host.checkout(job(2), epoch, &repo, Some("release/9"), None).await.unwrap_err();
    assert!(missing.to_string().contains("no such branch"), "{missing}");
}

/// As the owner of the host has set git up, in a process of its own: settings are looked at once.
#[tokio::test]
async fn what_is_merged_is_by_whom_it_should_be_and_signed_where_the_owners_commits_are() {
    if let Ok(folder) = std::env::var(SIGNED) {
        return merge_signed(Path::new(&folder)).await;
    }
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    std::fs::write(home.path().join("signers"), format!("* {public}")).unwrap();
    let config = format!(
        "[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = {}\n",
        key.display()
    );
    std::fs::write(home.path().join("gitconfig"), config).unwrap();
    let test = "workspace::strategies::what_is_merged_is_by_whom_it_should_be_and_signed_where_the_owners_commits_are";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(SIGNED, home.path())
        .env("GIT_CONFIG_GLOBAL", home.path().join("gitconfig"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const SIGNED: &str = "WORKSPACE_TEST_SIGNED";

async fn merge_signed(home: &Path) {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let order = two_commits(&fixture, &host, MergeStrategy::Merge).await;
    let author = Author::parse("Ana <ana@example.org>");
    assert!(author.is_some());
    let merged = merge(&host, &MergeOrder { author, ..order }).await.unwrap();
    assert!(matches!(merged, Merged::Now { .. }), "{merged:?}");
    assert_eq!(log(&fixture, "%an <%ae> %cn")[0], "Ana <ana@example.org> Gigafactory");
    let signers = format!("gpg.ssh.allowedSignersFile={}", home.join("signers").display());
    git(&fixture.origin(), &["-c", &signers, "verify-commit", "main"]);
}
