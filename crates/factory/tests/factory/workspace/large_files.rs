//! Files that git-lfs tracks, with the real program and an origin that keeps its objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_factory::workspace::{GitPolicy, Workspace};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::fixture::{Fixture, candidate, finish, git, job, merge, order, write};

/// An origin with a large file, as somebody with git-lfs would have pushed it.
fn with_large_file() -> Fixture {
    let fixture = Fixture::new();
    let seed = fixture.path().join("seed");
    git(&seed, &["lfs", "install", "--local"]);
    git(&seed, &["lfs", "track", "*.bin"]);
    write(&seed, "big.bin", &large("old"));
    push(&fixture, "a large file");
    assert!(object(&fixture, &large("old")).is_file(), "the origin has the object");
    fixture
}

fn push(fixture: &Fixture, message: &str) {
    let seed = fixture.path().join("seed");
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "--quiet", "-m", message]);
    git(&seed, &["push", "--quiet", "origin", "main"]);
}

fn large(word: &str) -> String {
    word.repeat(50_000)
}

/// Where the origin keeps this content.
fn object(fixture: &Fixture, content: &str) -> PathBuf {
    let oid = const_hex::encode(Sha256::digest(content));
    fixture.origin().join("lfs/objects").join(&oid[..2]).join(&oid[2..4]).join(oid)
}

fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn is_pointer(text: &str) -> bool {
    text.starts_with("version https://git-lfs.github.com/spec/v1")
}

fn listening(host: &Workspace) -> (Workspace, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let sink = notes.clone();
    (host.noting(move |note| sink.lock().push(note.to_owned())), notes)
}

#[tokio::test]
async fn contents_are_checked_out_and_pushed_with_the_result() {
    let fixture = with_large_file();
    let (host, notes) = listening(&fixture.host("one"));
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert_eq!(text(worktree.path().join("big.bin")), large("old"));
    assert_eq!(git(worktree.path(), &["status", "--porcelain"]), "");
    assert!(!notes.lock().iter().any(|note| note.contains("large")), "{notes:?}");

    // The engine's own settings are none of the factory's business.
    let canary = fixture.path().join("canary");
    let hostile = format!("touch {}; cat", canary.display());
    for key in ["filter.lfs.process", "filter.lfs.clean"] {
        git(worktree.path(), &["config", key, &hostile]);
    }
    write(worktree.path(), "big.bin", &large("new"));
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    assert!(object(&fixture, &large("new")).is_file(), "a checkpoint is whole, too");
    let result = finish(&worktree, "other.bin", &large("other")).await;
    assert!(!canary.exists(), "a filter of the engine's was run");
    for file in ["big.bin", "other.bin"] {
        assert!(is_pointer(&fixture.show(&format!("{}:{file}", result.branch))), "{file}");
    }
    assert!(object(&fixture, &large("other")).is_file());

    let order = order(&worktree, &result);
    let other = fixture.host("two");
    let tree = other.candidate_tree(&order, &candidate(&other, &order).await, None, &[]).await.unwrap();
    assert_eq!(text(tree.path().join("big.bin")), large("new"));
    merge(&other, &order).await.unwrap();
    let three = fixture.host("three");
    let next = fixture.checkout(&three, job(2), 1).await;
    assert_eq!(text(next.path().join("other.bin")), large("other"));
    // What is here already is not fetched again.
    std::fs::remove_dir_all(fixture.origin().join("lfs")).unwrap();
    let again = fixture.checkout(&three, job(3), 1).await;
    assert_eq!(text(again.path().join("big.bin")), large("new"));
    let unchanged = next.commit_result("nothing", "").await.unwrap();
    assert!(unchanged.is_none(), "{unchanged:?}");
}

#[tokio::test]
async fn what_the_engine_commits_itself_is_pushed_as_well() {
    let fixture = with_large_file();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    write(worktree.path(), "big.bin", &large("mine"));
    git(worktree.path(), &["commit", "--quiet", "-am", "by the engine"]);
    // Not there any more when the result is made: only its commit has it.
    write(worktree.path(), "big.bin", &large("last"));
    let result = finish(&worktree, "a.txt", "a\n").await;
    assert!(is_pointer(&fixture.show(&format!("{}~1:big.bin", result.branch))));
    for content in ["mine", "last"] {
        assert!(object(&fixture, &large(content)).is_file(), "{content}");
    }
}

#[tokio::test]
async fn without_the_program_pointers_stay_pointers_and_the_log_says_so_once() {
    let fixture = with_large_file();
    let policy = GitPolicy { large_files: false, ..fixture.policy() };
    let host = Workspace::open(fixture.path().join("one"), policy).unwrap();
    let (host, notes) = listening(&host);
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert!(is_pointer(&text(worktree.path().join("big.bin"))));
    write(worktree.path(), "a.txt", "a\n");
    worktree.checkpoint("half way", true).await.unwrap().unwrap();
    let result = finish(&worktree, "b.txt", "b\n").await;
    assert_eq!(result.files_changed, 2);
    let told: Vec<_> = notes.lock().iter().filter(|note| note.contains("large files")).cloned().collect();
    assert_eq!(told, ["origin: large files stay pointers: git-lfs is not installed here"]);
}

#[tokio::test]
async fn a_server_that_the_factory_may_not_use_is_not_asked() {
    let fixture = with_large_file();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/lfs", listener.local_addr().unwrap());
    write(&fixture.path().join("seed"), ".lfsconfig", &format!("[lfs]\n\turl = {url}\n"));
    let seed = fixture.path().join("seed");
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "--quiet", "-m", "elsewhere"]);
    git(&seed, &["push", "--quiet", "--no-verify", "origin", "main"]);
    let (host, notes) = listening(&fixture.host("one"));
    let worktree = fixture.checkout(&host, job(1), 1).await;
    assert!(is_pointer(&text(worktree.path().join("big.bin"))));
    assert!(notes.lock().iter().any(|note| note.contains("large files stay pointers")), "{notes:?}");
    finish(&worktree, "a.txt", "a\n").await;
    let asked = listener.accept();
    assert!(asked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it was asked");
}
