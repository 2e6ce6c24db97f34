//! From the word to ship to the branch: what is shipped is in, what is in passed its checks there, and nobody who is
//! killed or frozen on the way brings it in twice or half.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use giga_api::wire::{FailReason, Job, MergeState, OperatorAction, Stage};
use serde_json::json;

use super::child::ChildFactory;
use super::world::{LOOK_AGAIN, Origin, PATIENCE, World};

pub(crate) async fn until_settled(world: &World, job: &str) -> Job {
    world.until(job, |job| matches!(job.stage, Stage::Shipped | Stage::Failed)).await
}

fn merges(origin: &Origin) -> usize {
    origin.git(&["rev-list", "--merges", "--count", "main"]).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_break_the_branch_only_together_are_never_in_together() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let manifest = "repo: hello\nonConflict: fail\nverify: [\"! test -f one.txt || ! test -f two.txt\"]";
    let one = world.submit("one", manifest, "echo 1 > one.txt").await;
    let two = world.submit("two", manifest, "echo 2 > two.txt").await;
    for job in [&one, &two] {
        world.until_stage(job, Stage::Testing).await;
    }
    world.client.act(&one, OperatorAction::Ship, None, None).await.unwrap();
    world.client.act(&two, OperatorAction::Ship, None, None).await.unwrap();
    let first = until_settled(&world, &one).await;
    assert_eq!(first.stage, Stage::Shipped, "{first:#?}");
    let second = until_settled(&world, &two).await;
    assert_eq!(second.failure.as_ref().unwrap().reason, FailReason::MergeChecksFailed, "{second:#?}");
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    assert!(files.contains("one.txt") && !files.contains("two.txt"), "{files}");
    assert_eq!(merges(&origin), 1);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_culprit_of_a_batch_is_found_and_the_others_are_in() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let mut jobs = Vec::new();
    for number in 0..4 {
        // Alone each passes; with more than two others the third does not.
        let verify = "! test -f file-2.txt || test $(ls file-* | wc -l) = 1";
        let manifest = format!("repo: hello\nonConflict: fail\nverify: [\"{verify}\"]");
        jobs.push(
            world.submit(&format!("job-{number}"), &manifest, &format!("echo > file-{number}.txt")).await,
        );
    }
    for job in &jobs {
        world.until_stage(job, Stage::Testing).await;
    }
    for job in &jobs {
        world.client.act(job, OperatorAction::Ship, None, None).await.unwrap();
    }
    let mut shipped = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        if until_settled(&world, job).await.stage == Stage::Shipped {
            shipped.push(number);
        }
    }
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    let there: Vec<usize> = (0..4).filter(|n| files.contains(&format!("file-{n}.txt"))).collect();
    assert_eq!(there, shipped, "what is shipped is in, and nothing else");
    // Whoever of the two sides came first, the branch passes.
    assert!(shipped == [0, 1, 3] || shipped == [2], "{shipped:?}");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_done_again_on_the_branch_as_it_is_now_with_the_facts() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    // What is there already is kept.
    let script = |word: &str| format!("echo {word} >> greeting.txt");
    let one = world.submit("one", "repo: hello", &script("one")).await;
    let two = world.submit("two", "repo: hello", &script("two")).await;
    for job in [&one, &two] {
        world.until_stage(job, Stage::Testing).await;
    }
    world.client.act(&one, OperatorAction::Ship, None, None).await.unwrap();
    world.until_merged(&one).await;
    world.client.act(&two, OperatorAction::Ship, None, None).await.unwrap();
    let again = world.until(&two, |job| job.stage == Stage::Testing && job.lease_epoch == 2).await;
    let note = again.reviews.last().unwrap();
    assert_eq!(note.reviewer, "merge-queue");
    assert!(note.comment.as_ref().unwrap().contains("greeting.txt"), "{note:?}");
    world.client.act(&two, OperatorAction::Ship, None, None).await.unwrap();
    let merged = world.until_merged(&two).await;
    assert_eq!(merged.merge.unwrap().redos, 1);
    assert_eq!(origin.file("main", "greeting.txt"), "helo\none\ntwo");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_says_no_is_quoted_and_not_asked_for_ever() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let hook = hook(
        &origin,
        "pre-receive",
        "refs/heads/main",
        "echo 'main is protected: use a pull request' >&2; exit 1",
    );
    let factory = world.factory("a");
    let job = world.submit("one", "repo: hello\nship: auto", "echo 1 > one.txt").await;
    let waiting = world.until(&job, |job| job.merge.as_ref().is_some_and(|merge| merge.failures > 0)).await;
    assert_eq!(waiting.stage, Stage::Shipping);
    let detail = waiting.merge.unwrap().detail.unwrap();
    assert!(detail.contains("main is protected"), "{detail}");
    let failed = world.until_stage(&job, Stage::Failed).await;
    let failure = failed.failure.unwrap();
    assert_eq!(failure.reason, FailReason::MergeRefused);
    assert!(failure.detail.unwrap().contains("main is protected"));
    let alerts = world.client.alerts().await.unwrap();
    let told = alerts.alerts.iter().any(|alert| alert.job_id.as_deref() == Some(job.as_str()));
    assert!(told, "{:?}", alerts.value);

    // With the way free, the word to ship is enough: nothing runs again.
    std::fs::remove_file(hook).unwrap();
    world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    let merged = world.until_merged(&job).await;
    assert_eq!((merged.stage, merged.lease_epoch), (Stage::Shipped, 1));
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_is_away_is_waited_for() {
    let world = World::start().await;
    let origin = world.origin_elsewhere("hello");
    let factory = world.factory("a");
    let job = world.submit("one", "repo: hello", "echo 1 > one.txt").await;
    world.until_stage(&job, Stage::Testing).await;
    let away = world.path().join("away.git");
    std::fs::rename(origin.path(), &away).unwrap();
    world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    let waiting = world.until(&job, |job| job.merge.as_ref().is_some_and(|merge| merge.failures > 1)).await;
    assert_eq!(waiting.stage, Stage::Shipping);
    std::fs::rename(&away, origin.path()).unwrap();
    world.until_stage(&job, Stage::Shipped).await;
    assert_eq!(origin.file("main", "one.txt"), "1");
    factory.drain().await;
}

