//! Which repositories a host knows and which it refuses.

use giga_domain::Epoch;
use giga_factory::workspace::{GitPolicy, Workspace, WorkspaceError};

use super::fixture::{Fixture, Merged, finish, git, job, merge, order, write};

fn with_repos(fixture: &Fixture) -> Workspace {
    let repos = fixture.path().join("repos");
    std::fs::create_dir_all(&repos).unwrap();
    // Nothing is allowed by URL: the owner's folders are enough.
    let policy = GitPolicy { repos: Some(repos), ..GitPolicy::default() };
    Workspace::open(fixture.path().join("one"), policy).unwrap()
}

#[tokio::test]
async fn folders_and_mirrors_are_discovered() {
    let fixture = Fixture::new();
    let host = with_repos(&fixture);
    let repos = fixture.path().join("repos");
    git(&repos, &["clone", "--quiet", &fixture.url(), "hello"]);
    git(&repos, &["init", "--quiet", "--initial-branch=main", "alone"]);
    git(&repos, &["init", "--quiet", "--bare", "kept.git"]);
    git(&repos, &["clone", "--quiet", &fixture.url(), "evil"]);
    git(&repos.join("evil"), &["config", "remote.origin.url", "ext::sh -c 'touch canary'"]);
    write(&repos, "no-repository/x", "x");
    write(&repos, "-rf/.git/HEAD", "ref: refs/heads/main");

    let found = host.discover().await;
    let names: Vec<_> = found.iter().map(|repo| repo.name.as_str()).collect();
    assert_eq!(names, ["alone", "hello", "kept"]);
    let hello = found.iter().find(|repo| repo.name == "hello").unwrap();
    assert_eq!((hello.url.as_str(), hello.last_used_at), (fixture.url().as_str(), None));

    let source = host.resolve("hello").await.unwrap();
    let worktree = host.checkout(job(1), Epoch(1), &source, None, None).await.unwrap();
    let result = finish(&worktree, "a.txt", "a\n").await;
    assert!(matches!(merge(&host, &order(&worktree, &result)).await.unwrap(), Merged::Now { .. }));
    let used = host.discover().await.into_iter().find(|repo| repo.name == "hello").unwrap();
    assert!(used.last_used_at.is_some());
    assert_eq!(host.resolve(&fixture.url()).await.unwrap(), source, "a known repository by its URL");
}

/// A heartbeat looks at every folder; git is asked again only where something was written.
#[tokio::test]
async fn an_origin_is_read_again_when_its_configuration_was_written() {
    let fixture = Fixture::new();
    let host = with_repos(&fixture);
    let repo = fixture.path().join("repos/hello");
    git(&fixture.path().join("repos"), &["clone", "--quiet", &fixture.url(), "hello"]);
    let origin = async || host.discover().await[0].url.to_string();
    let was = origin().await;

    let config = repo.join(".git/config");
    let text = std::fs::read_to_string(&config).unwrap().replace("origin.git", "origim.git");
    let written_at = std::fs::metadata(&config).unwrap().modified().unwrap();
    std::fs::write(&config, text).unwrap();
    let file = std::fs::File::options().write(true).open(&config).unwrap();
    file.set_modified(written_at).unwrap();
    assert_eq!(origin().await, was, "nothing tells that it was written");
    file.set_modified(written_at + std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(origin().await, was.replace("origin.git", "origim.git"));
}

#[tokio::test]
async fn a_mirror_is_known_by_its_name_afterwards() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    assert!(matches!(host.resolve("origin").await, Err(WorkspaceError::UnknownRepo(_))));
    let _worktree = fixture.checkout(&host, job(1), 1).await;
    assert_eq!(host.resolve("origin").await.unwrap().url.as_str(), fixture.url());
    let strict = Workspace::open(fixture.path().join("one"), GitPolicy::default()).unwrap();
    assert!(strict.resolve("origin").await.is_err(), "the allow-list counts as it is now");
    assert!(strict.discover().await.is_empty());
}

fn init(repos: &std::path::Path, folder: &str) {
    git(repos, &["init", "--quiet", "--initial-branch=main", folder]);
    git(&repos.join(folder), &["commit", "--quiet", "--allow-empty", "-m", "first"]);
}

#[tokio::test]
async fn nested_folders_and_names_with_blanks_are_repositories_too() {
    let fixture = Fixture::new();
    let host = with_repos(&fixture);
    let repos = fixture.path().join("repos");
    for folder in [
        "app",
        "team/lib",
        "my team/my app",
        "a/b/c/deep",
        "a/b/c/d/too-deep",
        "app/vendor/inside",
        "team/node_modules/pkg",
        "team/target/built",
        ".cache/hidden",
    ] {
        init(&repos, folder);
    }
    std::os::unix::fs::symlink(repos.join("a/b/c/d/too-deep"), repos.join("linked")).unwrap();
    std::os::unix::fs::symlink(&repos, repos.join("round")).unwrap();
    let names: Vec<_> = host.discover().await.into_iter().map(|repo| repo.name).collect();
    assert_eq!(names, ["a/b/c/deep", "app", "linked", "my team/my app", "team/lib"]);

    for (name, whole) in [("lib", "team/lib"), ("my app", "my team/my app"), ("c/deep", "a/b/c/deep")] {
        assert_eq!(host.resolve(name).await.unwrap(), host.resolve(whole).await.unwrap(), "{name}");
    }
    for inside in ["vendor/inside", "app/vendor/inside", "too-deep", "hidden", ".cache/hidden", "pkg"] {
        let refused = host.resolve(inside).await.unwrap_err();
        assert!(!matches!(refused, WorkspaceError::Git { .. }), "{inside}: {refused}");
    }
    init(&repos, "other/lib");
    let refused = host.resolve("lib").await.unwrap_err().to_string();
    assert!(refused.contains("it could be other/lib or team/lib; name one of them in full"), "{refused}");

    let source = host.resolve("my team/my app").await.unwrap();
    let worktree = host.checkout(job(1), Epoch(1), &source, None, None).await.unwrap();
    let result = finish(&worktree, "a.txt", "a\n").await;
    assert!(matches!(merge(&host, &order(&worktree, &result)).await.unwrap(), Merged::Now { .. }));
    assert_eq!(git(&repos.join("my team/my app"), &["show", "giga/main:a.txt"]), "a");
}

