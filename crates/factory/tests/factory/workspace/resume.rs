//! Interrupted work goes on: on the same host, on another one, and only from what the job itself left.

use giga_domain::{Checkpoint, Epoch};
use giga_factory::workspace::{Start, WorkspaceError, wip_branch};

use super::fixture::{Fixture, finish, git, job, merge, order, rename_to_old, write};

#[tokio::test]
async fn another_host_resumes_from_the_pushed_checkpoint() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    write(first.path(), "engine.txt", "committed before the kill\n");
    git(first.path(), &["add", "."]);
    git(first.path(), &["commit", "--quiet", "-m", "before the kill"]);
    write(first.path(), "open.txt", "not committed\n");
    let saved = first.checkpoint("every minute", true).await.unwrap().unwrap();

    // The first host is gone. Meanwhile somebody pushed.
    fixture.push_from_outside("other.txt", "other");
    let repo = fixture.repo(&two).await;
    let second = two.checkout(job(1), Epoch(2), &repo, None, Some(&saved.checkpoint)).await.unwrap();
    assert_eq!(second.start(), Start::Resumed);
    assert_eq!(std::fs::read_to_string(second.path().join("open.txt")).unwrap(), "not committed\n");
    assert_eq!(git(second.path(), &["log", "-1", "--format=%s"]), "before the kill");
    assert_eq!(git(second.path(), &["status", "--porcelain"]), "?? open.txt", "as it was left");
    assert!(second.checkpoint("nothing new", true).await.unwrap().is_none());

    let result = finish(&second, "rest.txt", "rest\n").await;
    assert_eq!(result.files_changed, 3, "counted from where the job began, not from the checkpoint");
    merge(&two, &order(&second, &result)).await.unwrap();
    let log = git(&fixture.origin(), &["log", "--format=%s", "main"]);
    assert!(log.contains("before the kill") && !log.contains("wip:"), "{log}");
    assert_eq!(fixture.show("main:open.txt"), "not committed");
}

#[tokio::test]
async fn work_from_before_the_names_changed_goes_on_under_the_new_one() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    write(first.path(), "open.txt", "not committed\n");
    let mut saved = first.checkpoint("every minute", true).await.unwrap().unwrap().checkpoint;
    saved.wip_ref = Some(rename_to_old(&fixture.origin(), &wip_branch(job(1))));

    let repo = fixture.repo(&two).await;
    let newest = Checkpoint { commit: None, ..saved.clone() };
    for (epoch, checkpoint) in [(2, &saved), (3, &newest)] {
        let second = two.checkout(job(1), Epoch(epoch), &repo, None, Some(checkpoint)).await.unwrap();
        assert_eq!(second.start(), Start::Resumed, "{checkpoint:?}");
        assert_eq!(std::fs::read_to_string(second.path().join("open.txt")).unwrap(), "not committed\n");
        write(second.path(), "more.txt", &format!("of epoch {epoch}\n"));
        let again = second.checkpoint("every minute", true).await.unwrap().unwrap();
        assert_eq!((again.checkpoint.wip_ref, again.not_pushed), (Some(wip_branch(job(1))), None));
    }
}

#[tokio::test]
async fn work_that_is_interrupted_again_and_again_is_one_commit_in_the_end() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    std::fs::remove_file(first.path().join("README.md")).unwrap();
    write(first.path(), "a.txt", "1\n");
    let saved = first.checkpoint("first", true).await.unwrap().unwrap().checkpoint;
    let repo = fixture.repo(&two).await;
    let second = two.checkout(job(1), Epoch(2), &repo, None, Some(&saved)).await.unwrap();
    assert!(!second.path().join("README.md").exists(), "what was deleted stays deleted");
    write(second.path(), "b.txt", "2\n");
    let saved = second.checkpoint("second", true).await.unwrap().unwrap().checkpoint;
    drop(first);
    let repo = fixture.repo(&one).await;
    let third = one.checkout(job(1), Epoch(3), &repo, None, Some(&saved)).await.unwrap();
    let result = finish(&third, "c.txt", "3\n").await;
    assert_eq!(result.files_changed, 4);
    let log = git(&fixture.origin(), &["log", "--format=%s", &format!("main..{}", result.branch)]);
    assert_eq!(log.lines().count(), 1, "{log}");
    let files = git(&fixture.origin(), &["ls-tree", "--name-only", &result.branch]);
    assert!(files.contains("a.txt\nb.txt\nc.txt") && !files.contains("README.md"), "{files}");
}

#[tokio::test]
async fn the_same_host_resumes_from_what_was_never_pushed() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let first = fixture.checkout(&host, job(1), 1).await;
    write(first.path(), "a.txt", "a\n");
    let saved = first.checkpoint("local", false).await.unwrap().unwrap();
    assert!(saved.not_pushed.is_some());
    let repo = fixture.repo(&host).await;
    let second = host.checkout(job(1), Epoch(2), &repo, None, Some(&saved.checkpoint)).await.unwrap();
    assert!(second.path().join("a.txt").is_file());

    let elsewhere = fixture.host("two");
    let repo = fixture.repo(&elsewhere).await;
    let lost = elsewhere.checkout(job(1), Epoch(3), &repo, None, Some(&saved.checkpoint)).await.unwrap();
    assert_eq!(lost.start(), Start::CheckpointMissing, "it begins again and says so");
    assert!(!lost.path().join("a.txt").exists());
}

