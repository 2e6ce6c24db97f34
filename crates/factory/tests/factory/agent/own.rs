//! Jobs on the owner's own checkout, from the plan to the merge and what is said about it.

use std::path::PathBuf;

use giga_api::wire::Stage;
use giga_domain::Delivery;

use super::world::{Factory, World, git};

/// A checkout under `repos`, without an origin and with work that is not committed.
fn dirty(world: &World, name: &str) -> PathBuf {
    let folder = world.path().join("repos").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    git(&folder, &["init", "-q", "--initial-branch=main"]);
    std::fs::write(folder.join("notes.txt"), "one\n").unwrap();
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-qm", "first"]);
    std::fs::write(folder.join("notes.txt"), "one\nuncommitted\n").unwrap();
    folder.canonicalize().unwrap()
}

async fn planned(world: &World, repo: &str) -> Option<String> {
    let manifest = format!("---\nname: x\nengine: shell\nrepo: {repo}\nscript: 'true'\n---\nDo it.\n");
    world.client.plan(manifest.into_bytes()).await.unwrap().merges_into.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dirty_checkout_without_an_origin_gets_a_branch_and_dependents_start_from_it() {
    let world = World::start().await;
    let folder = dirty(&world, "notes");
    let factory = world.factory("a");
    world.until_delivered_by("a", Delivery::Stream).await;
    let there = folder.display();
    let expected = format!("giga/main in {there}: main is checked out there; --update-checkouts moves it");
    assert_eq!(planned(&world, "notes").await, Some(expected), "known before the work starts");

    let first = world.submit("first", "repo: notes\nship: auto", "echo 1 > first.txt").await;
    let more = format!("repo: notes\nship: auto\ndeps: [{first}]");
    let second = world.submit("second", &more, "cat first.txt; echo 2 > second.txt").await;
    let merge = world.until_merged(&first).await.merge.unwrap();
    let commit = &merge.commit.unwrap()[..10];
    let note = merge.note.unwrap();
    assert_eq!(
        note,
        format!(
            "merged into giga/main as {commit}, because main is checked out in {there}; `git merge giga/main` there"
        )
    );
    assert_eq!(merge.into.as_deref(), Some("giga/main"));
    let explained = world.client.explain(&first).await.unwrap();
    assert_eq!(explained.summary, format!("shipped: {note}"));
    world.until_merged(&second).await;

    assert_eq!(std::fs::read_to_string(folder.join("notes.txt")).unwrap(), "one\nuncommitted\n");
    assert_eq!(git(&folder, &["status", "--porcelain"]), " M notes.txt");
    assert_eq!(git(&folder, &["log", "--format=%s", "main"]), "first");
    assert_eq!(git(&folder, &["show", "giga/main:first.txt", "giga/main:second.txt"]), "1\n2");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_is_moved_where_the_operator_allowed_it() {
    let world = World::start().await;
    let folder = dirty(&world, "notes");
    git(&folder, &["commit", "-qam", "second"]);
    let mut config = world.config("a");
    config.git.update_checkouts = true;
    let factory = Factory::start(config);
    let job = world.submit("first", "repo: notes\nship: auto", "echo 1 > first.txt").await;
    let merge = world.until_merged(&job).await.merge.unwrap();
    assert_eq!(merge.into.as_deref(), Some("main"));
    assert_eq!(std::fs::read_to_string(folder.join("first.txt")).unwrap(), "1\n");
    assert_eq!(git(&folder, &["status", "--porcelain"]), "");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_with_an_origin_is_told_to_pull() {
    let world = World::start().await;
    let origin = world.origin("upstream");
    let repos = world.path().join("repos");
    git(&repos, &["clone", "-q", "upstream.git", "app"]);
    let folder = repos.join("app").canonicalize().unwrap();
    std::fs::write(folder.join("greeting.txt"), "mine\n").unwrap();
    let before = git(&folder, &["rev-parse", "main"]);
    let factory = world.factory("a");
    let job = world.submit("fix", "repo: app\nship: auto", "echo 1 > first.txt").await;
    let merge = world.until_merged(&job).await.merge.unwrap();
    let commit = merge.commit.unwrap();
    assert_eq!(
        merge.note.unwrap(),
        format!("merged into origin/main as {}; `git pull` in {}", &commit[..10], folder.display())
    );
    assert_eq!(origin.git(&["rev-parse", "main"]), commit);
    assert_eq!(git(&folder, &["rev-parse", "main"]), before);
    assert_eq!(std::fs::read_to_string(folder.join("greeting.txt")).unwrap(), "mine\n");
    assert!(!folder.join("first.txt").exists());
    let cause = world.client.job_events(&job, None).await.unwrap();
    assert!(cause.events.iter().any(|event| event.cause.contains("`git pull` in")), "{:?}", cause.events);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_folders_and_names_with_blanks_work_from_the_manifest_to_the_merge() {
    let world = World::start().await;
    let folder = dirty(&world, "my team/my app");
    let factory = world.factory("a");
    world.until_delivered_by("a", Delivery::Stream).await;
    for (number, repo) in ["my team/my app", "my app"].into_iter().enumerate() {
        assert!(planned(&world, repo).await.is_some(), "{repo}");
        let more = format!("repo: {repo}\nship: auto\ncapabilities: ['repo:my team/my app']");
        let job = world.submit("fix", &more, &format!("echo {number} > {number}.txt")).await;
        let merged = world.until_merged(&job).await;
        assert_eq!((merged.stage, merged.repo.as_deref()), (Stage::Shipped, Some(repo)));
    }
    assert_eq!(git(&folder, &["show", "giga/main:0.txt", "giga/main:1.txt"]), "0\n1");
    factory.drain().await;
}