#[tokio::test]
async fn what_cannot_be_offered_is_said_with_its_reason() {
    let fixture = Fixture::new();
    let repos = fixture.path().join("repos");
    std::fs::create_dir_all(&repos).unwrap();
    init(&repos, "fine");
    git(&repos, &["clone", "--quiet", &fixture.url(), "evil"]);
    git(&repos.join("evil"), &["config", "remote.origin.url", "ext::sh -c 'touch canary'"]);
    init(&repos, "über");
    git(&repos, &["init", "--quiet", "--bare", "fine.git"]);
    write(&repos, "broken/.git/config", "[core]\n");
    write(&repos, "just-a-folder/x", "x");
    let policy = GitPolicy { repos: Some(repos.clone()), ..GitPolicy::default() };
    let survey = giga_factory::workspace::survey(&policy).await.unwrap();
    let names: Vec<_> = survey.found.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["fine"]);
    let skipped: Vec<_> = survey.skipped.iter().map(|s| (s.name.as_str(), s.why.as_str())).collect();
    let [twice, broken, evil, name] = skipped[..] else { panic!("{skipped:#?}") };
    assert!(twice.0.ends_with("fine.git") && twice.1.contains("has the same name"), "{twice:?}");
    assert!(broken.0 == "broken" && broken.1.contains("not a git repository"), "{broken:?}");
    assert!(evil.0 == "evil" && evil.1.contains("its origin `ext::sh"), "{evil:?}");
    assert!(name.0 == "über" && name.1.contains("letters, digits"), "{name:?}");
    assert!(!fixture.path().join("canary").exists());

    let itself = GitPolicy { repos: Some(repos.join("fine")), ..GitPolicy::default() };
    let survey = giga_factory::workspace::survey(&itself).await.unwrap();
    assert!(survey.found.is_empty() && survey.skipped[0].why.contains("repository itself"), "{survey:?}");
}

#[tokio::test]
async fn where_results_go_is_looked_at_again_when_another_branch_is_checked_out() {
    let fixture = Fixture::new();
    let host = with_repos(&fixture);
    let repos = fixture.path().join("repos");
    init(&repos, "notes");
    git(&repos, &["clone", "--quiet", &fixture.url(), "hello"]);
    let said = async || {
        let found = host.discover().await;
        found.into_iter().map(|repo| repo.merges_into).collect::<Vec<_>>()
    };
    let first = said().await;
    assert!(first[1].starts_with("giga/main in "), "{first:?}");
    git(&repos.join("notes"), &["checkout", "--quiet", "-b", "feature"]);
    assert!(said().await[1].starts_with("main in "));
    git(&repos.join("notes"), &["worktree", "add", "--quiet", "../../linked", "main"]);
    assert!(said().await[1].starts_with("giga/main in "));
    // A URL of another machine stands in for itself, with the branch that the clone has seen.
    git(&repos.join("hello"), &["config", "remote.origin.url", "https://example.org/hello.git"]);
    assert_eq!(said().await[0], "origin/main (https://example.org/hello.git)");
}

#[tokio::test]
async fn hostile_names_and_urls_are_refused_before_git_sees_them() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    for hostile in [
        "",
        "..",
        "../origin.git",
        "-rf",
        "--upload-pack=touch canary",
        "ext::sh -c 'touch canary'",
        "ext::sh",
        "a\0b",
        "a\nb",
        "/etc",
        ".git",
        "https://user:secret@host/x",
        "ssh://-oProxyCommand=touch/x",
        "git@-oProxyCommand=touch:x",
        "file:///etc",
        "https://host/x",
        "file:///../etc",
    ] {
        let refused = host.resolve(hostile).await.unwrap_err();
        assert!(
            matches!(refused, WorkspaceError::Refused { .. } | WorkspaceError::UnknownRepo(_)),
            "{hostile:?}: {refused}"
        );
        assert!(!refused.to_string().contains("secret"), "{refused}");
        assert_eq!(refused.fail_reason(), giga_domain::FailReason::CapabilityMismatch);
    }
    let beside = format!("{}/origin.gitx", fixture.url().trim_end_matches("/origin.git"));
    let narrow = GitPolicy { allowed: vec![fixture.url()], ..fixture.policy() };
    let host = Workspace::open(fixture.path().join("two"), narrow).unwrap();
    assert!(host.resolve(&beside).await.is_err() && host.resolve(&fixture.url()).await.is_ok());
}
