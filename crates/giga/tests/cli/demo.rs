//! The demo as a newcomer and as a script runs it: it ends well, says what it merged, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::world::{Home, giga, run};

/// `giga demo` with a folder for temporary files of its own.
fn demo(home: &Home, args: &[&str]) -> Command {
    std::fs::create_dir_all(home.path().join("tmp")).unwrap();
    let mut command = giga(home.path());
    // Settings of the user's must not get into the demo.
    command
        .env("TMPDIR", home.path().join("tmp"))
        .env("GIGA_URL", "http://127.0.0.1:1")
        .env("GIGA_SEATS", "none");
    command.arg("demo").args(args);
    command
}

fn left_behind(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.path().join("tmp")).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Processes that were started for this demo and still run.
fn still_running(home: &Home) -> Vec<String> {
    let tmp = home.path().join("tmp").display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter_map(|path| std::fs::read(path.join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&tmp))
        .collect()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What runs in a factory must never be near an admin's token. Looked at with each line that the demo prints; only root may
/// look into a factory at all.
#[test]
fn factories_have_tokens_of_their_own() {
    let home = Home::new();
    let mut playing = demo(&home, &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut tokens = Vec::new();
    for line in BufReader::new(playing.stderr.take().unwrap()).lines() {
        line.unwrap();
        let tmp = home.path().join("tmp").display().to_string();
        for process in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
            let read = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
            let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            if words.contains("factory run") && words.contains(&tmp) {
                let environment = read("environ");
                let variables = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
                tokens
                    .extend(variables.filter_map(|pair| Some(pair.strip_prefix("GIGA_TOKEN=")?.to_owned())));
            }
        }
    }
    assert!(playing.wait().unwrap().success());
    assert!(tokens.iter().all(|token| token.starts_with("giga_factory_")), "{tokens:?}");
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0";
    assert!(!is_root || !tokens.is_empty(), "the factory was seen");
}

#[test]
fn the_tour_ends_with_a_merge_commit() {
    let home = Home::new();
    let ran = run(&mut demo(&home, &["--keep"]));
    let output = ran.err.clone();
    let out = ran.ok();
    let commit =
        out.trim().strip_prefix("merged fix-greeting ").unwrap_or_else(|| panic!("{out}")).to_owned();
    let [folder] = left_behind(&home).try_into().unwrap();
    let origin = home.path().join("tmp").join(folder).join("repos/hello.git");
    assert_eq!(git(&origin, &["rev-parse", "main"]), commit);
    let parents = git(&origin, &["show", "--no-patch", "--format=%P", &commit]);
    assert_eq!(parents.split(' ').count(), 2, "a merge has two: {parents}");
    assert_eq!(git(&origin, &["show", "main:greet.sh"]), "echo \"Hello, ${1:-world}!\"");
    for part in [
        "FAILED: it says",
        "would be placed on factory-1",
        "verify: sh test.sh",
        "+echo \"Hello",
        "ok: it says",
    ] {
        assert!(output.contains(part), "{part:?} is not in:\n{output}");
    }
    assert_eq!(still_running(&home), Vec::<String>::new());
}

#[test]
fn a_fleet_survives_the_death_of_a_factory() {
    let home = Home::new();
    let ran = run(&mut demo(&home, &["--fleet", "--yes"]));
    let output = ran.err.clone();
    let out = ran.ok();
    let mut merged: Vec<_> = out.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    merged.sort();
    assert_eq!(merged, ["fix-billing", "fix-parser", "fix-website"]);
    for part in ["was killed (kill -9)", "lease expired", "Correct the greeting"] {
        assert!(output.contains(part), "{part:?} is not in:\n{output}");
    }
    assert_eq!(left_behind(&home), Vec::<String>::new());
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let home = Home::new();
    let mut process = demo(&home, &["--fleet"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(process.stderr.take().unwrap()).lines();
    assert!(output.any(|line| line.unwrap().contains("started")), "a job is started");
    let sent = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
    // Read on, so that it is not stopped by a full pipe.
    let rest: Vec<String> = output.map(Result::unwrap).collect();
    assert_eq!(process.wait().unwrap().code(), Some(130), "{rest:#?}");
    assert_eq!(left_behind(&home), Vec::<String>::new());
    assert_eq!(still_running(&home), Vec::<String>::new());
}
