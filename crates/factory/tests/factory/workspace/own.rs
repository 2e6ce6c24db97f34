//! The owner's own checkout: results arrive, and what somebody works on there is never touched.

use std::path::{Path, PathBuf};

use giga_domain::Epoch;
use giga_factory::workspace::{GitPolicy, MergeOrder, Pushed, Workspace, WorkspaceError, Worktree, survey};

use super::fixture::{Fixture, Merged, candidate, finish, git, git_fails, job, merge, order, write};

/// `repos/notes`, without an origin.
struct Own {
    fixture: Fixture,
    folder: PathBuf,
}

impl Own {
    fn new() -> Self {
        let own = Self::empty();
        write(&own.folder, "notes.txt", "one\n");
        git(&own.folder, &["add", "."]);
        git(&own.folder, &["commit", "--quiet", "-m", "first"]);
        own
    }

    fn empty() -> Self {
        let fixture = Fixture::new();
        let folder = fixture.path().join("repos/notes");
        std::fs::create_dir_all(&folder).unwrap();
        git(&folder, &["init", "--quiet", "--initial-branch=main"]);
        Self { folder: folder.canonicalize().unwrap(), fixture }
    }

    fn policy(&self, update_checkouts: bool) -> GitPolicy {
        let repos = Some(self.fixture.path().join("repos"));
        GitPolicy { repos, update_checkouts, ..GitPolicy::default() }
    }

    fn host(&self, update_checkouts: bool) -> Workspace {
        Workspace::open(self.fixture.path().join("one"), self.policy(update_checkouts)).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.folder, args)
    }

    fn tip(&self, branch: &str) -> String {
        self.git(&["rev-parse", &format!("refs/heads/{branch}")])
    }

    /// What `giga up` says about it before any work starts.
    async fn said(&self, update_checkouts: bool) -> String {
        let survey = survey(&self.policy(update_checkouts)).await.unwrap();
        let found = survey.found.into_iter().find(|found| found.name == "notes");
        let text = found.unwrap_or_else(|| panic!("{:?}", survey.skipped)).merges_into;
        text.replace(&self.folder.display().to_string(), "DIR")
    }
}

async fn start(host: &Workspace, number: u64) -> Worktree {
    let repo = host.resolve("notes").await.unwrap();
    host.checkout(job(number), Epoch(1), &repo, None, None).await.unwrap()
}

/// A job that leaves a file of its number.
async fn result(host: &Workspace, number: u64) -> MergeOrder {
    let worktree = start(host, number).await;
    let result = finish(&worktree, &format!("{number}.txt"), "new\n").await;
    order(&worktree, &result)
}

/// Where it went, and what its owner is told.
async fn ship(host: &Workspace, number: u64) -> (String, String) {
    merged(host, &result(host, number).await).await
}

async fn merged(host: &Workspace, order: &MergeOrder) -> (String, String) {
    let outcome = merge(host, order).await.unwrap();
    let Merged::Now { commit, into } = outcome else { panic!("{outcome:?}") };
    let note = host.merge_note(&order.repo, &commit, &into).await.unwrap();
    (into, note.replace(commit.as_str().get(..10).unwrap(), "COMMIT"))
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap()
}

