//! Several repositories in one job: side by side while it works, a result in each, checked and reviewed together, merged
//! in their order.

use giga_api::wire::{FailReason, MergeState, OperatorAction, Stage};

use super::shipping::{hook, until_settled};
use super::world::{Origin, World, git, work_folders};

const BOTH: &str = "repos: [app, lib]";

fn merges(origin: &Origin) -> usize {
    origin.git(&["rev-list", "--merges", "--count", "main"]).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_has_its_result_and_all_are_checked_and_merged() {
    let world = World::start().await;
    let [app, lib] = ["app", "team/lib"].map(|name| world.origin(name));
    let factory = world.factory("a");
    // On the merged trees as well: there both have to be as they will be.
    let more = "repos: [app, lib]\nreview: {quorum: 1}\nship: auto\nverify: [grep -q new app/greeting.txt && grep -q new lib/greeting.txt && git -C lib status]";
    let script = "ls > seen.txt\ncat seen.txt\nfor r in app lib; do echo new in $r > $r/greeting.txt; done";
    let job = world.submit("both", more, script).await;
    let reviewed = world.until_stage(&job, Stage::Review).await;
    let result = reviewed.result.clone().unwrap();
    let commits: Vec<_> = result.repos.iter().map(|one| (one.repo.as_str(), one.commit.clone())).collect();
    let at = |origin: &Origin| origin.git(&["rev-parse", &result.branch]);
    assert_eq!(commits, [("app", at(&app)), ("lib", at(&lib))]);
    assert_eq!(result.commit, at(&app));
    let log = world.log(&job, None).await;
    assert!(log.contains("\napp\nlib\n"), "{log}");

    let artifacts = world.client.artifacts(&job).await.unwrap();
    let diff = artifacts.artifacts.iter().find(|one| one.name == "changes.diff").unwrap();
    let diff = world.client.artifact_bytes(&diff.id).await.unwrap();
    let diff = String::from_utf8(diff).unwrap();
    for line in ["--- a/app/greeting.txt", "+new in app", "+++ b/lib/greeting.txt", "+new in lib"] {
        assert!(diff.lines().any(|found| found == line), "{line} in {diff}");
    }

    world.review(&job, giga_api::wire::ReviewVerdict::Approve, None).await;
    let done = until_settled(&world, &job).await;
    assert_eq!(done.stage, Stage::Shipped, "{done:#?}");
    let merged = done.merge.unwrap().merged;
    let merged: Vec<_> = merged.iter().map(|one| (one.repo.as_str(), one.commit.clone())).collect();
    let tip = |origin: &Origin| origin.git(&["rev-parse", "main"]);
    assert_eq!(merged, [("app", tip(&app)), ("lib", tip(&lib))]);
    assert_eq!([merges(&app), merges(&lib)], [1, 1]);
    assert_eq!(lib.file("main", "greeting.txt"), "new in lib");
    factory.drain().await;
    assert_eq!([app.branches(), lib.branches()], [["main"], ["main"]]);
    assert!(work_folders(&world.base("a")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_changed_is_not_merged() {
    let world = World::start().await;
    let [app, lib] = ["app", "lib"].map(|name| world.origin(name));
    let factory = world.factory("a");
    let job = world.submit("second", &format!("{BOTH}\nship: auto"), "echo new > lib/new.txt").await;
    let done = until_settled(&world, &job).await;
    let (result, merge) = (done.result.unwrap(), done.merge.unwrap());
    assert_eq!(result.repos.iter().map(|one| one.repo.as_str()).collect::<Vec<_>>(), ["lib"]);
    assert_eq!((done.stage, merge.state), (Stage::Shipped, MergeState::Merged));
    assert_eq!([merges(&app), merges(&lib)], [0, 1]);
    factory.drain().await;
    assert_eq!(app.branches(), ["main"]);
}

/// The second one would conflict: the first is not begun with.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_merged_everywhere_is_merged_nowhere() {
    let world = World::start().await;
    let [app, lib] = ["app", "lib"].map(|name| world.origin(name));
    let factory = world.factory("a");
    let script = "for r in app lib; do echo new > $r/greeting.txt; done";
    let job = world.submit("both", &format!("{BOTH}\nonConflict: fail"), script).await;
    world.until_stage(&job, Stage::Testing).await;
    let seed = world.path().join("seeds/lib");
    std::fs::write(seed.join("greeting.txt"), "theirs\n").unwrap();
    git(&seed, &["commit", "-qam", "theirs"]);
    git(&seed, &["push", "-q", lib.path().to_str().unwrap(), "main"]);
    world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    let failure = world.until_stage(&job, Stage::Failed).await.failure.unwrap();
    assert_eq!(failure.reason, FailReason::MergeConflict);
    let detail = failure.detail.unwrap();
    assert!(detail.contains("lib") && detail.contains("greeting.txt"), "{detail}");
    assert_eq!([merges(&app), merges(&lib)], [0, 0]);
    factory.drain().await;
}

/// Half of it is in: that is said, and the word to ship brings in the other half and nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_half_in_says_so_and_goes_on_from_there() {
    let world = World::start().await;
    let [app, lib] = ["app", "lib"].map(|name| world.origin(name));
    let hook = hook(&lib, "pre-receive", "refs/heads/main", "echo 'lib is frozen' >&2; exit 1");
    let factory = world.factory("a");
    let script = "for r in app lib; do echo new > $r/new.txt; done";
    let job = world.submit("both", &format!("{BOTH}\nship: auto"), script).await;
    let failed = world.until_stage(&job, Stage::Failed).await;
    let detail = failed.failure.unwrap().detail.unwrap();
    let tip = app.git(&["rev-parse", "main"]);
    let begins = format!("lib (merged already: app as {} in main): ", &tip[..12]);
    assert!(detail.starts_with(&begins) && detail.contains("lib is frozen"), "{detail}");
    assert_eq!(failed.merge.unwrap().merged.len(), 1);
    assert_eq!([merges(&app), merges(&lib)], [1, 0]);

    std::fs::remove_file(hook).unwrap();
    world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    let done = world.until_stage(&job, Stage::Shipped).await;
    assert_eq!((done.lease_epoch, done.merge.unwrap().merged.len()), (1, 2), "nothing runs again");
    assert_eq!([merges(&app), merges(&lib)], [1, 1]);
    assert_eq!(app.git(&["rev-parse", "main"]), tip);
    factory.drain().await;
}

/// The work in each of them goes on elsewhere, and so does a change that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_work_is_resumed_in_each() {
    let world = World::start().await;
    let [app, lib] = ["app", "lib"].map(|name| world.origin(name));
    let first = world.factory("a");
    let script = "if [ $GIGA_RESUMED = 1 ]; then cat app/half.txt lib/half.txt; echo more >> lib/half.txt; exit 0; fi\n\
                  for r in app lib; do echo half of $r > $r/half.txt; done; echo waiting; sleep 1000";
    let more = format!("{BOTH}\nreview: {{quorum: 1}}\nship: auto");
    let job = world.submit("long", &more, script).await;
    world.until(&job, |job| job.checkpoint.as_ref().is_some_and(|saved| saved.repos.len() == 2)).await;
    first.drain().await;
    let second = world.factory("b");
    let reviewed = world.until_stage(&job, Stage::Review).await;
    assert!(reviewed.lease_epoch > 1);
    let log = world.log(&job, None).await;
    assert!(log.contains("half of app\nhalf of lib"), "{log}");
    world.review(&job, giga_api::wire::ReviewVerdict::RequestChanges, Some("once more")).await;
    world.until(&job, |job| job.stage == Stage::Review && job.lease_epoch > reviewed.lease_epoch).await;
    world.review(&job, giga_api::wire::ReviewVerdict::Approve, None).await;
    assert_eq!(until_settled(&world, &job).await.stage, Stage::Shipped);
    assert_eq!(app.file("main", "half.txt"), "half of app");
    assert_eq!(lib.file("main", "half.txt"), "half of lib\nmore\nmore");
    second.drain().await;
}
