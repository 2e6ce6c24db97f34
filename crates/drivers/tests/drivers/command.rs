//! `command` with a shell script for an operator's program: its words, its environment, its failures, its end.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{DriverKind, FactoryId, PoolSettings};
use giga_drivers::{CommandDriver, CommandOptions};
use giga_ports::{DriverError, PoolDriver, StartOrder, StopOrder};
use giga_testkit::driver_suite::{CREDENTIAL, DriverFixture};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A cloud of folders.
const CLOUD: &str = r#"#!/bin/sh
set -eu
machines=$1/machines
mkdir -p "$machines"
case $2 in
start) mkdir "$machines/$GIGA_FACTORY" 2>/dev/null || true; echo "vm/$GIGA_FACTORY" ;;
stop) rm -rf "$machines/$GIGA_FACTORY" ;;
alive) if [ -d "$machines/$GIGA_FACTORY" ]; then echo yes; else echo no; fi ;;
esac
"#;

struct World {
    folder: TempDir,
    limit: Duration,
}

impl World {
    fn new() -> Self {
        Self::running(CLOUD)
    }

    fn running(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("cloud");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, limit: Duration::from_mins(1) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn order(&self) -> StartOrder {
        StartOrder {
            pool: "gpu".parse().unwrap(),
            settings: self.settings(),
            factory: "gpu-1".parse().unwrap(),
            url: "https://giga.example".to_owned(),
            credential: CREDENTIAL.to_owned(),
        }
    }

    fn stop(&self, handle: Option<&str>) -> StopOrder {
        let StartOrder { pool, settings, factory, .. } = self.order();
        StopOrder { pool, settings, factory, handle: handle.map(str::to_owned) }
    }

    async fn start(&self) -> Result<String, DriverError> {
        self.open().start(&self.order()).await
    }
}

#[async_trait]
impl DriverFixture for World {
    fn open(&self) -> Arc<dyn PoolDriver> {
        Arc::new(CommandDriver::new(CommandOptions { limit: self.limit }))
    }

    fn settings(&self) -> PoolSettings {
        let words = [self.path("cloud"), self.folder.path().to_owned()];
        PoolSettings {
            driver: DriverKind::Command,
            command: words.iter().map(|word| word.display().to_string()).collect(),
            args: vec!["--git-allow".into(), "it's $(here)".into()],
            ..PoolSettings::default()
        }
    }

    async fn count(&self, factory: &FactoryId) -> usize {
        usize::from(self.path("machines").join(factory.as_str()).exists())
    }

    async fn end(&self, factory: &FactoryId) {
        std::fs::remove_dir(self.path("machines").join(factory.as_str())).unwrap();
    }
}

giga_testkit::driver_conformance!(World::new());

#[tokio::test]
async fn the_program_gets_the_order_and_nothing_of_the_coordinators() {
    let script = "#!/bin/sh\nenv | grep ^GIGA_ | sort > \"$1/env.$2\"\ncat > \"$1/in.$2\"\necho \"vm 1\"\necho second\n";
    let world = World::running(script);
    assert_eq!(world.start().await.unwrap(), "vm 1", "the first line");
    let arguments = ["--pool", "gpu", "--id", "gpu-1", "--url", "https://giga.example", "--seats", "1"];
    let arguments: Vec<&str> = arguments.into_iter().chain(["--git-allow", "it's $(here)"]).collect();
    let read = |name: &str| std::fs::read_to_string(world.path(name)).unwrap();
    assert_eq!(
        read("env.start"),
        format!(
            "GIGA_FACTORY=gpu-1\nGIGA_FACTORY_ARGS=--pool gpu --id gpu-1 --url https://giga.example --seats 1 --git-allow \
             'it'\\''s $(here)'\nGIGA_POOL=gpu\nGIGA_POOL_TOKEN={CREDENTIAL}\nGIGA_URL=https://giga.example\n"
        )
    );
    let document: Value = serde_json::from_str(&read("in.start")).unwrap();
    let expected = json!({
        "call": "start", "pool": "gpu", "factory": "gpu-1", "url": "https://giga.example", "token": CREDENTIAL,
        "arguments": arguments,
    });
    assert_eq!(document, expected);

    world.open().stop(&world.stop(Some("vm 1"))).await.unwrap();
    assert_eq!(read("env.stop"), "GIGA_FACTORY=gpu-1\nGIGA_HANDLE=vm 1\nGIGA_POOL=gpu\n");
    let document: Value = serde_json::from_str(&read("in.stop")).unwrap();
    assert_eq!(document, json!({"call": "stop", "pool": "gpu", "factory": "gpu-1", "handle": "vm 1"}));
}

#[tokio::test]
async fn failures_are_told_in_the_programs_own_words() {
    let said = async |script: &str| {
        let world = World::running(&format!("#!/bin/sh\n{script}\n"));
        let error = world.start().await.unwrap_err();
        let name = world.path("cloud").display().to_string();
        (error.to_string().replace(&name, "cloud"), error.transient)
    };
    let quota = said("echo trying >&2; echo 'no quota for A100 in west' >&2; echo >&2; exit 1").await;
    assert_eq!(quota, ("`cloud start` failed with code 1: no quota for A100 in west".to_owned(), false));
    assert_eq!(said("exit 75").await, ("`cloud start` failed with code 75".to_owned(), true));
    assert_eq!(said("kill -9 $$").await, ("`cloud start` was killed".to_owned(), false));
    let leaky = said("echo \"bad token $GIGA_POOL_TOKEN\" >&2; exit 1").await;
    assert_eq!(leaky.0, "`cloud start` failed with code 1: bad token ***");
    let silent = said("true").await;
    assert_eq!(silent.0, "`cloud start` printed nothing; its first line is what the factory is known by");
    let endless = said("head -c 5000 /dev/zero | tr '\\0' x").await;
    assert_eq!(endless.0, "`cloud start` printed a first line of more than 1000 bytes");

    let mut missing = World::new().order();
    missing.settings.command = vec!["/no/cloud".to_owned()];
    let error = World::new().open().start(&missing).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.transient),
        ("the program `/no/cloud` is not there", false)
    );
}

#[tokio::test]
async fn whether_it_lives_may_be_unknown() {
    let alive = async |says: &str| {
        let world = World::running(&format!("#!/bin/sh\n{says}\n"));
        world.open().is_alive(&world.stop(None)).await
    };
    assert_eq!(alive("echo yes").await.unwrap(), Some(true));
    assert_eq!(alive("echo no").await.unwrap(), Some(false));
    assert_eq!(alive("echo unknown").await.unwrap(), None);
    assert_eq!(alive("true").await.unwrap(), None);
    let odd = alive("echo maybe").await.unwrap_err().to_string();
    assert!(odd.ends_with("alive` printed `maybe`; it may print yes, no or unknown"), "{odd}");
}

#[tokio::test]
async fn one_that_comes_to_no_end_is_killed_with_all_that_it_started() {
    let mut world = World::running("#!/bin/sh\nsleep 600 &\necho $! > \"$1/child\"\nwait\n");
    world.limit = Duration::from_millis(500);
    let error = world.start().await.unwrap_err();
    assert!(error.transient && error.to_string().contains("came to no end and was killed"), "{error}");
    let child = std::fs::read_to_string(world.path("child")).unwrap();
    let gone = async {
        let stat = format!("/proc/{}/stat", child.trim());
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("the child is killed, too");
}
