//! One job on one host: from checkout to result, and every way out in between.

use std::path::Path;

use giga_domain::Epoch;
use giga_factory::workspace::{Start, WorkspaceError, job_branch, quarantine_branch, wip_branch};

use super::fixture::{Fixture, finish, git, git_fails, job, merge, order, write};

#[tokio::test]
async fn from_checkout_to_result() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert_eq!(worktree.start(), Start::Fresh);
    assert_eq!(std::fs::read_to_string(worktree.path().join("README.md")).unwrap(), "hello\n");

    // The engine commits once and leaves the rest in its folder.
    write(worktree.path(), "src/engine.txt", "by the engine\n");
    git(worktree.path(), &["add", "."]);
    git(worktree.path(), &["commit", "--quiet", "-m", "the engine's own commit"]);
    write(worktree.path(), "left.txt", "a\nb\n");
    write(worktree.path(), "README.md", "changed\n");
    write(worktree.path(), "noise.log", "ignored\n");

    let result = worktree.commit_result("Fix it", "because").await.unwrap().unwrap();
    let diff = worktree.diff(&result.commit, "", 1 << 20).await.unwrap();
    assert!(diff.text.contains("+by the engine") && diff.text.contains("-hello") && !diff.truncated);
    assert!(worktree.diff(&result.commit, "", 20).await.unwrap().truncated);
    assert_eq!(result.branch, job_branch(job(1), Epoch(1)));
    assert_eq!((result.files_changed, result.lines_added, result.lines_removed), (3, 4, 1));
    worktree.push_result(&result).await.unwrap();
    worktree.push_result(&result).await.expect("repeating it changes nothing");

    let log = git(&fixture.origin(), &["log", "--format=%s", &result.branch]);
    assert_eq!(log, "Fix it\nthe engine's own commit\nfirst");
    let files = git(&fixture.origin(), &["ls-tree", "-r", "--name-only", &result.branch]);
    assert!(files.contains("left.txt") && !files.contains("noise.log"));
    let message = git(&fixture.origin(), &["log", "-1", "--format=%B", &result.branch]);
    assert!(message.trim_end().ends_with(&format!("Gigafactory-Job: {}/1", job(1))));

    let again = worktree.commit_result("Fix it", "because").await.unwrap().unwrap();
    assert_eq!(again.commit, result.commit, "a repeated call makes no second result");

    let folder = worktree.path().to_owned();
    worktree.remove().await.unwrap();
    assert!(!folder.exists() && !folder.parent().unwrap().exists());
    assert_eq!(fixture.origin_branches(), [result.branch, "main".to_owned()]);
}

#[tokio::test]
async fn nothing_changed_is_no_result() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "noise.log", "ignored");
    assert_eq!(worktree.checkpoint("nothing yet", true).await.unwrap(), None);
    assert_eq!(worktree.commit_result("x", "").await.unwrap(), None);
    assert_eq!(fixture.origin_branches(), ["main"]);
}

#[tokio::test]
async fn a_checkpoint_does_not_disturb_the_engine() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "staged.txt", "staged\n");
    git(worktree.path(), &["add", "staged.txt"]);
    write(worktree.path(), "untracked.txt", "untracked\n");
    std::fs::remove_file(worktree.path().join("README.md")).unwrap();
    let before = (
        git(worktree.path(), &["status", "--porcelain", "--branch"]),
        git(worktree.path(), &["rev-parse", "HEAD"]),
        std::fs::read(worktree.path().join(".git/index")).unwrap(),
    );

    let saved = worktree.checkpoint("half way", true).await.unwrap().unwrap();
    assert_eq!(saved.not_pushed, None);
    assert!(saved.left_out.is_empty());
    assert_eq!(saved.checkpoint.wip_ref, Some(wip_branch(job(1))));
    let after = (
        git(worktree.path(), &["status", "--porcelain", "--branch"]),
        git(worktree.path(), &["rev-parse", "HEAD"]),
        before.2.clone(),
    );
    assert_eq!(before, after);

    let files = git(&fixture.origin(), &["ls-tree", "-r", "--name-only", &wip_branch(job(1))]);
    assert_eq!(files, ".gitignore\nsrc/lib.txt\nstaged.txt\nuntracked.txt");
    assert_eq!(worktree.checkpoint("same", true).await.unwrap(), None, "nothing new since");
    write(worktree.path(), "untracked.txt", "more\n");
    assert!(worktree.checkpoint("again", true).await.unwrap().is_some(), "the branch moves without a rebase");
    assert_eq!(git(&fixture.origin(), &["show", &format!("{}:untracked.txt", wip_branch(job(1)))]), "more");
}

