//! Cleaning up, and all the ways in which it must not.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{Epoch, JobId, Stage};
use giga_factory::workspace::gc::GcKind;
use giga_factory::workspace::{GcOptions, JobStates, Known, job_branch, quarantine_branch, wip_branch};

use super::fixture::{
    ENDED, Fixture, KEPT, Stages, far_future, finish, git, job, merge, order, rename_to_old, soon, write,
};

#[tokio::test]
async fn a_shipped_job_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    let result = finish(&worktree, "b.txt", "b\n").await;
    merge(&host, &order(&worktree, &result)).await.unwrap();
    drop(worktree);
    let shipped = Stages::all(&[(job(1), Stage::Shipped)]);

    let dry = host.gc(&shipped, GcOptions { dry_run: true, ..far_future() }).await.unwrap();
    assert_eq!(dry.removed.len(), 5, "{dry:?}");
    assert_eq!(fixture.origin_branches().len(), 3, "a dry run touches nothing");
    assert_eq!(host.find_leftovers().await.len(), 1);

    let report = host.gc(&shipped, far_future()).await.unwrap();
    assert_eq!(report.removed.len(), 5, "{report:?}");
    assert_eq!(fixture.origin_branches(), ["main"]);
    assert!(fixture.mirror_branches("one").is_empty());
    assert!(host.find_leftovers().await.is_empty());
    assert_eq!(git(&fixture.mirror("one"), &["for-each-ref", "refs/giga/engine", "refs/giga/wip"]), "");

    let locks = std::fs::read_dir(fixture.path().join("one/locks")).unwrap().count();
    assert_eq!(locks, 1, "the repository's own");

    let again = host.gc(&shipped, far_future()).await.unwrap();
    assert!(again.removed.is_empty() && again.kept.is_empty(), "{again:?}");
}

#[tokio::test]
async fn packing_keeps_what_work_folders_borrow() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let mirror = fixture.mirror("one");
    // Enough loose objects, none of which a ref reaches.
    let folder = fixture.path().join("loose");
    let mut names = String::new();
    for n in 0..5_100 {
        write(&folder, &n.to_string(), &format!("object {n}"));
        names.push_str(folder.join(n.to_string()).to_str().unwrap());
        names.push('\n');
    }
    let list = fixture.path().join("list");
    std::fs::write(&list, names).unwrap();
    let stdin = std::fs::File::open(list).unwrap();
    let written = std::process::Command::new("git")
        .current_dir(&mirror)
        .args(["hash-object", "-w", "--stdin-paths"])
        .stdin(stdin)
        .output()
        .unwrap();
    let ids = String::from_utf8(written.stdout).unwrap();
    host.gc(&Stages::all(&[(job(1), Stage::Building)]), far_future()).await.unwrap();
    let counted = git(&mirror, &["count-objects"]);
    assert!(counted.starts_with("0 objects"), "{counted}");
    for id in ids.lines().step_by(500) {
        git(&mirror, &["cat-file", "-e", id]);
    }
    assert_eq!(git(worktree.path(), &["status", "--porcelain"]), "");
    git(worktree.path(), &["fsck", "--connectivity-only"]);
}

#[tokio::test]
async fn unmerged_work_stays_for_its_time_and_is_listed() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    let result = finish(&worktree, "b.txt", "b\n").await;
    worktree.remove().await.unwrap();
    for stage in Stage::ALL {
        let report = host.gc(&Stages::all(&[(job(1), stage)]), soon()).await.unwrap();
        // What has shipped has no use for what was saved on the way.
        let gone = |name: &str| stage == Stage::Shipped && name.contains("wip");
        assert!(report.removed.iter().all(|item| gone(&item.name)), "{stage}: {report:?}");
        assert!(report.kept.iter().filter(|item| item.name == result.branch).count() == 2, "{report:?}");
        if !stage.is_terminal() {
            let report = host.gc(&Stages::all(&[(job(1), stage)]), far_future()).await.unwrap();
            assert!(report.removed.is_empty(), "{stage}: somebody may go on with it: {report:?}");
        }
    }
    let unknown = host.gc(&Stages::default(), far_future()).await.unwrap();
    assert!(unknown.removed.is_empty());
    assert!(unknown.kept.iter().all(|item| item.why.contains("does not know")), "{unknown:?}");
    assert!(fixture.origin_branches().contains(&result.branch));
    assert!(fixture.mirror_branches("one").contains(&result.branch));
}