#[tokio::test]
async fn a_branch_that_is_checked_out_is_left_alone_and_the_next_job_starts_from_what_was_merged() {
    let own = Own::new();
    let host = own.host(false);
    assert_eq!(
        own.said(false).await,
        "giga/main in DIR: main is checked out there; --update-checkouts moves it"
    );
    write(&own.folder, "notes.txt", "one\nuncommitted\n");
    write(&own.folder, "untracked.txt", "mine\n");
    let before = (own.tip("main"), own.git(&["status", "--porcelain"]));

    let (into, note) = ship(&host, 1).await;
    assert_eq!(into, "giga/main");
    let folder = own.folder.display();
    let expected = format!(
        "merged into giga/main as COMMIT, because main is checked out in {folder}; `git merge giga/main` there"
    );
    assert_eq!(note, expected);
    assert_eq!((own.tip("main"), own.git(&["status", "--porcelain"])), before);
    assert_eq!(read(&own.folder, "notes.txt"), "one\nuncommitted\n");
    assert!(!own.folder.join("1.txt").exists());

    let dependent = start(&host, 2).await;
    assert_eq!(read(dependent.path(), "1.txt"), "new\n", "what was merged before is there");
    let second = finish(&dependent, "2.txt", "new\n").await;
    assert_eq!(second.files_changed, 1, "the job's own change, not its dependency's");
    assert_eq!(merged(&host, &order(&dependent, &second)).await.0, "giga/main");

    // What the note says works, with the uncommitted change where it was.
    own.git(&["merge", "--quiet", "giga/main"]);
    assert!(own.folder.join("1.txt").exists() && own.folder.join("2.txt").exists());
    assert_eq!(read(&own.folder, "notes.txt"), "one\nuncommitted\n");
    own.git(&["commit", "--quiet", "-am", "mine"]);
    let third = start(&host, 3).await;
    assert_eq!(read(third.path(), "notes.txt"), "one\nuncommitted\n", "the owner's branch has it all");
}

#[tokio::test]
async fn a_clean_tree_is_brought_up_to_date_where_the_operator_allowed_it() {
    let own = Own::new();
    let host = own.host(true);
    assert_eq!(own.said(true).await, "main in DIR while its files are unchanged, otherwise giga/main");
    write(&own.folder, "untracked.txt", "mine\n");
    let (into, note) = ship(&host, 1).await;
    assert_eq!(
        (into.as_str(), note),
        ("main", format!("merged into main as COMMIT in {}", own.folder.display()))
    );
    assert_eq!(read(&own.folder, "1.txt"), "new\n");
    assert_eq!(own.git(&["status", "--porcelain"]), "?? untracked.txt");
    assert_eq!(own.git(&["log", "-1", "--format=%s"]), "Merge the result");
}

#[tokio::test]
async fn uncommitted_work_is_never_touched_though_updates_are_allowed() {
    for staged in [false, true] {
        let own = Own::new();
        let host = own.host(true);
        write(&own.folder, "notes.txt", "one\nuncommitted\n");
        if staged {
            own.git(&["add", "."]);
        }
        let before = (own.tip("main"), own.git(&["status", "--porcelain"]));
        assert_eq!(ship(&host, 1).await.0, "giga/main");
        assert_eq!((own.tip("main"), own.git(&["status", "--porcelain"])), before);
        assert_eq!(read(&own.folder, "notes.txt"), "one\nuncommitted\n");
        // Once it is clean again, the branch gets all of it.
        own.git(&["commit", "--quiet", "-am", "mine"]);
        own.git(&["merge", "--quiet", "--no-edit", "giga/main"]);
        assert_eq!(ship(&host, 2).await.0, "main");
        assert!(own.folder.join("1.txt").exists() && own.folder.join("2.txt").exists());
    }
}

#[tokio::test]
async fn a_file_of_the_owners_in_the_way_is_kept_and_the_result_goes_beside() {
    let own = Own::new();
    let host = own.host(true);
    write(&own.folder, "1.txt", "the owner's\n");
    let before = own.tip("main");
    assert_eq!(ship(&host, 1).await.0, "giga/main");
    assert_eq!(read(&own.folder, "1.txt"), "the owner's\n");
    assert_eq!(own.tip("main"), before);
}

#[tokio::test]
async fn a_tree_that_becomes_dirty_before_the_push_is_no_failure() {
    let own = Own::new();
    let host = own.host(true);
    let order = result(&host, 1).await;
    let candidate = candidate(&host, &order).await;
    assert_eq!(candidate.into, "main");
    write(&own.folder, "notes.txt", "one\nuncommitted\n");
    assert_eq!(host.push_candidate(&order, &candidate).await.unwrap(), Pushed::Outrun);
    assert_eq!(read(&own.folder, "notes.txt"), "one\nuncommitted\n");
    own.git(&["checkout", "--quiet", "notes.txt"]);
    // Clean again, but it was refused: the next try is sure to arrive.
    assert_eq!(merged(&host, &order).await.0, "giga/main");
    assert_eq!(ship(&host, 2).await.0, "main");
    assert!(own.folder.join("1.txt").exists() && own.folder.join("2.txt").exists());
}