#[tokio::test]
async fn without_a_recorded_commit_the_branch_is_enough() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    write(first.path(), "a.txt", "a\n");
    first.checkpoint("pushed", true).await.unwrap().unwrap();
    let repo = fixture.repo(&two).await;
    let checkpoint = Checkpoint { wip_ref: Some(wip_branch(job(1))), ..Checkpoint::default() };
    let second = two.checkout(job(1), Epoch(2), &repo, None, Some(&checkpoint)).await.unwrap();
    assert_eq!(second.start(), Start::Resumed);
    let session_only = Checkpoint { session_id: Some("s".to_owned()), ..Checkpoint::default() };
    let third = two.checkout(job(2), Epoch(1), &repo, None, Some(&session_only)).await.unwrap();
    assert_eq!(third.start(), Start::Fresh);
}

#[tokio::test]
async fn changes_asked_for_at_review_continue_on_the_result() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    let result = finish(&first, "a.txt", "a\n").await;
    let repo = fixture.repo(&two).await;
    let second = two.checkout(job(1), Epoch(2), &repo, None, Some(&result.checkpoint())).await.unwrap();
    assert_eq!(second.started_from(), Some(&result.commit));
    let result = finish(&second, "b.txt", "b\n").await;
    assert_eq!(result.files_changed, 2);
    assert!(git(&fixture.origin(), &["log", "--format=%s", &result.branch]).lines().count() == 3);
}

/// Whoever names a job gives its result's commit the title.
#[tokio::test]
async fn a_result_that_is_called_like_a_checkpoint_stays_a_commit() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    write(first.path(), "a.txt", "a\n");
    let result = first.commit_result("wip: the first half", "").await.unwrap().unwrap();
    first.push_result(&result).await.unwrap();
    let repo = fixture.repo(&two).await;
    let second = two.checkout(job(1), Epoch(2), &repo, None, Some(&result.checkpoint())).await.unwrap();
    assert_eq!(second.started_from(), Some(&result.commit));
    assert_eq!(git(second.path(), &["log", "-1", "--format=%s"]), "wip: the first half");
    assert_eq!(git(second.path(), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_zombie_cannot_replace_its_successors_checkpoint() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let zombie = fixture.checkout(&one, job(1), 1).await;
    write(zombie.path(), "a.txt", "1\n");
    let saved = zombie.checkpoint("before the pause", true).await.unwrap().unwrap();
    let repo = fixture.repo(&two).await;
    let successor = two.checkout(job(1), Epoch(2), &repo, None, Some(&saved.checkpoint)).await.unwrap();

    // The zombie wakes up first: its successor overrules it.
    write(zombie.path(), "a.txt", "late\n");
    zombie.checkpoint("awake again", true).await.unwrap().unwrap();
    write(successor.path(), "a.txt", "2\n");
    let overruled = successor.checkpoint("at work", true).await.unwrap().unwrap();
    assert_eq!(overruled.not_pushed, None);

    // From then on the zombie learns from git what the coordinator will tell it, too.
    write(zombie.path(), "a.txt", "later\n");
    let fenced = zombie.checkpoint("once more", true).await.unwrap_err();
    assert!(matches!(fenced, WorkspaceError::Superseded { theirs: Epoch(2), .. }), "{fenced}");
    assert_eq!(fixture.show(&format!("{}:a.txt", wip_branch(job(1)))), "2");
}

#[tokio::test]
async fn a_kill_in_the_middle_leaves_what_can_be_found_again() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 3).await;
    write(worktree.path(), "a.txt", "unsaved\n");
    let path = worktree.path().to_owned();
    // The lock goes with the process; nothing else is cleaned up.
    drop(worktree);

    let restarted = fixture.host("one");
    let leftovers = restarted.find_leftovers().await;
    assert_eq!(leftovers.len(), 1);
    assert_eq!((leftovers[0].job, leftovers[0].epoch, &leftovers[0].path), (job(1), Epoch(3), &path));
    let adopted = restarted.adopt(&leftovers[0]).unwrap();
    assert!(restarted.adopt(&leftovers[0]).is_err(), "once");
    let saved = adopted.checkpoint("after a restart", true).await.unwrap().unwrap();
    assert_eq!(saved.not_pushed, None);
    assert_eq!(fixture.show(&format!("{}:a.txt", wip_branch(job(1)))), "unsaved");
    drop(adopted);

    let repo = fixture.repo(&restarted).await;
    let again = restarted.checkout(job(1), Epoch(3), &repo, None, None).await.unwrap();
    assert!(again.path().join("a.txt").is_file(), "the same epoch gets its folder back as it was");
}