#[tokio::test]
async fn a_checkpoint_that_could_not_be_pushed_is_pushed_later() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a");
    let away = fixture.path().join("away.git");
    std::fs::rename(fixture.origin(), &away).unwrap();
    let saved = worktree.checkpoint("offline", true).await.unwrap().unwrap();
    assert!(saved.not_pushed.unwrap().contains("cannot be reached"));
    assert!(fixture.mirror_branches("one").contains(&wip_branch(job(1))), "it is safe on this host");
    std::fs::rename(&away, fixture.origin()).unwrap();
    let later = worktree.checkpoint("online", true).await.unwrap().unwrap();
    assert_eq!((later.not_pushed, later.checkpoint.commit), (None, saved.checkpoint.commit));
    assert!(fixture.origin_branches().contains(&wip_branch(job(1))));
}

#[tokio::test]
async fn an_engine_cannot_push_by_accident() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a");
    git(worktree.path(), &["add", "."]);
    git(worktree.path(), &["commit", "--quiet", "-m", "a"]);
    let printed = git_fails(worktree.path(), &["push", "origin", "HEAD:main"]);
    assert!(printed.contains("the-factory-pushes-the-result"), "{printed}");
    git(worktree.path(), &["fetch", "--quiet", "origin"]);
    assert_eq!(git(worktree.path(), &["log", "--format=%s", "origin/HEAD"]), "first");
}

#[tokio::test]
async fn what_is_fenced_is_kept_here_and_never_pushed() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "zombie.txt", "late\n");
    let result = worktree.commit_result("late", "").await.unwrap().unwrap();

    let branch = worktree.quarantine("epoch 2 was granted").await.unwrap();
    assert_eq!(branch, quarantine_branch(job(1), Epoch(1)));
    assert_eq!(git(&fixture.mirror("one"), &["show", &format!("{branch}:zombie.txt")]), "late");

    assert!(matches!(worktree.push_result(&result).await, Err(WorkspaceError::Refused { .. })));
    write(worktree.path(), "zombie.txt", "later\n");
    let saved = worktree.checkpoint("still running", true).await.unwrap().unwrap();
    assert!(saved.not_pushed.unwrap().contains("quarantine"));
    drop(worktree);
    let leftover = host.find_leftovers().await.remove(0);
    let adopted = host.adopt(&leftover).unwrap();
    assert!(adopted.trees()[0].push_result(&result).await.is_err(), "a restart does not forget it");
    assert_eq!(fixture.origin_branches(), ["main"]);
}

#[tokio::test]
async fn a_result_goes_to_the_branch_of_its_own_epoch() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 2).await;
    write(worktree.path(), "a.txt", "a");
    let mut result = worktree.commit_result("a", "").await.unwrap().unwrap();
    for wrong in
        [job_branch(job(1), Epoch(1)), job_branch(job(2), Epoch(2)), "main".to_owned(), "--all".to_owned()]
    {
        result.branch = wrong;
        assert!(matches!(worktree.push_result(&result).await, Err(WorkspaceError::Refused { .. })));
    }
    // Somebody else's commit on our branch is not overwritten.
    result.branch = job_branch(job(1), Epoch(2));
    let head = git(&fixture.origin(), &["commit-tree", "-m", "foreign", "main^{tree}"]);
    git(&fixture.origin(), &["update-ref", &format!("refs/heads/{}", result.branch), &head]);
    let refused = worktree.push_result(&result).await.unwrap_err();
    assert!(matches!(refused, WorkspaceError::PushRefused { .. }), "{refused}");
    assert_eq!(git(&fixture.origin(), &["rev-parse", &result.branch]), head);
}

