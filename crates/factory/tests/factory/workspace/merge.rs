//! Merging on the coordinator's word: once, without force, and with a clear answer when it cannot be.

use std::os::unix::fs::PermissionsExt;

use giga_domain::Epoch;
use giga_domain::job::MergeStrategy;
use giga_factory::workspace::{MergeOrder, Pushed, WorkspaceError, job_branch};

use super::fixture::{Fixture, Merged, candidate, finish, git, job, merge, order, rename_to_old, write};

#[tokio::test]
async fn a_repeated_order_finds_the_merge() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let order = order(&worktree, &result);
    let Merged::Now { commit, into } = merge(&host, &order).await.unwrap() else { panic!("merged") };
    assert_eq!(into, "main");
    assert_eq!(git(&fixture.origin(), &["rev-parse", "main"]), commit.as_str());
    let message = git(&fixture.origin(), &["log", "-1", "--format=%B", "main"]);
    assert!(message.starts_with("Merge the result") && message.contains(&format!("{}/1", job(1))));

    fixture.push_from_outside("later.txt", "later");
    let again = Merged::Before { commit, into };
    assert_eq!(merge(&host, &order).await.unwrap(), again);
    // Another host, after the branch was cleaned up.
    git(&fixture.origin(), &["branch", "--quiet", "-D", &result.branch]);
    assert_eq!(merge(&fixture.host("two"), &order).await.unwrap(), again);
    let merges = git(&fixture.origin(), &["rev-list", "--merges", "--count", "main"]);
    assert_eq!(merges, "1");
}

#[tokio::test]
async fn another_host_may_do_the_merging() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let worktree = fixture.checkout(&one, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let merged = merge(&two, &order(&worktree, &result)).await.unwrap();
    assert!(matches!(merged, Merged::Now { .. }));
    assert_eq!(fixture.show("main:a.txt"), "a");
}

#[tokio::test]
async fn a_result_from_before_the_names_changed_is_merged() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let worktree = fixture.checkout(&one, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let mut order = order(&worktree, &result);
    order.branch = rename_to_old(&fixture.origin(), &result.branch);
    let mut other = order.clone();
    other.branch = order.branch.replace("/1", "/2");
    assert!(matches!(merge(&two, &other).await, Err(WorkspaceError::Refused { .. })));
    let merged = merge(&two, &order).await.unwrap();
    assert!(matches!(merged, Merged::Now { .. }), "{merged:?}");
    assert_eq!(fixture.show("main:a.txt"), "a");
}

#[tokio::test]
async fn a_conflict_names_its_files_and_changes_nothing() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "src/lib.txt", "one\nours\nthree\n");
    write(worktree.path(), "new.txt", "fine\n");
    let result = finish(&worktree, "README.md", "ours\n").await;
    fixture.push_from_outside("README.md", "theirs\n");
    fixture.push_from_outside("src/lib.txt", "one\ntheirs\nthree\n");
    let before = git(&fixture.origin(), &["rev-parse", "main"]);
    let outcome = merge(&host, &order(&worktree, &result)).await.unwrap();
    let Merged::Conflict { files, detail } = outcome else { panic!("{outcome:?}") };
    assert_eq!(files, ["README.md", "src/lib.txt"]);
    assert!(detail.contains("CONFLICT"), "{detail}");
    assert_eq!(git(&fixture.origin(), &["rev-parse", "main"]), before);
}

/// The origin's own hook plays the competitor: on the first pushes to main it moves main itself, then lets git
/// find out.
fn race(fixture: &Fixture, times: usize) {
    let hook = fixture.origin().join("hooks/pre-receive");
    let origin = fixture.origin();
    let script = format!(
        "#!/bin/sh\n\
         unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
         cd '{origin}' || exit 1\n\
         while read -r old new ref; do [ \"$ref\" = refs/heads/main ] || exit 0; done\n\
         n=$(cat races 2>/dev/null || echo 0)\n\
         [ \"$n\" -ge {times} ] && exit 0\n\
         echo $((n + 1)) > races\n\
         export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x\n\
         c=$(git commit-tree -m \"race $n\" -p main 'main^{{tree}}') && git update-ref refs/heads/main \"$c\"\n",
        origin = origin.display()
    );
    write(&fixture.origin(), "hooks/pre-receive", &script);
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_push_that_lost_a_race_is_tried_again() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    race(&fixture, 3);
    let merged = merge(&host, &order(&worktree, &result)).await.unwrap();
    assert!(matches!(merged, Merged::Now { .. }), "{merged:?}");
    let log = git(&fixture.origin(), &["log", "--format=%s", "--first-parent", "main"]);
    assert_eq!(log, "Merge the result\nrace 2\nrace 1\nrace 0\nfirst");
}

#[tokio::test]
async fn a_candidate_is_pushed_onto_its_own_tip_and_no_other() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let order = order(&worktree, &result);
    let candidate = candidate(&host, &order).await;
    assert_eq!(git(&fixture.origin(), &["log", "--format=%s", "main"]), "first", "nothing is pushed yet");
    fixture.push_from_outside("later.txt", "later");
    let before = git(&fixture.origin(), &["rev-parse", "main"]);
    assert_eq!(host.push_candidate(&order, &candidate).await.unwrap(), Pushed::Outrun);
    assert_eq!(git(&fixture.origin(), &["rev-parse", "main"]), before);
}

