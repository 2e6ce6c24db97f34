//! A machine that is not as it should be: its clock goes back, its disk is full, its umask hides nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::{Repo, shell_job, submit};
use crate::world::{Holder, Home, Server, giga, manifest, run};

const PATIENCE: Duration = Duration::from_mins(1);

/// A coordinator whose clock is as far from the machine's as the file says.
fn serve_by(home: &Home, clock: &Path) -> Server {
    let libraries = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let mut libraries = libraries.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    let library =
        libraries.find(|library| library.exists()).expect("libfaketime: `cargo xtask setup` installs it");
    let mut command = giga(home.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", clock).env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Server::spawn(command, home.path())
}

fn events(home: &Home) -> Vec<Value> {
    let lines = home.giga(&["events", "--after", "0", "-o", "jsonl"]).ok();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn times(home: &Home) -> Vec<String> {
    events(home).iter().map(|event| event["at"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_goes_back_keeps_no_job_with_a_dead_holder() {
    let home = Home::new();
    let clock = home.write("clock", "+0\n");
    let server = serve_by(&home, &clock);
    home.giga(&["flags", "set", "lease_ms", "3000"]).ok();
    let holder = Holder::enroll(&home, &server, "f-1", &["os:linux"]).await;
    let id = submit(&home, &manifest("held", ""));
    holder.take("r-1").await;
    // The holder is dead from here on, and the clock goes back.
    home.write("clock", "-1h\n");
    let answer = reqwest::get(format!("{}/livez", server.url)).await.unwrap();
    let date = answer.headers()["date"].to_str().unwrap().to_owned();
    let now = run(Command::new("date").args(["-u", "-d", "1 hour ago", "+%a, %d %b %Y %H:"])).ok();
    assert!(date.starts_with(&now.trim()[..16]), "the process has the other clock: {date}, {now}");
    let began = Instant::now();
    let is_over = |event: &Value| event["jobId"] == id.as_str() && event["type"] == "job.lease_expired";
    while !events(&home).iter().any(is_over) {
        assert!(began.elapsed() < PATIENCE, "the dead holder still has it");
    }
    let times_before = times(&home);
    assert!(times_before.is_sorted(), "{times_before:?}");

    // Neither does it go back when the coordinator is started again by the clock that is behind.
    server.kill9();
    let _server = serve_by(&home, &clock);
    home.giga(&["job", "cancel", &id]).ok();
    let times = times(&home);
    assert!(times.len() > times_before.len() && times.is_sorted(), "{times:?}");
    let said = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    assert!(said.contains("behind the newest event in the store"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_a_year_ahead_can_be_set_right() {
    let home = Home::new();
    let clock = home.write("clock", "+365d\n");
    serve_by(&home, &clock).kill9();
    home.write("clock", "+0\n");
    let _server = serve_by(&home, &clock);
    let said = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    assert!(said.contains("that event's time is taken for wrong"), "{said}");
    let id = submit(&home, &manifest("now", ""));
    let submitted = events(&home).into_iter().rfind(|event| event["jobId"] == id.as_str()).unwrap();
    let year = run(Command::new("date").args(["-u", "+%Y"])).ok();
    assert!(submitted["at"].as_str().unwrap().starts_with(year.trim()), "{submitted}");
}

/// Starts a coordinator on a small disk, fills it, and kills it; then starts it again, without room and with it.
const ON_A_FULL_DISK: &str = r#"
set -eu
mount -t tmpfs -o size=24m,mode=700 tmpfs "$DATA"
mkfifo "$HOME/ready"
serve() { exec "$GIGA" serve --data "$DATA" --listen 127.0.0.1:0; }
serve > "$HOME/ready" 2>> "$HOME/served.log" & pid=$!
read -r line < "$HOME/ready"
dd if=/dev/zero of="$DATA/filler" bs=4k 2>/dev/null || true
kill -9 $pid; wait $pid || true
code=0
timeout 60 "$GIGA" serve --data "$DATA" --listen 127.0.0.1:0 2> "$HOME/refused.log" || code=$?
echo "$code"
rm "$DATA/filler"
serve > "$HOME/ready" 2>> "$HOME/served.log" & pid=$!
read -r line < "$HOME/ready"
kill -TERM $pid; wait $pid
echo "$line"
"#;

#[test]
fn a_full_disk_is_named_by_a_coordinator_that_cannot_start_on_it() {
    let home = Home::new();
    let data = home.path().join("small");
    std::fs::create_dir(&data).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", ON_A_FULL_DISK]).env_clear().current_dir(home.path());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home.path());
    command.env("DATA", &data).env("GIGA", env!("CARGO_BIN_EXE_giga"));
    let said = run(&mut command).ok();
    let refused = std::fs::read_to_string(home.path().join("refused.log")).unwrap();
    let (code, ready) = said.trim().split_once('\n').unwrap();
    assert_eq!(code, "1", "{refused}");
    assert!(
        refused.contains(&format!("the data folder {} is full: 0 KiB are free", data.display())),
        "{refused}"
    );
    assert!(refused.contains("make room there and start it again"), "{refused}");
    assert!(ready.starts_with("ready http://"), "{ready}");
}

/// Everything in a folder, with its mode.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = std::fs::symlink_metadata(&path).unwrap();
            if about.is_dir() {
                folders.push(path.clone());
            }
            if !about.is_symlink() {
                found.push((path, about.permissions().mode() & 0o777));
            }
        }
    }
    found
}

#[test]
fn what_is_written_is_its_owners_whatever_the_umask() {
    let home = Home::new();
    Repo::hello(&home);
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_giga")]);
    command.args(["up", "--listen", "127.0.0.1:0", "--repos"]).arg(home.path().join("repos"));
    command.env_clear().env("HOME", home.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(home.path());
    let server = Server::spawn(command, home.path());
    let script = "touch made\nmkdir folder\nstat -c %a greeting.txt made folder";
    let id = submit(&home, &shell_job("modes", script, "true"));
    home.giga(&["job", "wait", &id]).ok();
    let log = home.giga(&["job", "logs", &id]).ok();
    assert!(log.contains("644\n644\n755\n"), "as builds are used to: {log}");

    let (data, factories) = (home.data(), home.data().join("factory"));
    let mut private = 0;
    for (path, mode) in modes(&data) {
        let is_inside_a_factory =
            path.strip_prefix(&factories).is_ok_and(|path| path.components().count() > 1);
        if is_inside_a_factory {
            assert_eq!(mode & 0o022, 0, "{mode:o} {}", path.display());
        } else {
            assert_eq!(mode & 0o077, 0, "{mode:o} {}", path.display());
            private += 1;
        }
    }
    assert!(private > 10, "{:?}", modes(&data));
    for folder in std::fs::read_dir(&factories).unwrap() {
        for inside in ["mirrors", "work"] {
            let folder = folder.as_ref().unwrap().path().join(inside);
            let mode = std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", folder.display());
        }
    }
    drop(server);
}