#[tokio::test]
async fn an_empty_repository_gets_its_first_commit() {
    let fixture = Fixture::empty();
    git(&fixture.origin(), &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert_eq!((worktree.base(), worktree.started_from()), (None, None));
    assert_eq!(worktree.checkpoint("nothing", true).await.unwrap(), None);
    write(worktree.path(), "first.txt", "1\n");
    assert!(worktree.checkpoint("wip", true).await.unwrap().is_some());
    let result = finish(&worktree, "second.txt", "2\n").await;
    assert!(worktree.diff(&result.commit, "", 1 << 20).await.unwrap().text.contains("+1"));
    assert_eq!((result.files_changed, result.lines_added), (2, 2));
    merge(&host, &order(&worktree, &result)).await.unwrap();
    assert_eq!(fixture.show("trunk:first.txt"), "1", "merged into the branch that HEAD was to be");
    let next = fixture.checkout(&host, job(2), 1).await;
    assert!(next.path().join("second.txt").is_file());
}

#[tokio::test]
async fn a_detached_head_at_the_origin_is_a_place_to_start() {
    let fixture = Fixture::new();
    let commit = git(&fixture.origin(), &["rev-parse", "main"]);
    fixture.push_from_outside("later.txt", "later");
    std::fs::write(fixture.origin().join("HEAD"), format!("{commit}\n")).unwrap();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert_eq!(worktree.base().unwrap().as_str(), commit);
    let result = finish(&worktree, "a.txt", "a").await;
    let mut order = order(&worktree, &result);
    assert!(
        matches!(merge(&host, &order).await, Err(WorkspaceError::Refused { .. })),
        "where to is not known"
    );
    order.into = Some("main".to_owned());
    merge(&host, &order).await.unwrap();
    assert_eq!(fixture.show("main:a.txt"), "a");
    assert_eq!(fixture.show("main:later.txt"), "later");
}

#[tokio::test]
async fn an_engine_may_detach_its_head_or_work_on_a_branch_of_its_own() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    for (number, how) in [(1, ["checkout", "--quiet", "--detach"]), (2, ["checkout", "--quiet", "-bmine"])] {
        let worktree = fixture.checkout(&host, job(number), 1).await;
        git(worktree.path(), &how);
        write(worktree.path(), "a.txt", "a\n");
        git(worktree.path(), &["add", "."]);
        git(worktree.path(), &["commit", "--quiet", "-m", "on its own"]);
        let result = worktree.commit_result("x", "").await.unwrap().unwrap();
        assert_eq!(
            result.commit.as_str(),
            git(worktree.path(), &["rev-parse", "HEAD"]),
            "nothing to add to it"
        );
    }
}

#[tokio::test]
async fn large_and_binary_files_pass_through() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let bytes: Vec<u8> = (0..8_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(worktree.path().join("big.bin"), &bytes).unwrap();
    let result = finish(&worktree, "a.txt", "a\n").await;
    assert_eq!((result.files_changed, result.lines_added), (2, 1), "binary files have no lines");
    let size = git(&fixture.origin(), &["cat-file", "-s", &format!("{}:big.bin", result.branch)]);
    assert_eq!(size, bytes.len().to_string());
    assert_eq!(result.binary, ["big.bin"]);
    let diff = worktree.diff(&result.commit, "", 64 << 10).await.unwrap();
    assert!(diff.text.contains("Binary files") && !diff.truncated);
}

#[tokio::test]
async fn an_origin_that_is_gone_is_an_infrastructure_failure_that_says_so() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let repo = fixture.repo(&host).await;
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a");
    let result = worktree.commit_result("a", "").await.unwrap().unwrap();
    std::fs::rename(fixture.origin(), fixture.path().join("away.git")).unwrap();
    let errors = [
        host.checkout(job(2), Epoch(1), &repo, None, None).await.unwrap_err(),
        worktree.push_result(&result).await.unwrap_err(),
        merge(&host, &order(&worktree, &result)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, WorkspaceError::Unreachable { .. }), "{error}");
        assert_eq!(error.fail_reason(), giga_domain::FailReason::Infrastructure);
        assert!(error.is_retryable() && error.to_string().contains("origin.git"), "{error}");
    }
    assert!(is_empty(&fixture.path().join("one/work"), &format!("{}.1", job(2))), "nothing half made stays");
}

fn is_empty(folder: &Path, name: &str) -> bool {
    !folder.join(name).exists()
}

#[tokio::test]
async fn a_folder_is_held_by_one_at_a_time() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let other_process = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let repo = fixture.repo(&host).await;
    let refused = other_process.checkout(job(1), Epoch(1), &repo, None, None).await.unwrap_err();
    assert!(matches!(refused, WorkspaceError::InUse { .. }));
    assert!(other_process.find_leftovers().await.is_empty());
    let next_epoch = other_process.checkout(job(1), Epoch(2), &repo, None, None).await.unwrap();
    assert_ne!(next_epoch.path(), worktree.path(), "a successor never meets its predecessor");
}
