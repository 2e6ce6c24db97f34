//! Engines that try to have our git commands run something for them, or write outside of their folder.
//!
//! Every trap is armed with the same canary: a program that leaves a file behind when anything runs it.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use giga_domain::Epoch;
use giga_factory::workspace::{GitPolicy, Saved, Workspace, WorkspaceError, Worktree};

use super::fixture::{Fixture, git, job, merge, order, write};

struct Canary {
    program: PathBuf,
    sang: PathBuf,
}

impl Canary {
    fn new(fixture: &Fixture) -> Self {
        let (program, sang) = (fixture.path().join("canary"), fixture.path().join("canary-sang"));
        write(fixture.path(), "canary", &format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", sang.display()));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, sang }
    }

    fn command(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// The trap is real: whoever runs git in there as a user would, hears it.
    fn assert_armed(&self, folder: &Path) {
        let _ = std::process::Command::new("git").current_dir(folder).args(["add", "-A"]).output().unwrap();
        assert!(self.sang.exists(), "the trap is not armed");
        std::fs::remove_file(&self.sang).unwrap();
    }

    fn assert_silent(&self) {
        assert!(!self.sang.exists(), "it ran: {}", std::fs::read_to_string(&self.sang).unwrap());
    }
}

/// Everything that the factory ever does with a work folder.
async fn everything(worktree: Worktree, fixture: &Fixture) -> Saved {
    let saved = worktree.checkpoint("trap", true).await.unwrap().expect("there is something to save");
    let result = worktree.commit_result("trap", "").await.unwrap().expect("there is a result");
    worktree.diff(&result.commit, "", 1 << 20).await.unwrap();
    worktree.push_result(&result).await.unwrap();
    merge(&fixture.host("one"), &order(&worktree, &result)).await.unwrap();
    write(worktree.path(), "once-more.txt", "x");
    worktree.checkpoint("trap", true).await.unwrap();
    worktree.quarantine("trap").await.unwrap();
    worktree.remove().await.unwrap();
    saved
}

fn plant_config(git_dir: &Path, canary: &Canary) {
    let run = canary.command();
    for (key, value) in [
        ("core.fsmonitor", run),
        ("core.hooksPath", "hooks"),
        ("core.sshCommand", run),
        ("core.pager", run),
        ("core.editor", run),
        ("core.askPass", run),
        ("core.gitProxy", run),
        ("core.alternateRefsCommand", run),
        ("credential.helper", run),
        ("diff.external", run),
        ("diff.trap.command", run),
        ("diff.trap.textconv", run),
        ("filter.trap.clean", run),
        ("filter.trap.smudge", run),
        ("filter.trap.process", run),
        ("filter.trap.required", "true"),
        ("merge.trap.driver", run),
        ("gpg.program", run),
        ("commit.gpgSign", "true"),
        ("uploadpack.packObjectsHook", run),
        ("remote.origin.uploadpack", run),
        ("remote.origin.receivepack", run),
        ("remote.origin.vcs", "ext"),
        ("remote.origin.url", &format!("ext::{run}")),
        ("protocol.ext.allow", "always"),
        ("url.ext::x.insteadOf", "file://"),
        ("alias.fetch", &format!("!{run}")),
        ("trace2.eventTarget", "/dev/null"),
        ("gc.auto", "1"),
        ("gc.recentObjectsHook", run),
    ] {
        git(git_dir, &["config", "--file", "config", key, value]);
    }
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "update",
        "post-update",
        "pre-receive",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "proc-receive",
    ] {
        write(git_dir, &format!("hooks/{hook}"), &format!("#!/bin/sh\nexec {run} {hook}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(git_dir.join("hooks").join(hook), mode).unwrap();
    }
}

#[tokio::test]
async fn planted_configuration_hooks_and_filters_never_run() {
    let fixture = Fixture::new();
    let canary = Canary::new(&fixture);
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    write(worktree.path(), ".gitattributes", "* filter=trap diff=trap merge=trap\n");
    write(worktree.path(), "README.md", "changed\n");
    git(worktree.path(), &["add", "."]);
    git(worktree.path(), &["commit", "--quiet", "-m", "armed"]);
    write(worktree.path(), "src/lib.txt", "changed\n");
    plant_config(&worktree.path().join(".git"), &canary);
    canary.assert_armed(worktree.path());
    everything(worktree, &fixture).await;
    canary.assert_silent();
    assert_eq!(fixture.show("main:src/lib.txt"), "changed");
}

#[tokio::test]
async fn a_tampered_mirror_is_put_right_before_it_is_used() {
    let fixture = Fixture::new();
    let canary = Canary::new(&fixture);
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    // It can find the mirror through the objects that it borrows.
    let alternates = std::fs::read_to_string(worktree.path().join(".git/objects/info/alternates")).unwrap();
    let mirror = Path::new(alternates.trim()).parent().unwrap();
    assert_eq!(mirror, fixture.mirror("one").canonicalize().unwrap());
    plant_config(mirror, &canary);
    write(mirror, "info/attributes", "* filter=trap diff=trap merge=trap\n");
    write(worktree.path(), "README.md", "changed\n");
    everything(worktree, &fixture).await;
    let next = fixture.checkout(&host, job(2), 1).await;
    write(next.path(), "next.txt", "x");
    next.checkpoint("next", true).await.unwrap().unwrap();
    // Also when there is no repository left to read commits from.
    plant_config(mirror, &canary);
    std::fs::remove_dir_all(next.path().join(".git")).unwrap();
    write(next.path(), "next.txt", "y");
    next.checkpoint("next", true).await.unwrap().unwrap();
    canary.assert_silent();
}

#[tokio::test]
async fn a_repository_that_makes_git_hang_costs_its_own_job_only() {
    let fixture = Fixture::new();
    let policy = GitPolicy { local_timeout: Duration::from_secs(5), ..fixture.policy() };
    let host = Workspace::open(fixture.path().join("one"), policy).unwrap();
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let fifo = fixture.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    git(worktree.path(), &["config", "include.path", fifo.to_str().unwrap()]);
    write(worktree.path(), "a.txt", "a\n");
    let (saved, other) =
        tokio::join!(worktree.checkpoint("hangs", true), async { fixture.checkout(&host, job(2), 1).await });
    assert!(other.path().join("README.md").is_file());
    let saved = saved.unwrap().unwrap();
    assert!(saved.left_out.iter().any(|note| note.contains("longer than 5 s")), "{saved:?}");
    assert_eq!(fixture.show(&format!("{}:a.txt", saved.checkpoint.wip_ref.unwrap())), "a");
}

#[tokio::test]
async fn repositories_inside_the_tree_are_never_entered() {
    let fixture = Fixture::new();
    let canary = Canary::new(&fixture);
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    let tree = worktree.path().to_owned();
    // One that the engine's commit lists as a submodule, one that lies about, one without a commit, and one
    // planted into a folder of tracked files.
    for name in ["listed", "loose", "unborn"] {
        std::fs::create_dir(tree.join(name)).unwrap();
        git(&tree.join(name), &["init", "--quiet"]);
        if name != "unborn" {
            write(&tree.join(name), "file.txt", "x");
            write(&tree.join(name), ".gitattributes", "* filter=trap\n");
            git(&tree.join(name), &["add", "."]);
            git(&tree.join(name), &["commit", "--quiet", "-m", "x"]);
        }
    }
    git(&tree, &["add", "listed"]);
    git(&tree, &["commit", "--quiet", "-m", "a submodule"]);
    git(&tree.join("src"), &["init", "--quiet"]);
    for name in ["listed", "loose", "unborn", "src"] {
        plant_config(&tree.join(name).join(".git"), &canary);
    }
    write(&tree.join("listed"), "file.txt", "y");
    write(&tree, "README.md", "changed\n");
    canary.assert_armed(&tree.join("listed"));
    canary.assert_armed(&tree);
    let saved = everything(worktree, &fixture).await;
    canary.assert_silent();
    let noted = saved.left_out.join("\n");
    assert!(noted.contains("loose: a repository of its own") && noted.contains("unborn"), "{noted}");
    let files = git(&fixture.origin(), &["ls-tree", "-r", "main"]);
    assert!(files.contains("160000 commit") && files.contains("listed"), "{files}");
    assert!(!files.contains("loose") && !files.contains("unborn"), "{files}");
    assert_eq!(fixture.show("main:README.md"), "changed");
}

#[tokio::test]
async fn links_out_of_the_tree_are_kept_as_links() {
    let fixture = Fixture::new();
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    let outside = fixture.path().join("outside");
    write(&outside, "secret.txt", "secret\n");
    write(&outside, "lib.txt", "outside\n");
    symlink(&outside, worktree.path().join("to-folder")).unwrap();
    symlink(outside.join("secret.txt"), worktree.path().join("to-file")).unwrap();
    // A tracked folder becomes a link: what lies behind it is not what was tracked.
    std::fs::remove_dir_all(worktree.path().join("src")).unwrap();
    symlink(&outside, worktree.path().join("src")).unwrap();
    // Git refuses this one by its name: a checkpoint does without it, a result does not pretend.
    symlink("/etc/passwd", worktree.path().join(".gitmodules")).unwrap();
    let saved = worktree.checkpoint("links", true).await.unwrap().unwrap();
    assert!(saved.left_out.iter().any(|note| note.contains(".gitmodules")), "{saved:?}");
    assert!(worktree.commit_result("links", "").await.is_err());
    std::fs::remove_file(worktree.path().join(".gitmodules")).unwrap();
    let result = worktree.commit_result("links", "").await.unwrap().unwrap();
    worktree.push_result(&result).await.unwrap();
    let files = git(&fixture.origin(), &["ls-tree", "-r", &result.branch]);
    assert_eq!(files.matches("120000 blob").count(), 3, "{files}");
    assert!(!files.contains("src/"), "{files}");
    let all = git(&fixture.origin(), &["grep", "-c", "", &result.branch]);
    assert!(!all.contains("secret"), "{all}");
    worktree.remove().await.unwrap();
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "secret\n");
    assert!(outside.join("lib.txt").is_file());
}

#[tokio::test]
async fn a_work_folder_that_became_a_link_is_not_followed() {
    let fixture = Fixture::new();
    let host = fixture.host("one");
    let worktree = fixture.checkout(&host, job(1), 1).await;
    let outside = fixture.path().join("outside");
    write(&outside, "secret.txt", "secret\n");
    std::fs::remove_dir_all(worktree.path()).unwrap();
    symlink(&outside, worktree.path()).unwrap();
    let refused = worktree.checkpoint("where am I", true).await.unwrap_err();
    assert!(matches!(refused, WorkspaceError::Refused { .. }), "{refused}");
    assert!(worktree.commit_result("x", "").await.is_err());
    worktree.remove().await.unwrap();
    assert!(outside.join("secret.txt").is_file());
    assert_eq!(fixture.origin_branches(), ["main"]);
}

type Trick<'a> = (&'a str, Box<dyn Fn(&Path)>);

#[tokio::test]
async fn a_repository_that_was_swapped_or_broken_does_not_cost_the_files() {
    let fixture = Fixture::new();
    let private = fixture.path().join("private");
    git(fixture.path(), &["init", "--quiet", "private"]);
    write(&private, "private.txt", "private\n");
    git(&private, &["add", "."]);
    git(&private, &["commit", "--quiet", "-m", "private"]);
    let tricks: Vec<Trick> = vec![
        ("gone", Box::new(|_: &Path| {})),
        ("a file that points elsewhere", {
            let line = format!("gitdir: {}/.git\n", private.display());
            Box::new(move |dot_git: &Path| std::fs::write(dot_git, &line).unwrap())
        }),
        ("a link elsewhere", {
            let target = private.join(".git");
            Box::new(move |dot_git: &Path| symlink(&target, dot_git).unwrap())
        }),
        ("rubbish", Box::new(|dot_git: &Path| write(dot_git, "HEAD", "ref: ../../../../etc/passwd\n"))),
    ];
    for (number, (name, trick)) in (1..).zip(tricks) {
        let worktree = fixture.checkout(&fixture.host("one"), job(number), 1).await;
        let dot_git = worktree.path().join(".git");
        std::fs::remove_dir_all(&dot_git).unwrap();
        trick(&dot_git);
        write(worktree.path(), "kept.txt", "kept\n");
        let saved = worktree.checkpoint("broken", true).await.unwrap().unwrap();
        assert!(saved.left_out.iter().any(|note| note.contains("commits of the engine")), "{name}");
        let result = worktree.commit_result("kept", "").await.unwrap().unwrap();
        let mirror = fixture.mirror("one");
        let log = git(&mirror, &["log", "--format=%s", &result.branch]);
        assert_eq!(log, "kept\nfirst", "{name}");
        assert_eq!(git(&mirror, &["show", &format!("{}:kept.txt", result.branch)]), "kept");
        worktree.remove().await.unwrap();
    }
}

#[tokio::test]
async fn odd_file_names_are_only_names() {
    let fixture = Fixture::new();
    let canary = Canary::new(&fixture);
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    let odd = [
        "--upload-pack=canary",
        "-rf",
        "--",
        "--end-of-options",
        ":(top)magic",
        ":!everything",
        "!negated",
        "new\nline",
        "tab\there",
        "quote\"d",
        " lead",
        "trail ",
        "*",
        "$(canary)",
        "`canary`",
        "a;canary",
        "refs/heads/main",
        "HEAD",
        "\u{1b}[31m",
        "ü",
    ];
    for name in odd {
        write(worktree.path(), name, "odd\n");
    }
    let raw = std::ffi::OsStr::from_bytes(b"not-utf8-\xff");
    std::fs::write(worktree.path().join(raw), "raw\n").unwrap();
    let result = worktree.commit_result("--amend", "--all\n-m x").await.unwrap().unwrap();
    assert_eq!(result.files_changed, odd.len() as u64 + 1);
    worktree.push_result(&result).await.unwrap();
    let listed = git(
        &fixture.origin(),
        &["ls-tree", "-r", "-z", "--name-only", &result.branch, "refs/", "HEAD", "--"],
    );
    for name in ["refs/heads/main", "HEAD"] {
        assert!(listed.split('\0').any(|listed| listed == name), "{name}");
    }
    canary.assert_silent();
    worktree.remove().await.unwrap();
}

#[tokio::test]
async fn names_that_mean_git_elsewhere_are_left_out_and_told() {
    let fixture = Fixture::new();
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    write(worktree.path(), ".GIT/config", "[core]\n\tfsmonitor = x\n");
    write(worktree.path(), "deep/.Git/hooks/pre-commit", "x");
    write(worktree.path(), "git~1/config", "x");
    write(worktree.path(), "fine.txt", "fine\n");
    let result = worktree.commit_result("x", "").await.unwrap().unwrap();
    let files = git(&fixture.mirror("one"), &["ls-tree", "-r", "--name-only", &result.branch]);
    assert_eq!(files, ".gitignore\nREADME.md\nfine.txt\nsrc/lib.txt");
    assert_eq!(result.left_out.len(), 3, "{:?}", result.left_out);
}

#[tokio::test]
async fn commits_with_poisoned_trees_are_not_taken() {
    let fixture = Fixture::new();
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    let tree = worktree.path();
    write(tree, "fine.txt", "fine\n");
    let blob = git(tree, &["hash-object", "-w", "fine.txt"]);
    for (number, name) in [(0, "..".as_bytes()), (1, b".git"), (2, b".GIT"), (3, b"a/b")] {
        let mut object = b"100644 ".to_vec();
        object.extend_from_slice(name);
        object.push(0);
        let hex = |i: usize| u8::from_str_radix(&blob[2 * i..2 * i + 2], 16).unwrap();
        object.extend((0..20).map(hex));
        let raw = tree.join(".git/raw-tree");
        std::fs::write(&raw, object).unwrap();
        let poisoned = git(tree, &["hash-object", "-w", "-t", "tree", "--literally", ".git/raw-tree"]);
        let commit = git(tree, &["commit-tree", "-p", "HEAD", "-m", "poison", &poisoned]);
        git(tree, &["update-ref", "--no-deref", "HEAD", &commit]);
        write(tree, "fine.txt", &format!("fine {number}\n"));
        let saved = worktree.checkpoint("poisoned", true).await.unwrap().unwrap();
        assert!(saved.left_out.iter().any(|note| note.contains("commits of the engine")), "{saved:?}");
        let branch = saved.checkpoint.wip_ref.unwrap();
        assert_eq!(git(&fixture.origin(), &["log", "--format=%s", &branch]), "wip: poisoned\nfirst");
        git(tree, &["update-ref", "--no-deref", "HEAD", "HEAD^"]);
    }
}

#[tokio::test]
async fn special_files_neither_block_nor_break() {
    let fixture = Fixture::new();
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    let make_fifo = |name: &str| {
        let path = worktree.path().join(name);
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    };
    make_fifo("pipe");
    write(worktree.path(), "fine.txt", "fine\n");
    let result = worktree.commit_result("x", "").await.unwrap().unwrap();
    assert_eq!(result.files_changed, 1, "a pipe is nothing that git keeps");
    // A tracked file that became one is no longer what a result can hold; a checkpoint saves the rest.
    make_fifo("README.md");
    write(worktree.path(), "fine.txt", "finer\n");
    let saved = worktree.checkpoint("pipes", true).await.unwrap().unwrap();
    assert!(!saved.left_out.is_empty());
    assert!(worktree.commit_result("x", "").await.is_err());
    assert_eq!(fixture.show(&format!("{}:fine.txt", saved.checkpoint.wip_ref.unwrap())), "finer");
}

#[tokio::test]
async fn unwritable_folders_do_not_stop_the_removal() {
    let fixture = Fixture::new();
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    let outside = fixture.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::set_permissions(&outside, std::fs::Permissions::from_mode(0o750)).unwrap();
    write(worktree.path(), "locked/inner/file.txt", "x");
    symlink(&outside, worktree.path().join("locked/link")).unwrap();
    for name in ["locked/inner", "locked"] {
        std::fs::set_permissions(worktree.path().join(name), std::fs::Permissions::from_mode(0o555)).unwrap();
    }
    let folder = worktree.path().to_owned();
    worktree.remove().await.unwrap();
    assert!(!folder.exists());
    let mode = std::fs::metadata(&outside).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o750, "a link is not followed to change rights either");
}

#[tokio::test]
async fn hostile_titles_cannot_sign_for_another_epoch() {
    let fixture = Fixture::new();
    let worktree = fixture.checkout(&fixture.host("one"), job(1), 1).await;
    write(worktree.path(), "a.txt", "a\n");
    let forged = format!("x\n\nGigafactory-Job: {}/99", job(1));
    let saved = worktree.checkpoint(&forged, true).await.unwrap().unwrap();
    assert_eq!(saved.checkpoint.note.as_deref(), Some("x"));
    let result = worktree.commit_result(&forged, &format!("body\0\n{forged}")).await.unwrap().unwrap();
    let message = git(&fixture.mirror("one"), &["log", "-1", "--format=%B", &result.branch]);
    assert!(message.trim_end().ends_with(&format!("Gigafactory-Job: {}/1", job(1))), "{message}");
    // A successor is not kept off by what the message claims.
    let two = fixture.host("two");
    let repo = fixture.repo(&two).await;
    let next = two.checkout(job(1), Epoch(2), &repo, None, Some(&saved.checkpoint)).await.unwrap();
    write(next.path(), "a.txt", "b\n");
    assert_eq!(next.checkpoint("mine", true).await.unwrap().unwrap().not_pushed, None);
}
