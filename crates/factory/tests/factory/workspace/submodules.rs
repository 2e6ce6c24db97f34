//! Submodules are checked out where they may be fetched, and leave an empty folder and a note where they may not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_domain::Epoch;
use giga_factory::workspace::{GitPolicy, Workspace};
use parking_lot::Mutex;

use super::fixture::{Fixture, candidate, finish, git, job, order, write};

/// A repository beside the origin with this file; answers its commit.
fn repository(fixture: &Fixture, name: &str, file: &str) -> String {
    let bare = fixture.path().join(format!("{name}.git"));
    let seed = fixture.path().join(format!("seed-{name}"));
    std::fs::create_dir(&seed).unwrap();
    git(fixture.path(), &["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().unwrap()]);
    git(&seed, &["init", "--quiet", "--initial-branch=main"]);
    git(&seed, &["remote", "add", "origin", bare.to_str().unwrap()]);
    commit(&seed, file, &format!("{file} of {name}\n"))
}

fn commit(seed: &Path, file: &str, text: &str) -> String {
    write(seed, file, text);
    git(seed, &["add", file]);
    git(seed, &["commit", "--quiet", "-m", file]);
    git(seed, &["push", "--quiet", "origin", "HEAD:main"]);
    git(seed, &["rev-parse", "HEAD"])
}

/// Makes `path` of the repository in `seed` a submodule, as `.gitmodules` would say it.
fn add(seed: &Path, path: &str, commit: &str, described: &str) {
    let before = std::fs::read_to_string(seed.join(".gitmodules")).unwrap_or_default();
    let described = described.replace("PATH", path);
    std::fs::write(seed.join(".gitmodules"), format!("{before}{described}\n")).unwrap();
    git(seed, &["add", ".gitmodules"]);
    git(seed, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{path}")]);
    git(seed, &["commit", "--quiet", "-m", &format!("with {path}")]);
    git(seed, &["push", "--quiet", "origin", "HEAD:main"]);
}

fn beside(name: &str) -> String {
    format!("[submodule \"PATH\"]\n\tpath = PATH\n\turl = ../{name}.git")
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// What a host says about a checkout.
fn listening(host: &Workspace) -> (Workspace, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let sink = notes.clone();
    (host.noting(move |note| sink.lock().push(note.to_owned())), notes)
}

#[tokio::test]
async fn submodules_are_there_in_the_work_folder_and_in_the_merged_tree() {
    let fixture = Fixture::new();
    let deep = repository(&fixture, "deep", "deep.txt");
    repository(&fixture, "lib", "lib.txt");
    let lib_seed = fixture.path().join("seed-lib");
    let absolute =
        format!("[submodule \"d\"]\npath = PATH\nurl = file://{}/deep.git", fixture.path().display());
    add(&lib_seed, "inner/deep", &deep, &absolute);
    let lib = git(&lib_seed, &["rev-parse", "HEAD"]);
    add(&fixture.path().join("seed"), "vendor/lib", &lib, &beside("lib"));

    let (host, notes) = listening(&fixture.host("one"));
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let left: Vec<_> = notes.lock().iter().filter(|note| note.contains("submodule")).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
    let path = worktree.path();
    assert_eq!(text(path.join("vendor/lib/lib.txt")), "lib.txt of lib\n");
    assert_eq!(text(path.join("vendor/lib/inner/deep/deep.txt")), "deep.txt of deep\n");
    assert_eq!(git(path, &["status", "--porcelain"]), "");
    assert_eq!(git(&path.join("vendor/lib"), &["rev-parse", "HEAD"]), lib);

    let result = finish(&worktree, "a.txt", "a\n").await;
    assert_eq!((result.files_changed, result.left_out.clone()), (1, Vec::new()));
    let order = order(&worktree, &result);
    let tree = host.candidate_tree(&order, &candidate(&host, &order).await, None, &[]).await.unwrap();
    assert_eq!(text(tree.path().join("vendor/lib/inner/deep/deep.txt")), "deep.txt of deep\n");
    assert_eq!(text(tree.path().join("a.txt")), "a\n");

    let known: Vec<_> = host.discover().await.into_iter().map(|repo| repo.name).collect();
    assert_eq!(known, ["origin"], "a submodule is a part of it, not a repository that a job could name");

    // What is here already is not fetched again.
    std::fs::rename(fixture.path().join("lib.git"), fixture.path().join("away.git")).unwrap();
    let second = fixture.checkout(&host, job(2), 1).await;
    assert!(second.path().join("vendor/lib/lib.txt").is_file());
}

#[tokio::test]
async fn a_result_may_move_a_submodule() {
    let fixture = Fixture::new();
    let old = repository(&fixture, "lib", "lib.txt");
    let new = commit(&fixture.path().join("seed-lib"), "lib.txt", "new\n");
    add(&fixture.path().join("seed"), "lib", &old, &beside("lib"));
    let host = fixture.host("one");

    let committed = fixture.checkout(&host, job(1), 1).await;
    git(&committed.path().join("lib"), &["checkout", "--quiet", &new]);
    git(committed.path(), &["commit", "--quiet", "-am", "newer lib"]);
    let result = finish(&committed, "a.txt", "a\n").await;
    let at = |branch: &str| git(&fixture.origin(), &["rev-parse", &format!("{branch}:lib")]);
    assert_eq!(at(&result.branch), new);

    let open = fixture.checkout(&host, job(2), 1).await;
    git(&open.path().join("lib"), &["checkout", "--quiet", "-b", "mine", &new]);
    let result = finish(&open, "a.txt", "a\n").await;
    assert_eq!(at(&result.branch), new, "not committed by the engine, and part of its work");

    let inside = fixture.checkout(&host, job(3), 1).await;
    let lib = inside.path().join("lib");
    write(&lib, "lib.txt", "only here\n");
    git(&lib, &["commit", "--quiet", "-am", "only here"]);
    let result = finish(&inside, "a.txt", "a\n").await;
    assert_eq!(at(&result.branch), old, "nobody else could check it out");
    assert!(result.left_out[0].contains("not on the submodule's origin"), "{:?}", result.left_out);
}

#[tokio::test]
async fn what_may_not_be_fetched_leaves_an_empty_folder_and_a_note() {
    let fixture = Fixture::new();
    let lib = repository(&fixture, "lib", "lib.txt");
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    git(
        outside.path(),
        &["clone", "--quiet", "--bare", fixture.path().join("lib.git").to_str().unwrap(), "secret"],
    );
    let seed = fixture.path().join("seed");
    let canary = fixture.path().join("canary");
    let entry = |name: &str, url: &str| format!("[submodule \"{name}\"]\n\tpath = PATH\n\turl = {url}\n");
    add(&seed, "elsewhere", &lib, &entry("elsewhere", &format!("file://{}", secret.display())));
    add(&seed, "command", &lib, &entry("command", &format!("ext::sh -c touch% {}", canary.display())));
    let update = format!("\tupdate = !touch {}", canary.display());
    add(&seed, "update", &lib, &(entry("update", "../lib.git") + &update));
    add(&seed, "climbs", &lib, &entry("../../climbs", "../lib.git"));
    add(&seed, "out", &lib, &entry("out", "../../../../../../../../../../lib.git"));
    add(&seed, "option", &lib, &entry("option", "--upload-pack=touch"));
    add(&seed, "missing", &"1".repeat(40), &entry("missing", "../lib.git"));
    add(&seed, "undescribed", &lib, "");
    add(&seed, "good", &lib, &entry("good", "../lib.git"));

    let (host, notes) = listening(&fixture.host("one"));
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert_eq!(text(worktree.path().join("good/lib.txt")), "lib.txt of lib\n");
    let notes: Vec<_> = notes.lock().iter().filter(|note| note.contains("submodule")).cloned().collect();
    for (path, why) in [
        ("elsewhere", "allow-list"),
        ("command", "a git URL is"),
        ("update", "no command of a repository is run"),
        ("climbs", "stays within its folder"),
        ("out", "climbs out"),
        ("option", "a git URL is"),
        ("missing", "cannot be reached"),
        ("undescribed", "no entry in .gitmodules"),
    ] {
        let folder = worktree.path().join(path);
        assert!(std::fs::read_dir(&folder).unwrap().next().is_none(), "{path} is empty");
        let start = format!("submodule {path} is left empty: ");
        let note = notes.iter().find(|note| note.starts_with(&start));
        assert!(note.is_some_and(|note| note.contains(why)), "{path}: {notes:#?}");
    }
    assert_eq!(notes.len(), 8, "{notes:#?}");
    assert!(!canary.exists());
    let result = finish(&worktree, "a.txt", "a\n").await;
    assert_eq!(result.files_changed, 1, "empty folders are still submodules");
}

#[tokio::test]
async fn a_submodule_on_this_host_is_known_by_the_owners_folder() {
    let fixture = Fixture::new();
    let lib = repository(&fixture, "lib", "lib.txt");
    add(&fixture.path().join("seed"), "lib", &lib, &beside("lib"));
    let repos = fixture.path().join("repos");
    std::fs::create_dir(&repos).unwrap();
    std::fs::rename(fixture.origin(), repos.join("app.git")).unwrap();
    let policy = GitPolicy { repos: Some(repos.clone()), ..GitPolicy::default() };
    let (host, notes) = listening(&Workspace::open(fixture.path().join("one"), policy).unwrap());
    let repo = host.resolve("app").await.unwrap();
    let first = host.checkout(job(1), Epoch(1), &repo, None, None).await.unwrap();
    assert!(!first.path().join("lib/lib.txt").exists());
    assert!(notes.lock().iter().any(|note| note.contains("submodule lib is left empty")), "{notes:?}");
    std::fs::rename(fixture.path().join("lib.git"), repos.join("lib.git")).unwrap();
    let second = host.checkout(job(2), Epoch(1), &repo, None, None).await.unwrap();
    assert_eq!(text(second.path().join("lib/lib.txt")), "lib.txt of lib\n");
}

#[tokio::test]
async fn submodules_within_submodules_come_to_an_end() {
    let fixture = Fixture::new();
    let mut inner = repository(&fixture, "level-7", "end.txt");
    for level in (1..7).rev() {
        repository(&fixture, &format!("level-{level}"), "file.txt");
        let seed = fixture.path().join(format!("seed-level-{level}"));
        add(&seed, "next", &inner, &beside(&format!("level-{}", level + 1)));
        inner = git(&seed, &["rev-parse", "HEAD"]);
    }
    add(&fixture.path().join("seed"), "next", &inner, &beside("level-1"));
    let (host, notes) = listening(&fixture.host("one"));
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let at = |depth: usize| worktree.path().join(vec!["next"; depth].join("/"));
    assert!(at(5).join("file.txt").is_file() && !at(6).join("file.txt").exists());
    let path = ["next"; 6].join("/");
    let note = format!("submodule {path} is left empty");
    assert!(
        notes.lock().iter().any(|told| told.starts_with(&note) && told.contains("5 levels")),
        "{notes:?}"
    );
}