/// Fifty chains of two on an origin that takes its time: the second finds what the first brought in, each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_dependent_never_starts_before_what_it_needs_is_in() {
    let world = World::start().await;
    let origin = world.origin("hello");
    hook(&origin, "pre-receive", "refs/heads/main", "sleep 0.2");
    // No attempt is to be lost to a busy machine: nothing is tried twice here.
    world.set_flag("lease_ms", json!(60_000)).await;
    let mut config = world.config("a");
    config.seats = 4;
    let factory = super::world::Factory::start(config);
    let mut jobs = Vec::new();
    for number in 0..50 {
        let first = world
            .submit(
                &format!("first-{number}"),
                "repo: hello\nship: auto",
                &format!("echo > file-{number}.txt"),
            )
            .await;
        let more = format!("repo: hello\nship: auto\nretry: {{max: 0}}\ndeps: [{first}]");
        let script = format!("test -f file-{number}.txt; echo > then-{number}.txt");
        jobs.push(world.submit(&format!("then-{number}"), &more, &script).await);
    }
    for job in &jobs {
        let done = tokio::time::timeout(Duration::from_mins(5), async {
            loop {
                let job = world.job(job).await;
                if matches!(job.stage, Stage::Shipped | Stage::Failed | Stage::DeadLetter) {
                    return job;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        let done = done.await.expect("it ends");
        assert_eq!(done.stage, Stage::Shipped, "{done:#?}");
    }
    assert_eq!(merges(&origin), 100);
    factory.drain().await;
}

/// A hook of the origin for pushes to a ref, or to those that begin with it.
pub(super) fn hook(origin: &Origin, name: &str, to: &str, then: &str) -> PathBuf {
    let path = origin.path().join("hooks").join(name);
    let script =
        format!("#!/bin/sh\nwhile read -r old new ref; do case $ref in {to}*) {then};; esac; done\n");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Where a merge is stopped on its way: whoever comes there first leaves a mark and waits; everybody after it goes on.
struct Stop {
    mark: PathBuf,
    gate: PathBuf,
}

#[derive(Clone, Copy)]
enum Step {
    Candidate,
    Checks,
    Push,
    Pushed,
}

impl Stop {
    fn new(world: &World) -> Self {
        Self { mark: world.path().join("mark"), gate: world.gate("gate") }
    }

    fn install(&self, origin: &Origin, step: Step) {
        let wait = self.command();
        match step {
            Step::Candidate => drop(hook(origin, "pre-receive", "refs/heads/giga/merge/", &wait)),
            Step::Checks => {}
            Step::Push => drop(hook(origin, "pre-receive", "refs/heads/main", &wait)),
            Step::Pushed => drop(hook(origin, "post-receive", "refs/heads/main", &wait)),
        }
    }

    fn command(&self) -> String {
        format!("if mkdir {} 2>/dev/null; then read _ < {}; fi", self.mark.display(), self.gate.display())
    }

    async fn reached(&self) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while !self.mark.exists() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(waited.await.is_ok(), "nobody came to the step");
    }

    /// Whoever waits goes on, late.
    fn open(&self) {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&self.gate).unwrap();
        std::io::Write::write_all(&mut &file, b"\n").unwrap();
        std::mem::forget(file);
    }
}

async fn stopped(step: Step, signal: &str) -> (World, Origin, Job) {
    let world = World::start().await;
    world.set_flag("merge_lease_ms", json!(2_000)).await;
    let origin = world.origin("hello");
    let stop = Stop::new(&world);
    let first = ChildFactory::start(&world, "a");
    // In the job's own run the check passes by: only the merged tree has a mark of the branch.
    let verify = match step {
        Step::Checks => format!("test ! -f merged.txt || {{ {}; }}", stop.command()),
        _ => "true".to_owned(),
    };
    let manifest = format!("repo: hello\nverify: [{}]", json!(verify));
    let job = world.submit("one", &manifest, "echo 1 > one.txt").await;
    world.until_stage(&job, Stage::Testing).await;
    move_branch(&world, &origin);
    stop.install(&origin, step);
    world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    stop.reached().await;
    let at = Instant::now();
    first.signal(signal);
    let second = world.factory("b");
    let merged = world.until_stage(&job, Stage::Shipped).await;
    assert!(at.elapsed() < Duration::from_mins(1), "{:?}", at.elapsed());
    // The one that was stopped goes on when it is too late, or what it had started does.
    stop.open();
    if signal == "STOP" {
        first.signal("CONT");
    }
    let other = world.submit("other", "repo: hello\nship: auto", "echo 2 > two.txt").await;
    world.until_stage(&other, Stage::Shipped).await;
    second.drain().await;
    (world, origin, merged)
}

/// Something in the branch that the run did not see.
fn move_branch(world: &World, origin: &Origin) {
    let seed = world.path().join("seeds/hello");
    std::fs::write(seed.join("merged.txt"), "x\n").unwrap();
    super::world::git(&seed, &["add", "."]);
    super::world::git(&seed, &["commit", "-qm", "meanwhile"]);
    super::world::git(&seed, &["push", "-q", origin.path().to_str().unwrap(), "main"]);
}

fn check_once(origin: &Origin, job: &Job) {
    let merge = job.merge.as_ref().unwrap();
    assert_eq!(merge.state, MergeState::Merged);
    let subjects = origin.git(&["log", "--first-parent", "--format=%s", "main"]);
    let of_job = subjects.lines().filter(|line| line.contains("Merge one")).count();
    assert_eq!(of_job, 1, "{subjects}");
    let commit = merge.commit.as_deref().unwrap();
    origin.git(&["merge-base", "--is-ancestor", commit, "main"]);
    assert_eq!(origin.file("main", "one.txt"), "1");
    let left: Vec<_> = origin.branches().into_iter().filter(|name| name.starts_with("giga/merge/")).collect();
    assert!(left.len() <= 1, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_candidate_is_kept() {
    let (_world, origin, job) = stopped(Step::Candidate, "KILL").await;
    check_once(&origin, &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_merged_tree_is_checked() {
    let (_world, origin, job) = stopped(Step::Checks, "KILL").await;
    check_once(&origin, &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_pushes() {
    let (_world, origin, job) = stopped(Step::Push, "KILL").await;
    check_once(&origin, &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_when_it_has_pushed() {
    let (_world, origin, job) = stopped(Step::Pushed, "KILL").await;
    check_once(&origin, &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_while_the_merged_tree_is_checked() {
    let (_world, origin, job) = stopped(Step::Checks, "STOP").await;
    check_once(&origin, &job);
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_while_it_pushes() {
    let (_world, origin, job) = stopped(Step::Push, "STOP").await;
    check_once(&origin, &job);
}