#[tokio::test]
async fn another_host_removes_unmerged_work_when_its_time_is_over() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let worktree = fixture.checkout(&one, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    let result = finish(&worktree, "b.txt", "b\n").await;
    // It has the repository, and has never seen the job.
    fixture.checkout(&two, job(2), 1).await.remove().await.unwrap();
    let cancelled = Stages::all(&[(job(1), Stage::Cancelled)]);

    let age = KEPT.saturating_sub(Duration::from_hours(24 * 3));
    let early = GcOptions::at(ENDED.plus(age));
    let report = two.gc(&cancelled, early).await.unwrap();
    assert!(report.removed.is_empty(), "{report:?}");
    assert_eq!(report.kept.len(), 2, "{report:?}");
    for (item, branch) in report.kept.iter().zip([&result.branch, &wip_branch(job(1))]) {
        assert_eq!((&item.name, item.job, item.age), (branch, Some(job(1)), Some(age)));
        assert_eq!(item.why, "not merged; goes in 3 days (the job is cancelled)");
    }
    let late = GcOptions::at(ENDED.plus(KEPT));
    let planned = two.gc(&cancelled, GcOptions { dry_run: true, ..late.clone() }).await.unwrap();
    assert_eq!(planned.removed[0].why, "not merged; the job is cancelled and ended 14 days ago");
    assert_eq!(fixture.origin_branches().len(), 3, "a dry run touches nothing");
    let report = two.gc(&cancelled, late.clone()).await.unwrap();
    assert_eq!(report.removed, planned.removed);
    assert_eq!(fixture.origin_branches(), ["main"]);
    assert!(!fixture.mirror_branches("one").is_empty(), "that is the first host's own affair");
    worktree.remove().await.unwrap();
    one.gc(&cancelled, late).await.unwrap();
    assert!(fixture.mirror_branches("one").is_empty());
}

#[tokio::test]
async fn unmerged_work_that_somebody_went_on_with_is_theirs() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let worktree = fixture.checkout(&one, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    let more = git(&fixture.origin(), &["commit-tree", "-m", "more", "-p", &result.branch, "main^{tree}"]);
    git(&fixture.origin(), &["update-ref", &format!("refs/heads/{}", result.branch), &more]);
    fixture.checkout(&two, job(2), 1).await.remove().await.unwrap();
    let report = two.gc(&Stages::all(&[(job(1), Stage::Cancelled)]), far_future()).await.unwrap();
    assert!(report.removed.is_empty(), "{report:?}");
    assert!(report.kept[0].why.contains("somebody else's"), "{report:?}");
    assert_eq!(git(&fixture.origin(), &["rev-parse", &result.branch]), more);
}

#[tokio::test]
async fn a_merge_takes_the_branches_of_its_job_along_and_no_others() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.host("one"), fixture.host("two"));
    let first = fixture.checkout(&one, job(1), 1).await;
    write(first.path(), "a.txt", "a\n");
    first.checkpoint("half way", true).await.unwrap().unwrap();
    finish(&first, "b.txt", "not good enough\n").await;
    let second = fixture.checkout(&one, job(1), 2).await;
    let result = finish(&second, "b.txt", "good\n").await;
    let other = fixture.checkout(&one, job(2), 1).await;
    let others = finish(&other, "c.txt", "c\n").await;
    for name in ["giga/main", "feature/x", &format!("giga/job/{}/notes", job(1))] {
        git(&fixture.origin(), &["branch", name, "main"]);
    }
    // A person went on with the third run.
    let third = job_branch(job(1), Epoch(3));
    git(&fixture.origin(), &["branch", &third, "main"]);
    rename_to_old(&fixture.origin(), &wip_branch(job(1)));

    let merged = [order(&second, &result)];
    merge(&two, &merged[0]).await.unwrap();
    two.forget_merged(&merged).await.unwrap();
    let mut expected = vec![
        "feature/x".to_owned(),
        third,
        format!("giga/job/{}/notes", job(1)),
        others.branch,
        "giga/main".to_owned(),
        "main".to_owned(),
    ];
    expected.sort();
    assert_eq!(fixture.origin_branches(), expected);
    one.forget_merged(&merged).await.unwrap();
    assert_eq!(fixture.mirror_branches("one"), [job_branch(job(2), Epoch(1))]);
}