#[tokio::test]
async fn with_another_branch_checked_out_the_branch_itself_is_moved() {
    for updates in [false, true] {
        let own = Own::new();
        let host = own.host(updates);
        own.git(&["checkout", "--quiet", "-b", "feature"]);
        write(&own.folder, "notes.txt", "one\nuncommitted\n");
        assert_eq!(own.said(updates).await, "main in DIR");
        let feature = own.tip("feature");
        assert_eq!(ship(&host, 1).await.0, "main");
        assert_eq!(own.git(&["show", "main:1.txt"]), "new");
        assert_eq!(own.tip("feature"), feature);
        assert_eq!(own.git(&["status", "--porcelain"]), " M notes.txt");
        assert!(!own.folder.join("1.txt").exists());
    }
}

#[tokio::test]
async fn what_is_beside_comes_along_when_the_branch_can_be_moved_again() {
    let own = Own::new();
    let host = own.host(false);
    assert_eq!(ship(&host, 1).await.0, "giga/main");
    own.git(&["checkout", "--quiet", "-b", "feature"]);
    assert_eq!(ship(&host, 2).await.0, "main");
    assert_eq!(own.git(&["show", "main:1.txt", "main:2.txt"]), "new\nnew");
}

#[tokio::test]
async fn an_owner_who_went_on_alone_brings_the_two_together_themselves() {
    let own = Own::new();
    let host = own.host(true);
    write(&own.folder, "notes.txt", "one\nuncommitted\n");
    assert_eq!(ship(&host, 1).await.0, "giga/main");
    own.git(&["commit", "--quiet", "-am", "mine"]);
    let main = own.tip("main");
    assert_eq!(ship(&host, 2).await.0, "giga/main", "it has what main has not, and the other way round");
    assert_eq!(own.tip("main"), main);
    own.git(&["checkout", "--quiet", "--detach"]);
    let (into, note) = ship(&host, 3).await;
    assert_eq!(into, "giga/main");
    assert!(note.ends_with("because main cannot be moved now; `git merge giga/main` on main"), "{note}");
    own.git(&["checkout", "--quiet", "main"]);
    own.git(&["merge", "--quiet", "--no-edit", "giga/main"]);
    assert_eq!(ship(&host, 4).await.0, "main");
    assert_eq!(own.git(&["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_branch_of_a_linked_worktree_is_checked_out_as_well() {
    let own = Own::new();
    own.git(&["checkout", "--quiet", "-b", "feature"]);
    let linked = own.fixture.path().canonicalize().unwrap().join("linked");
    own.git(&["worktree", "add", "--quiet", linked.to_str().unwrap(), "main"]);
    let linked_there = linked.display();
    assert_eq!(
        own.said(false).await,
        format!("giga/main in DIR: main is checked out in {linked_there}; --update-checkouts moves it")
    );
    let (into, note) = ship(&own.host(false), 1).await;
    assert_eq!(into, "giga/main");
    assert!(note.contains(&format!("because main is checked out in {linked_there};")), "{note}");
    assert!(!linked.join("1.txt").exists());

    assert_eq!(ship(&own.host(true), 2).await.0, "main");
    assert!(linked.join("1.txt").exists() && linked.join("2.txt").exists());
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
    assert!(!own.folder.join("2.txt").exists(), "another branch is checked out there");

    let third = own.fixture.path().join("third");
    own.git(&["worktree", "add", "--quiet", "--force", third.to_str().unwrap(), "main"]);
    assert_eq!(ship(&own.host(true), 3).await.0, "giga/main", "one of the two would be left behind");
    assert_eq!(git(&third, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_rebase_under_way_is_not_disturbed() {
    let own = Own::new();
    let host = own.host(true);
    write(&own.folder, "notes.txt", "one\ntwo\n");
    own.git(&["commit", "--quiet", "-am", "second"]);
    own.git(&["-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "--quiet", "-i", "HEAD~1"]);
    let before = own.git(&["rev-parse", "HEAD"]);
    assert_eq!(ship(&host, 1).await.0, "giga/main");
    assert_eq!(own.git(&["rev-parse", "HEAD"]), before);
    assert!(!own.folder.join("1.txt").exists());
    own.git(&["rebase", "--continue"]);
    assert_eq!(own.git(&["symbolic-ref", "--short", "HEAD"]), "main");
}

#[tokio::test]
async fn the_folders_own_settings_do_not_let_a_branch_be_moved_under_its_files() {
    let own = Own::new();
    own.git(&["config", "receive.denyCurrentBranch", "ignore"]);
    let host = own.host(true);
    let order = result(&host, 1).await;
    let candidate = candidate(&host, &order).await;
    write(&own.folder, "notes.txt", "one\nuncommitted\n");
    let before = own.tip("main");
    assert_eq!(host.push_candidate(&order, &candidate).await.unwrap(), Pushed::Outrun);
    assert_eq!(own.tip("main"), before);
}

#[tokio::test]
async fn the_branch_beside_may_be_looked_at_and_is_not_moved_either() {
    let own = Own::new();
    let host = own.host(false);
    ship(&host, 1).await;
    own.git(&["checkout", "--quiet", "giga/main"]);
    own.git(&["worktree", "add", "--quiet", "../../linked", "main"]);
    let refused = merge(&host, &result(&host, 2).await).await.unwrap_err();
    assert!(matches!(refused, WorkspaceError::PushRefused { .. }), "{refused}");
    assert!(refused.to_string().contains("checked out"), "{refused}");
}

#[tokio::test]
async fn a_bare_repository_is_an_ordinary_origin_until_somebody_works_on_it() {
    let own = Own::new();
    let bare = own.fixture.path().join("repos/kept.git");
    git(
        own.fixture.path(),
        &["clone", "--quiet", "--bare", own.folder.to_str().unwrap(), bare.to_str().unwrap()],
    );
    git(&bare, &["remote", "remove", "origin"]);
    let host = own.host(false);
    let ship = async |number| {
        let repo = host.resolve("kept").await.unwrap();
        let worktree = host.checkout(job(number), Epoch(1), &repo, None, None).await.unwrap();
        let result = finish(&worktree, &format!("{number}.txt"), "new\n").await;
        let order = order(&worktree, &result);
        let Merged::Now { commit, into } = merge(&host, &order).await.unwrap() else { panic!("merged") };
        (into.clone(), host.merge_note(&repo, &commit, &into).await)
    };
    assert_eq!(ship(1).await, ("main".to_owned(), None));
    let linked = own.fixture.path().join("linked");
    git(&bare, &["worktree", "add", "--quiet", linked.to_str().unwrap(), "main"]);
    let (into, note) = ship(2).await;
    assert_eq!(into, "giga/main");
    assert!(note.unwrap().contains("main is checked out in"));
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn the_first_result_of_an_empty_folder_arrives_too() {
    let own = Own::empty();
    write(&own.folder, "draft.txt", "not committed yet\n");
    let host = own.host(false);
    assert_eq!(ship(&host, 1).await.0, "giga/main");
    assert_eq!(ship(&host, 2).await.0, "giga/main");
    assert_eq!(own.git(&["status", "--porcelain"]), "?? draft.txt");
    own.git(&["merge", "--quiet", "giga/main"]);
    assert!(own.folder.join("1.txt").exists() && own.folder.join("2.txt").exists());

    let own = Own::empty();
    assert_eq!(ship(&own.host(true), 1).await.0, "main");
    assert_eq!(own.git(&["status", "--porcelain"]), "");
    assert!(own.folder.join("1.txt").exists());
}

#[tokio::test]
async fn a_branch_that_the_manifest_names_is_treated_alike() {
    let own = Own::new();
    own.git(&["checkout", "--quiet", "-b", "release"]);
    let host = own.host(false);
    let repo = host.resolve("notes").await.unwrap();
    let ship = async |number| {
        let worktree = host.checkout(job(number), Epoch(1), &repo, Some("release"), None).await.unwrap();
        let result = finish(&worktree, &format!("{number}.txt"), "new\n").await;
        let mut order = order(&worktree, &result);
        order.into = Some("release".to_owned());
        (merged(&host, &order).await.0, worktree.path().join("1.txt").exists())
    };
    assert_eq!(ship(1).await, ("giga/release".to_owned(), true));
    assert_eq!(ship(2).await, ("giga/release".to_owned(), true), "it starts from what was merged");
    own.git(&["checkout", "--quiet", "main"]);
    assert_eq!(ship(3).await.0, "release");
    assert_eq!(own.git(&["show", "release:1.txt", "release:2.txt", "release:3.txt"]), "new\nnew\nnew");
}

#[tokio::test]
async fn a_repeated_order_finds_the_merge_beside() {
    let own = Own::new();
    let host = own.host(false);
    let order = result(&host, 1).await;
    let Merged::Now { commit, into } = merge(&host, &order).await.unwrap() else { panic!("merged") };
    assert_eq!(into, "giga/main");
    assert_eq!(merge(&host, &order).await.unwrap(), Merged::Before { commit: commit.clone(), into });
    own.git(&["merge", "--quiet", "giga/main"]);
    assert_eq!(merge(&host, &order).await.unwrap(), Merged::Before { commit, into: "main".to_owned() });
}

#[tokio::test]
async fn the_origin_is_the_truth_and_its_checkout_is_told_to_pull() {
    for dirty in [false, true] {
        let fixture = Fixture::new();
        let repos = fixture.path().canonicalize().unwrap().join("repos");
        std::fs::create_dir_all(&repos).unwrap();
        git(&repos, &["clone", "--quiet", &fixture.url(), "notes"]);
        let folder = repos.join("notes");
        if dirty {
            write(&folder, "README.md", "uncommitted\n");
        }
        let before = (git(&folder, &["rev-parse", "main"]), git(&folder, &["status", "--porcelain"]));
        let policy = GitPolicy { repos: Some(repos), update_checkouts: true, ..GitPolicy::default() };
        let host = Workspace::open(fixture.path().join("one"), policy).unwrap();
        let (into, note) = ship(&host, 1).await;
        assert_eq!(into, "main");
        assert_eq!(note, format!("merged into origin/main as COMMIT; `git pull` in {}", folder.display()));
        assert_eq!(fixture.show("main:1.txt"), "new");
        let after = (git(&folder, &["rev-parse", "main"]), git(&folder, &["status", "--porcelain"]));
        assert_eq!(after, before);
        git(&folder, &["pull", "--quiet", "--ff-only"]);
        assert_eq!(read(&folder, "1.txt"), "new\n");
    }
}

#[tokio::test]
async fn an_origin_that_is_somebodys_checkout_is_treated_as_one() {
    let own = Own::new();
    let clone = own.fixture.path().join("repos/clone");
    git(own.fixture.path(), &["clone", "--quiet", own.folder.to_str().unwrap(), clone.to_str().unwrap()]);
    let host = own.host(false);
    let repo = host.resolve("clone").await.unwrap();
    let worktree = host.checkout(job(1), Epoch(1), &repo, None, None).await.unwrap();
    let result = finish(&worktree, "1.txt", "new\n").await;
    let (into, note) = merged(&host, &order(&worktree, &result)).await;
    assert_eq!(into, "giga/main");
    assert!(note.contains(&format!("main is checked out in {};", own.folder.display())), "{note}");
    assert!(git_fails(&own.folder, &["show", "main:1.txt"]).contains("1.txt"));
}