/// Engines know their sessions by the folder.
#[tokio::test]
async fn every_epoch_of_a_job_works_at_the_same_path() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let first = fixture.checkout(&host, job(1), 1).await;
    let path = first.path().to_owned();
    write(&path, "a.txt", "of the first\n");
    drop(first);
    // Its agent died. The work is put aside, and found there like any other.
    let second = fixture.checkout(&host, job(1), 2).await;
    assert_eq!(second.path(), path);
    assert!(!path.join("a.txt").exists(), "nothing of the first is in the way of the second");
    write(&path, "b.txt", "of the second\n");
    let leftovers = host.find_leftovers().await;
    assert_eq!(leftovers.iter().map(|left| left.epoch).collect::<Vec<_>>(), [Epoch(1)]);
    let adopted = host.adopt(&leftovers[0]).unwrap();
    let branch = adopted.quarantine("a later epoch took its place").await.unwrap();
    assert_eq!(git(&fixture.mirror("one"), &["show", &format!("{branch}:a.txt")]), "of the first");
    adopted.remove().await.unwrap();
    assert!(path.join("b.txt").is_file(), "the second goes on");
    second.remove().await.unwrap();
    let third = fixture.checkout(&host, job(1), 3).await;
    assert_eq!(third.path(), path);
}

#[tokio::test]
async fn a_place_that_is_taken_is_left_alone() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let first = fixture.checkout(&host, job(1), 1).await;
    write(first.path(), "a.txt", "a\n");
    let second = fixture.checkout(&host, job(1), 2).await;
    assert_ne!(second.path(), first.path(), "somebody is still in it");
    assert!(first.path().join("a.txt").is_file());
    drop(second);
    let again = fixture.checkout(&host, job(1), 2).await;
    assert_ne!(again.path(), first.path(), "an epoch goes on where it began");
    drop((first, again));
    // Both are leftovers now; a later epoch moves only what is in its way.
    let third = fixture.checkout(&host, job(1), 3).await;
    write(third.path(), "c.txt", "c\n");
    let epochs: Vec<_> = host.find_leftovers().await.iter().map(|left| left.epoch).collect();
    assert_eq!(epochs, [Epoch(1), Epoch(2)]);
    // A grant that came late does not push the newer one out.
    drop(third);
    let repo = fixture.repo(&host).await;
    let late = host.checkout(job(1), Epoch(2), &repo, None, None).await;
    assert!(late.is_ok(), "it has a folder of its own: {late:?}");
    for left in host.find_leftovers().await.iter().filter(|left| left.epoch == Epoch(1)) {
        host.adopt(left).unwrap().remove().await.unwrap();
    }
    let late = host.checkout(job(1), Epoch(1), &repo, None, None).await;
    assert!(matches!(late, Err(WorkspaceError::Superseded { theirs: Epoch(3), .. })), "{late:?}");
}

#[tokio::test]
async fn a_kill_during_checkout_leaves_nothing_to_adopt() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let folder = fixture.path().join(format!("one/work/{}", job(1)));
    write(&folder, "tree/half", "half");
    assert!(host.find_leftovers().await.is_empty());
    assert!(!folder.exists(), "half made, without work in it");
    write(&folder, "tree/half", "half");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert!(!worktree.path().join("half").exists());
}

#[tokio::test]
async fn locks_of_a_killed_git_do_not_stop_the_next() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    let mirror = fixture.mirror("one");
    write(&mirror, &format!("refs/heads/giga/wip/{}.lock", job(1)), "");
    write(&mirror, "packed-refs.lock", "");
    write(worktree.path().parent().unwrap(), "snapshot.index.lock", "");
    let slug = mirror.file_stem().unwrap().to_str().unwrap().to_owned();
    write(&fixture.path().join("one/locks"), &format!("{slug}.repo"), "busy\n");
    assert!(worktree.checkpoint("all the same", true).await.unwrap().is_some());
}

#[tokio::test]
async fn a_checkpoint_names_only_its_own_job() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let repo = fixture.repo(&host).await;
    for hostile in [
        wip_branch(job(2)),
        "main".to_owned(),
        "--upload-pack=touch canary".to_owned(),
        "giga/wip/../../main".to_owned(),
        format!("{}\nrefs/heads/main", wip_branch(job(1))),
        format!("giga/quarantine/{}/1", job(1)),
        String::new(),
    ] {
        let checkpoint = Checkpoint { wip_ref: Some(hostile.clone()), ..Checkpoint::default() };
        let refused = host.checkout(job(1), Epoch(1), &repo, None, Some(&checkpoint)).await;
        assert!(matches!(refused, Err(WorkspaceError::Refused { .. })), "{hostile:?}");
    }
    for hostile in ["HEAD", "main", "--all", "deadbeef", "../../x"] {
        let checkpoint = Checkpoint { commit: Some(hostile.to_owned()), ..Checkpoint::default() };
        let refused = host.checkout(job(1), Epoch(1), &repo, None, Some(&checkpoint)).await;
        assert!(matches!(refused, Err(WorkspaceError::Refused { .. })), "{hostile:?}");
    }
}