#[tokio::test]
async fn a_branch_that_is_merged_here_but_not_there_stays() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    merge(&host, &order(&worktree, &result)).await.unwrap();
    worktree.remove().await.unwrap();
    // Main was set back at the origin: the branch is the only copy again.
    git(&fixture.origin(), &["update-ref", "refs/heads/main", "main^"]);
    let shipped = Stages::all(&[(job(1), Stage::Shipped)]);
    let report = host.gc(&shipped, soon()).await.unwrap();
    assert!(report.removed.is_empty(), "{report:?}");

    std::fs::rename(fixture.origin(), fixture.path().join("away.git")).unwrap();
    let report = host.gc(&shipped, far_future()).await.unwrap();
    assert!(report.removed.is_empty(), "without the origin nothing is known to be merged: {report:?}");
}

#[tokio::test]
async fn somebody_elses_commits_on_a_job_branch_are_not_deleted() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let result = finish(&worktree, "a.txt", "a\n").await;
    merge(&host, &order(&worktree, &result)).await.unwrap();
    worktree.remove().await.unwrap();
    let more = git(&fixture.origin(), &["commit-tree", "-m", "more", "-p", &result.branch, "main^{tree}"]);
    git(&fixture.origin(), &["update-ref", &format!("refs/heads/{}", result.branch), &more]);
    host.gc(&Stages::all(&[(job(1), Stage::Shipped)]), far_future()).await.unwrap();
    assert_eq!(git(&fixture.origin(), &["rev-parse", &result.branch]), more);
}

#[tokio::test]
async fn a_live_worktree_stays_even_if_the_job_has_ended() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    let other_process = fixture.host("one");
    for stage in Stage::ALL {
        let report = other_process.gc(&Stages::all(&[(job(1), stage)]), far_future()).await.unwrap();
        assert!(report.removed.is_empty(), "{stage}: {report:?}");
        assert!(worktree.path().join("a.txt").is_file());
    }
}

#[tokio::test]
async fn unsaved_work_of_an_ended_job_is_saved_before_its_folder_goes() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "precious\n");
    drop(worktree);
    for stage in [Stage::Queued, Stage::Building, Stage::Failed, Stage::Review] {
        host.gc(&Stages::all(&[(job(1), stage)]), far_future()).await.unwrap();
        assert_eq!(host.find_leftovers().await.len(), 1, "{stage}");
    }
    let report = host.gc(&Stages::all(&[(job(1), Stage::Cancelled)]), far_future()).await.unwrap();
    assert!(report.removed.iter().any(|item| item.kind == GcKind::Worktree), "{report:?}");
    assert!(host.find_leftovers().await.is_empty());
    let branch = quarantine_branch(job(1), Epoch(1));
    assert_eq!(git(&fixture.mirror("one"), &["show", &format!("{branch}:a.txt")]), "precious");
    assert_eq!(fixture.origin_branches(), ["main"]);

    let again = host.gc(&Stages::all(&[(job(1), Stage::Cancelled)]), far_future()).await.unwrap();
    assert!(again.removed.is_empty(), "quarantined work that is merged nowhere stays: {again:?}");
}

#[tokio::test]
async fn checkpoints_stay_until_the_job_has_ended() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    worktree.remove().await.unwrap();
    for stage in Stage::ALL.into_iter().filter(|stage| !stage.is_terminal()) {
        let report = host.gc(&Stages::all(&[(job(1), stage)]), far_future()).await.unwrap();
        assert!(report.removed.is_empty(), "{stage}: {report:?}");
    }
    host.gc(&Stages::all(&[(job(1), Stage::Cancelled)]), far_future()).await.unwrap();
    assert_eq!(fixture.origin_branches(), ["main"]);
}