#[tokio::test]
async fn whoever_takes_over_pushes_the_very_same_commit_and_the_first_one_changes_nothing() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let worktree = fixture.checkout(&one, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let order = order(&worktree, &result);
    let candidate = candidate(&one, &order).await;
    let done = Pushed::Merged { into: "main".to_owned() };
    assert_eq!(two.push_candidate(&order, &candidate).await.unwrap(), done);
    fixture.push_from_outside("later.txt", "later");
    assert_eq!(one.push_candidate(&order, &candidate).await.unwrap(), done, "it is in");
    assert_eq!(git(&fixture.origin(), &["rev-list", "--merges", "--count", "main"]), "1");
}

#[tokio::test]
async fn the_merged_tree_is_laid_out_as_a_clone_would_be_and_goes_again() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    fixture.push_from_outside("later.txt", "later");
    let order = order(&worktree, &result);
    let candidate = candidate(&host, &order).await;
    let tree = host.candidate_tree(&order, &candidate, None, &[]).await.unwrap();
    let path = tree.path().to_owned();
    assert!(path.join("a.txt").is_file() && path.join("later.txt").is_file());
    drop(tree);
    assert!(!path.exists());
}

#[tokio::test]
async fn an_origin_that_says_no_is_quoted() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    write(&fixture.origin(), "hooks/pre-receive", "#!/bin/sh\necho main is frozen >&2\nexit 1\n");
    let hook = fixture.origin().join("hooks/pre-receive");
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = merge(&host, &order(&worktree, &result)).await.unwrap_err();
    assert!(matches!(refused, WorkspaceError::PushRefused { .. }));
    assert!(refused.to_string().contains("main is frozen") && !refused.is_retryable(), "{refused}");
}

#[tokio::test]
async fn an_order_must_fit_what_it_is_about() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let good = order(&worktree, &result);

    let mut zombie = good.clone();
    zombie.epoch = Epoch(2);
    let mut foreign = good.clone();
    foreign.branch = job_branch(job(2), Epoch(1));
    let mut moved = good.clone();
    moved.commit = "1".repeat(40).parse().unwrap();
    let mut hostile = good.clone();
    hostile.into = Some("--force".to_owned());
    let mut sideways = good.clone();
    sideways.into = Some("aq/job/x".to_owned());
    let mut inwards = good.clone();
    inwards.into = Some(job_branch(job(2), Epoch(1)));
    for order in [zombie, foreign, moved, hostile, sideways, inwards] {
        let refused = merge(&host, &order).await;
        assert!(matches!(refused, Err(WorkspaceError::Refused { .. })), "{order:?}: {refused:?}");
    }
    assert_eq!(git(&fixture.origin(), &["log", "--format=%s", "main"]), "first");
}

#[tokio::test]
async fn a_history_from_nothing_becomes_a_commit_on_the_base() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    git(worktree.path(), &["checkout", "--quiet", "--orphan", "fresh"]);
    git(worktree.path(), &["commit", "--quiet", "-m", "from nothing"]);
    let result = finish(&worktree, "a.txt", "a\n").await;
    assert!(result.squashed);
    let orphan = git(worktree.path(), &["rev-parse", "HEAD"]);
    let order = order(&worktree, &result);
    let outcome = merge(&host, &order).await.unwrap();
    assert!(matches!(outcome, Merged::Now { .. }), "{outcome:?}");
    assert_eq!(fixture.show("main:a.txt"), "a");
    // As a factory of before reported it.
    git(&fixture.origin(), &["fetch", "--quiet", worktree.path().to_str().unwrap(), "HEAD"]);
    git(&fixture.origin(), &["update-ref", &format!("refs/heads/{}", order.branch), &orphan]);
    let order = MergeOrder { commit: orphan.parse().unwrap(), base: None, ..order };
    let outcome = merge(&fixture.host("two"), &order).await.unwrap();
    assert!(matches!(outcome, Merged::Conflict { .. }), "{outcome:?}");
}

/// Whoever made the result: what is not the job's own commits on the base that it was shown against is not merged.
#[tokio::test]
async fn a_result_with_commits_of_others_is_refused() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let good = order(&worktree, &result);
    // The same files, on top of what has come in since.
    fixture.push_from_outside("security.txt", "fixed\n");
    let origin = fixture.origin();
    let evil =
        git(&origin, &["commit-tree", "-p", "main", "-m", "evil", &format!("{}^{{tree}}", result.commit)]);
    git(&origin, &["update-ref", &format!("refs/heads/{}", result.branch), &evil]);
    let other = fixture.host("two");
    for strategy in
        [MergeStrategy::Merge, MergeStrategy::Squash, MergeStrategy::Rebase, MergeStrategy::FastForward]
    {
        let order = MergeOrder { commit: evil.parse().unwrap(), strategy, ..good.clone() };
        let outcome = merge(&other, &order).await.unwrap();
        assert!(
            matches!(&outcome, Merged::Conflict { detail, .. } if detail.contains("its own commits")),
            "{outcome:?}"
        );
    }
    assert_eq!(fixture.show("main:security.txt"), "fixed");
}
