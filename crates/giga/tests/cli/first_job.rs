//! "Your first job" of the README, line by line as it stands there, on the checkouts that people have.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::{git, job};
use crate::world::{Home, Ran, Server, giga, run};

const README: &str = include_str!("../../../../README.md");

fn section() -> &'static str {
    let (_, after) = README.split_once("\n## Your first job\n").expect("the README has its first job");
    after.split("\n## ").next().unwrap()
}

/// What to type into another terminal: the first block of the section.
fn lines() -> Vec<&'static str> {
    let (_, block) = section().split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines: Vec<&str> = block.lines().collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("giga ")), "{lines:#?}");
    lines
}

/// The line as a shell would run it, comments and `~` and all, with the binary of this test as `giga`.
fn shell(home: &Home, line: &str) -> Command {
    let folder = Path::new(env!("CARGO_BIN_EXE_giga")).parent().unwrap();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others));
    let like = giga(home.path());
    let mut command = Command::new("sh");
    command.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", std::env::join_paths(folders).unwrap()).current_dir(home.path());
    // A port of its own is all that differs: the usual one is shared by everything on this machine.
    command.env("GIGA_LISTEN", "127.0.0.1:0").arg("-c").arg(format!("exec {line}"));
    command
}

/// `giga up`, as the text before the block says it, and what more a test wants of it.
fn up(home: &Home, more: &str) -> Server {
    let line = "giga up --repos ~/code";
    assert!(section().contains(&format!("`{line}`")), "the README starts it otherwise now");
    Server::spawn(shell(home, &format!("{line}{more}")), home.path())
}

/// An ordinary checkout at `~/code/app`, on `main`.
fn checkout(home: &Home) -> PathBuf {
    let app = home.path().join("code/app");
    std::fs::create_dir_all(&app).unwrap();
    git(&app, &["init", "-q", "-b", "main"]);
    std::fs::write(app.join("app.txt"), "one\n").unwrap();
    git(&app, &["add", "."]);
    git(&app, &["commit", "-q", "-m", "first"]);
    app
}

/// Every line, one after the other; the last of them is the word to ship, and its words are returned.
fn follow_the_readme(home: &Home) -> Ran {
    let mut last = None;
    for line in lines() {
        let ran = run(&mut shell(home, line));
        assert_eq!(ran.code, Some(0), "{line}\n{ran:#?}");
        last = Some((line, ran));
    }
    let (line, shipped) = last.unwrap();
    assert!(line.starts_with("giga job ship hello"), "{line}");
    let hello = job(home, "hello");
    assert_eq!(hello["stage"], "shipped", "{hello:#}");
    let commit = hello["merge"]["commit"].as_str().unwrap();
    assert!(shipped.out.contains(commit), "it names the commit: {shipped:#?}");
    home.giga(&["job", "wait", "hello"]).ok();
    shipped
}

fn status(folder: &Path) -> String {
    git(folder, &["status", "--porcelain"])
}

#[test]
fn on_a_checkout_with_an_origin() {
    let home = Home::new();
    let seed = checkout(&home);
    let origin = home.path().join("origin.git");
    git(home.path(), &["clone", "-q", "--bare", seed.to_str().unwrap(), origin.to_str().unwrap()]);
    std::fs::remove_dir_all(&seed).unwrap();
    git(home.path(), &["clone", "-q", origin.to_str().unwrap(), seed.to_str().unwrap()]);
    let app = seed;
    let before = git(&app, &["rev-parse", "HEAD", "main", "origin/main"]);
    let _server = up(&home, "");

    let shipped = follow_the_readme(&home);
    assert_eq!(git(&origin, &["ls-tree", "--name-only", "main"]), "HELLO.md\napp.txt\n");
    let commit = git(&origin, &["rev-parse", "main"]);
    assert!(shipped.out.contains(commit.trim()), "{shipped:#?}");
    assert!(shipped.err.contains("merged into origin/main as"), "{shipped:#?}");
    assert!(shipped.err.contains(&format!("`git pull` in {}", shown(&app))), "{shipped:#?}");
    assert_eq!(
        git(&app, &["rev-parse", "HEAD", "main", "origin/main"]),
        before,
        "the checkout is its owner's"
    );
    assert_eq!((status(&app), app.join("HELLO.md").exists()), (String::new(), false));

    git(&app, &["pull", "-q"]);
    assert!(app.join("HELLO.md").exists(), "as it said");
}

#[test]
fn on_a_checkout_without_an_origin_that_is_being_worked_in() {
    let home = Home::new();
    let app = checkout(&home);
    std::fs::write(app.join("app.txt"), "one\nand a half\n").unwrap();
    let before = (git(&app, &["rev-parse", "HEAD", "main"]), status(&app));
    let _server = up(&home, "");

    let shipped = follow_the_readme(&home);
    assert_eq!(git(&app, &["ls-tree", "--name-only", "giga/main"]), "HELLO.md\napp.txt\n");
    assert_eq!((git(&app, &["rev-parse", "HEAD", "main"]), status(&app)), before);
    assert_eq!(std::fs::read_to_string(app.join("app.txt")).unwrap(), "one\nand a half\n");
    assert!(!app.join("HELLO.md").exists());
    let there = shown(&app);
    assert!(shipped.err.contains("merged into giga/main as"), "{shipped:#?}");
    let words = format!("because main is checked out in {there}; `git merge giga/main` there");
    assert!(shipped.err.contains(&words), "{shipped:#?}");

    git(&app, &["merge", "-q", "giga/main"]);
    assert!(app.join("HELLO.md").exists(), "as it said");
    assert_eq!(std::fs::read_to_string(app.join("app.txt")).unwrap(), "one\nand a half\n");
}

#[test]
fn on_a_clean_checkout_that_may_be_updated() {
    let home = Home::new();
    let app = checkout(&home);
    let _server = up(&home, " --update-checkouts");

    let shipped = follow_the_readme(&home);
    assert_eq!(git(&app, &["ls-tree", "--name-only", "main"]), "HELLO.md\napp.txt\n");
    assert_eq!(git(&app, &["symbolic-ref", "--short", "HEAD"]), "main\n");
    assert_eq!((status(&app), app.join("HELLO.md").exists()), (String::new(), true));
    assert!(shipped.err.contains("merged into main as"), "{shipped:#?}");
    assert!(shipped.err.contains(&format!("in {}", shown(&app))), "{shipped:#?}");
}

/// As `giga` names it.
fn shown(folder: &Path) -> String {
    folder.canonicalize().unwrap().display().to_string()
}

/// A merge that is not done is not a success: neither for who ships it nor for who waits for it.
#[test]
fn what_cannot_get_in_is_no_success() {
    let home = Home::new();
    let app = checkout(&home);
    let _server = up(&home, "");
    for line in lines().into_iter().filter(|line| !line.starts_with("giga job ship")) {
        run(&mut shell(&home, line)).ok();
    }
    // Meanwhile the owner wrote one, too.
    std::fs::write(app.join("HELLO.md"), "mine\n").unwrap();
    git(&app, &["add", "."]);
    git(&app, &["commit", "-q", "-m", "mine"]);
    let refused = home.giga(&["job", "ship", "hello"]);
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    assert_eq!(std::fs::read_to_string(app.join("HELLO.md")).unwrap(), "mine\n");
    assert_ne!(job(&home, "hello")["stage"], "shipped");
}