#[tokio::test]
async fn other_peoples_branches_are_left_alone() {
    let fixture = Fixture::new();
    let names = [
        "feature".to_owned(),
        "giga/main".to_owned(),
        "giga/notes".to_owned(),
        "giga/wip/mine".to_owned(),
        format!("giga/job/{}/01", job(1)),
        "aq/notes".to_owned(),
        "aq/wip/mine".to_owned(),
        format!("aq/job/{}/01", job(1)),
        quarantine_branch(job(1), Epoch(1)),
    ];
    for name in &names {
        git(&fixture.origin(), &["branch", name, "main"]);
    }
    git(&fixture.origin(), &["branch", &job_branch(job(1), Epoch(7)), "main"]);
    let host = fixture.host("one");
    fixture.checkout(&host, job(2), 1).await.remove().await.unwrap();
    host.gc(&Stages::all(&[(job(1), Stage::Shipped)]), far_future()).await.unwrap();
    let mut expected: Vec<String> = names.into_iter().chain(["main".to_owned()]).collect();
    expected.sort();
    assert_eq!(fixture.origin_branches(), expected, "only the merged one of ours went");
}

#[tokio::test]
async fn branches_with_their_old_names_go_as_well() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    let result = finish(&worktree, "b.txt", "b\n").await;
    merge(&host, &order(&worktree, &result)).await.unwrap();
    worktree.remove().await.unwrap();
    for place in [fixture.origin(), fixture.mirror("one")] {
        for name in [wip_branch(job(1)), result.branch.clone()] {
            rename_to_old(&place, &name);
        }
    }
    assert_eq!(fixture.origin_branches().iter().filter(|name| name.starts_with("aq/")).count(), 2);
    let report = host.gc(&Stages::all(&[(job(1), Stage::Building)]), far_future()).await.unwrap();
    assert!(report.removed.is_empty(), "{report:?}");
    let report = host.gc(&Stages::all(&[(job(1), Stage::Shipped)]), far_future()).await.unwrap();
    assert_eq!(report.removed.len(), 4, "{report:?}");
    assert_eq!(fixture.origin_branches(), ["main"]);
    assert!(fixture.mirror_branches("one").is_empty());
}

#[tokio::test]
async fn a_short_disk_costs_idle_mirrors_but_no_work() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let full = |idle: Duration| GcOptions { disk_floor_bytes: u64::MAX, mirror_idle: idle, ..far_future() };
    let day = Duration::from_hours(24);
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let building = Stages::all(&[(job(1), Stage::Building)]);
    let report = host.gc(&building, full(day)).await.unwrap();
    assert!(report.removed.is_empty(), "a work folder borrows from it: {report:?}");
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", false).await.unwrap().unwrap();
    worktree.remove().await.unwrap();
    let report = host.gc(&building, full(day)).await.unwrap();
    assert!(report.removed.is_empty(), "it holds a checkpoint: {report:?}");
    assert!(fixture.mirror_branches("one").contains(&wip_branch(job(1))));

    let cancelled = Stages::all(&[(job(1), Stage::Cancelled)]);
    let century = Duration::from_hours(24 * 365 * 200);
    let report = host.gc(&cancelled, full(century)).await.unwrap();
    assert!(report.removed.iter().all(|item| item.kind != GcKind::Mirror), "used not long ago: {report:?}");
    let enough = GcOptions { mirror_idle: day, ..far_future() };
    let report = host.gc(&cancelled, enough).await.unwrap();
    assert!(report.removed.is_empty(), "there is space: {report:?}");
    let report = host.gc(&cancelled, full(day)).await.unwrap();
    assert_eq!(report.removed.iter().map(|item| item.kind).collect::<Vec<_>>(), [GcKind::Mirror]);
    assert!(host.discover().await.is_empty());
    fixture.checkout(&host, job(2), 1).await;
}

struct Away;

#[async_trait]
impl JobStates for Away {
    async fn known(&self, _: &[JobId]) -> Result<Known, String> {
        Err("the coordinator does not answer".to_owned())
    }
}

#[tokio::test]
async fn without_the_coordinator_nothing_goes() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    drop(worktree);
    let error = host.gc(&Away, far_future()).await.unwrap_err();
    assert!(error.to_string().contains("does not answer"), "{error}");
    assert_eq!(host.find_leftovers().await.len(), 1);
    assert_eq!(fixture.origin_branches().len(), 2);
}
