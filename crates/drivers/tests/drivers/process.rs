//! `process` with a program in the place of `giga`: what survives, what is killed, what is kept.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FactoryId, PoolSettings};
use giga_drivers::{ProcessDriver, ProcessOptions, Setting};
use giga_ports::{PoolDriver, StartOrder, StopOrder};
use giga_testkit::driver_suite::{CREDENTIAL, DriverFixture};
use tempfile::TempDir;

/// Says what it was given, then works until it is told to stop. It is no shell that execs: drivers know it by its words.
const GIGA: &str = r#"#!/bin/sh
trap 'kill $!; exit 0' TERM
printf '%s\n' "$@"
env | grep GIGA_ || true
echo "ready"
sleep 600 &
wait
"#;

/// The same, but it does not listen and has somebody in a group of its own.
const STUBBORN: &str = r#"#!/bin/sh
trap '' TERM
set -m
sleep 600 &
echo "$!" > "$0.child"
while :; do wait; done
"#;

struct World {
    folder: TempDir,
    host: &'static str,
    grace: Duration,
}

impl World {
    fn new() -> Self {
        Self::running(GIGA)
    }

    fn running(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("giga");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, host: "here", grace: Duration::from_secs(20) }
    }

    fn options(&self) -> ProcessOptions {
        ProcessOptions {
            program: self.folder.path().join("giga"),
            folder: self.pools(),
            host: self.host.to_owned(),
            settings: vec![
                Setting { flag: "--repos", value: Some("/repos".into()) },
                Setting { flag: "--seats", value: Some("7".into()) },
                Setting { flag: "--log", value: Some("warn".into()) },
                Setting { flag: "--no-commands", value: None },
            ],
            grace: self.grace,
        }
    }

    fn pools(&self) -> PathBuf {
        self.folder.path().join("pools")
    }

    fn member(&self, factory: &str) -> PathBuf {
        self.pools().join(factory)
    }

    fn start(&self, factory: &str) -> StartOrder {
        StartOrder {
            pool: "gpu".parse().unwrap(),
            settings: self.settings(),
            factory: factory.parse().unwrap(),
            url: "http://127.0.0.1:7717".to_owned(),
            credential: CREDENTIAL.to_owned(),
        }
    }

    fn stop(&self, factory: &str, handle: Option<String>) -> StopOrder {
        let (pool, factory) = ("gpu".parse().unwrap(), factory.parse().unwrap());
        StopOrder { pool, settings: self.settings(), factory, handle }
    }

    /// As soon as its output has this line.
    async fn until_said(&self, factory: &str, line: &str) -> String {
        let log = self.member(factory).join("log");
        until(|| std::fs::read_to_string(&log).ok().filter(|text| text.lines().any(|said| said == line)))
            .await
    }
}

/// Nobody tells of what is looked for here.
async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), found).await.expect("it comes in time")
}

/// Processes that have this text among their words.
fn with_word(word: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |id: &i32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        // What it runs has its words, too, until it becomes another program.
        group_of(*id) == Some(*id)
            && words.split(|byte| *byte == 0).any(|known| known == word.as_os_str().as_encoded_bytes())
    };
    ids.filter(has).collect()
}

