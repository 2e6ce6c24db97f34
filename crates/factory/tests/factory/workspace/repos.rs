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

#[tokio::test]
async fn a_checkout_without_an_origin_is_its_own_origin() {
    let fixture = Fixture::new();
    let host = with_repos(&fixture);
    let alone = fixture.path().join("repos/my-app");
    std::fs::create_dir_all(&alone).unwrap();
    git(&alone, &["init", "--quiet", "--initial-branch=main"]);
    write(&alone, "x.txt", "x\n");
    git(&alone, &["add", "."]);
    git(&alone, &["commit", "--quiet", "-m", "x"]);
    let source = host.resolve("my-app").await.unwrap();
    let worktree = host.checkout(job(1), Epoch(1), &source, None, None).await.unwrap();
    let result = finish(&worktree, "y.txt", "y\n").await;
    assert_eq!(git(&alone, &["show", &format!("{}:y.txt", result.branch)]), "y");
    // Nobody's checked-out branch is moved under their feet; git says what to do about it.
    let refused = merge(&host, &order(&worktree, &result)).await.unwrap_err();
    assert!(refused.to_string().contains("denyCurrentBranch"), "{refused}");
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