fn group_of(id: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

fn is_running(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn signal(id: i32, name: &str) {
    let sent = std::process::Command::new("kill").args(["-s", name, &id.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[async_trait]
impl DriverFixture for World {
    fn open(&self) -> Arc<dyn PoolDriver> {
        Arc::new(ProcessDriver::new(self.options()))
    }

    fn settings(&self) -> PoolSettings {
        PoolSettings {
            args: vec!["--log=info".into(), "--git-allow".into(), "https://x".into()],
            ..PoolSettings::default()
        }
    }

    async fn count(&self, factory: &FactoryId) -> usize {
        with_word(&self.member(factory.as_str()).join("base")).len()
    }

    async fn end(&self, factory: &FactoryId) {
        self.until_said(factory.as_str(), "ready").await;
        for id in with_word(&self.member(factory.as_str()).join("base")) {
            signal(id, "TERM");
            until(|| (!is_running(id)).then_some(())).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for folder in std::fs::read_dir(self.pools()).into_iter().flatten().flatten() {
            for id in with_word(&folder.path().join("base")) {
                signal(id, "KILL");
            }
        }
    }
}

giga_testkit::driver_conformance!(World::new());

#[tokio::test]
async fn a_member_gets_its_order_and_no_secret_of_the_coordinators() {
    let world = World::new();
    let driver = world.open();
    let handle = driver.start(&world.start("gpu-1")).await.unwrap();
    let said = world.until_said("gpu-1", "ready").await;
    let base = world.member("gpu-1").join("base").display().to_string();
    let credential = world.member("gpu-1").join("credential");
    let words = format!(
        "factory\nrun\n--repos\n/repos\n--no-commands\n--base\n{base}\n--token-file\n{}\n--pool\ngpu\n--id\ngpu-1\n--url\n\
         http://127.0.0.1:7717\n--seats\n1\n--log=info\n--git-allow\nhttps://x\nready\n",
        credential.display()
    );
    assert_eq!(said, words, "what the pool says itself is not handed on, and nothing of the environment is");
    assert_eq!(std::fs::read_to_string(&credential).unwrap().trim(), CREDENTIAL);
    assert_eq!(std::fs::metadata(&credential).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(world.member("gpu-1")).unwrap().permissions().mode() & 0o777, 0o700);

    let [id] = with_word(&world.member("gpu-1").join("base"))[..] else { panic!("one process") };
    assert_eq!(group_of(id), Some(id), "a Ctrl-C at the coordinator's terminal does not reach it");
    driver.stop(&world.stop("gpu-1", Some(handle))).await.unwrap();
    assert!(!world.member("gpu-1").exists());
}

#[tokio::test]
async fn a_number_that_belongs_to_another_process_by_now_is_left_alone() {
    let world = World::new();
    let driver = world.open();
    let handle = driver.start(&world.start("gpu-1")).await.unwrap();
    world.until_said("gpu-1", "ready").await;
    let mut bystander = tokio::process::Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap();
    let id = bystander.id().unwrap();
    let began: Vec<String> = std::fs::read_to_string(format!("/proc/{id}/stat"))
        .unwrap()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    // Even with the right moment: it does not work in the member's folder.
    for other in [format!("here:{id}:1"), format!("here:{id}:{}", began[21])] {
        let order = world.stop("gpu-2", Some(other));
        assert_eq!(driver.is_alive(&order).await.unwrap(), Some(false));
        driver.stop(&order).await.unwrap();
    }
    assert!(bystander.try_wait().unwrap().is_none(), "it runs on");
    driver.stop(&world.stop("gpu-1", Some(handle))).await.unwrap();
}

#[tokio::test]
async fn a_process_of_another_host_cannot_be_reached() {
    let mut world = World::new();
    let driver = world.open();
    let handle = driver.start(&world.start("gpu-1")).await.unwrap();
    world.host = "elsewhere";
    let there = world.open();
    let order = world.stop("gpu-1", Some(handle));
    assert_eq!(there.is_alive(&order).await.unwrap(), None);
    there.stop(&order).await.unwrap();
    assert_eq!(world.count(&order.factory).await, 1);
    driver.stop(&order).await.unwrap();
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed_with_all_that_it_runs() {
    let mut world = World::running(STUBBORN);
    world.grace = Duration::from_millis(200);
    let driver = world.open();
    let handle = driver.start(&world.start("gpu-1")).await.unwrap();
    let child = world.folder.path().join("giga.child");
    let child: i32 = until(|| std::fs::read_to_string(&child).ok()?.trim().parse().ok()).await;
    assert!(is_running(child));
    driver.stop(&world.stop("gpu-1", Some(handle))).await.unwrap();
    assert_eq!(world.count(&"gpu-1".parse().unwrap()).await, 0);
    assert!(!is_running(child), "in a group of its own, and killed all the same");
}

#[tokio::test]
async fn work_that_is_nowhere_else_is_kept() {
    let world = World::new();
    let driver = world.open();
    let gone = async |factory: &str, fill: &dyn Fn(&Path)| {
        let handle = driver.start(&world.start(factory)).await.unwrap();
        world.until_said(factory, "ready").await;
        fill(&world.member(factory).join("base"));
        driver.stop(&world.stop(factory, Some(handle))).await.unwrap();
        !world.member(factory).exists()
    };
    let mirror = |base: &Path| std::fs::create_dir_all(base.join("mirrors/app.git")).unwrap();
    let left = |base: &Path, text: &str| std::fs::write(base.join("left.json"), text).unwrap();
    assert!(gone("never-worked", &|_| {}).await);
    assert!(!gone("killed-at-work", &mirror).await, "nobody knows what is in there");
    let clean = |base: &Path| {
        mirror(base);
        left(base, r#"{"kept":[]}"#);
    };
    assert!(gone("left", &clean).await);
    let quarantined = |base: &Path| {
        mirror(base);
        left(base, r#"{"kept":["giga/quarantine/1/2 of app"]}"#);
    };
    assert!(!gone("left-something", &quarantined).await);
    let kept = world.member("left-something");
    assert!(kept.join("base/mirrors/app.git").exists());
    assert!(!kept.join("credential").exists(), "which is worth nothing any more");
}

#[tokio::test]
async fn the_output_of_a_start_that_came_to_nothing_is_kept() {
    let world = World::running("#!/bin/sh\necho no such engine >&2\nexit 2\n");
    let driver = world.open();
    // It may be gone before it is looked at, or right after.
    let handle = driver.start(&world.start("gpu-1")).await.ok();
    let order = world.stop("gpu-1", handle);
    until(|| (world.member("gpu-1").join("log").metadata().ok()?.len() > 0).then_some(())).await;
    driver.stop(&order).await.unwrap();
    assert_eq!(driver.is_alive(&order).await.unwrap(), Some(false));
    assert!(!world.member("gpu-1").exists());
    assert_eq!(std::fs::read_to_string(world.pools().join("gpu.failed.log")).unwrap(), "no such engine\n");
}

#[tokio::test]
async fn what_is_wrong_is_said_to_the_operator() {
    let world = World::new();
    let start = async |options: ProcessOptions| {
        ProcessDriver::new(options).start(&world.start("gpu-1")).await.unwrap_err()
    };
    let missing = start(ProcessOptions { program: "/no/giga".into(), ..world.options() }).await;
    assert_eq!(
        (missing.to_string().as_str(), missing.transient),
        ("the program `/no/giga` is not there", false)
    );
    let script = world.folder.path().join("plain");
    std::fs::write(&script, "").unwrap();
    let denied = start(ProcessOptions { program: script, ..world.options() }).await;
    assert!(denied.to_string().contains("may not be run") && !denied.transient, "{denied}");
    let file = world.folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let no_folder = start(ProcessOptions { folder: file, ..world.options() }).await;
    assert!(no_folder.to_string().starts_with("cannot use the folder "), "{no_folder}");
}
