//! Secrets of jobs, end to end: the job has them, and nothing that leaves the machine does.

use std::path::Path;
use std::time::Duration;

use giga_api::wire::{FailReason, Job, Stage};
use giga_domain::secret::Leaks;
use giga_domain::{Actor, Epoch, JobId};
use giga_factory::sandbox::SandboxMode;

use super::world::{Factory, World};

const VALUE: &str = "correct-horse-battery-staple";
const HEX: &str = "636f72726563742d686f7273652d626174746572792d737461706c65";
const BASE64: &str = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ";
const FILE: &str = "//registry.example/:_authToken=abcdefghijklmnop\nalways-auth=true\n";

async fn set(world: &World, product: &str, name: &str, value: &str) {
    let (product, name) = (product.parse().unwrap(), name.parse().unwrap());
    let value = value.as_bytes().to_vec().into();
    world.coordinator.set_secret(product, name, value, Actor::system("test")).await.unwrap();
}

async fn world_with_secrets() -> World {
    let world = World::start().await;
    set(&world, "demo", "API_KEY", VALUE).await;
    set(&world, "demo", "NPMRC", FILE).await;
    world
}

/// Everything below a folder that is a file, as bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

async fn failed(world: &World, id: &str) -> Job {
    world.until(id, |job| matches!(job.stage, Stage::Failed | Stage::DeadLetter)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_its_secrets_and_its_log_does_not() {
    let world = world_with_secrets().await;
    world.origin("hello");
    let factory = world.factory("a");
    let more = "repo: hello\nship: manual\nsecrets: [API_KEY, {name: NPMRC, file: conf/.npmrc}, {name: API_KEY, env: other_key}]\n\
                verify: ['echo \"verify has ${#API_KEY} $API_KEY\"; test -s $HOME/conf/.npmrc']";
    let script = "echo \"plain $API_KEY\"; test \"$API_KEY\" = \"$other_key\" && echo same\n\
                  echo \"stderr $API_KEY\" >&2\n\
                  printf %s \"$API_KEY\" | base64\n\
                  printf 'user:%s' \"$API_KEY\" | base64 -w0; echo\n\
                  printf %s \"$API_KEY\" | od -An -tx1 | tr -d ' \\n'; echo\n\
                  stat -c 'mode %a' \"$HOME/conf/.npmrc\"; stat -c 'folder %a' \"$HOME/conf\"\n\
                  cat \"$HOME/conf/.npmrc\"; echo \"token $GIGA_TOKEN\"\n\
                  cp \"$HOME/conf/.npmrc\" \"$HOME/copy\"; echo changed > greeting.txt";
    let job = world.submit("secretive", more, script).await;
    world.until_stage(&job, Stage::Testing).await;
    let log = world.log(&job, None).await;
    for line in [
        "secrets: API_KEY, NPMRC, API_KEY",
        "plain [redacted API_KEY]",
        "same",
        "stderr [redacted API_KEY]",
        "mode 600",
        "folder 700",
        "[redacted NPMRC]",
        "verify has 28 [redacted API_KEY]",
        "token [redacted]",
    ] {
        assert!(log.contains(line), "{line:?} is not in:\n{log}");
    }
    for leak in [VALUE, BASE64, &BASE64[2..30], "b3JyZWN0LWhvcnNl", HEX, "abcdefghijklmnop", "gigaj_"] {
        assert!(!log.contains(leak), "{leak} is in:\n{log}");
    }
    let run = world.runs(&job).await.pop().unwrap();
    let report = serde_json::to_string(&run).unwrap();
    assert!(!report.contains(VALUE) && report.contains("[redacted API_KEY]"), "{report}");

    // Neither the database nor anything else that is kept has it: not the coordinator's files, not the factory's.
    factory.drain().await;
    for (path, bytes) in files(world.path()) {
        assert!(!holds(&bytes, VALUE) && !holds(&bytes, "abcdefghijklmnop"), "{path}");
    }
    let database = std::fs::read_dir(world.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert!(
        database.into_iter().any(|name| name.to_string_lossy().contains("giga.db")),
        "it was looked into"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_told_without_the_secret() {
    let world = world_with_secrets().await;
    let _factory = world.factory("a");
    let script = "echo \"fatal: $API_KEY was refused\" >&2; exit 3";
    let job = world.submit("loud", "retry: {max: 0}\nsecrets: [API_KEY]", script).await;
    let job = failed(&world, &job).await;
    let shown = serde_json::to_string(&job).unwrap();
    assert!(shown.contains("[redacted API_KEY] was refused") && !shown.contains(VALUE), "{shown}");
}

/// Whatever would carry it out: a file, a name of a file, a message, or a commit that a later one takes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_with_a_secret_in_it_is_not_pushed() {
    let commit =
        "git config user.email a@example.invalid; git config user.name A; git add -A; git commit -qm";
    for (case, script) in [
        ("file", "echo \"key = $API_KEY\" > settings".to_owned()),
        ("encoded", "printf 'x%s' \"$API_KEY\" | base64 -w0 > settings".to_owned()),
        ("name", "echo x > \"$API_KEY.txt\"".to_owned()),
        ("message", format!("echo x > y; {commit} \"uses $API_KEY\"")),
        ("taken-back", format!("echo $API_KEY > y; {commit} one; git rm -q y; echo z > z; {commit} two")),
    ] {
        let world = world_with_secrets().await;
        let origin = world.origin("hello");
        let _factory = world.factory("a");
        let job = world.submit(case, "repo: hello\nship: auto\nsecrets: [API_KEY]", &script).await;
        let job = failed(&world, &job).await;
        let failure = job.failure.as_ref().unwrap();
        assert_eq!(failure.reason, FailReason::Secret, "{case}: {failure:?}");
        let detail = failure.detail.as_deref().unwrap_or_default();
        assert!(detail.contains("it contains the secret API_KEY"), "{case}: {detail}");
        assert_eq!(job.attempts, 1, "{case}: it is not tried again");
        assert_eq!(origin.branches(), ["main"], "{case}");
        let log = world.log(&job.id, None).await;
        assert!(
            log.contains("the checkpoint stays on this machine: it contains the secret API_KEY"),
            "{case}: {log}"
        );
        let artifacts = world.client.artifacts(&job.id).await.unwrap();
        assert!(artifacts.artifacts.is_empty(), "{case}: no diff is kept either");
    }
}

/// A result that only stands beside a secret goes out as ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_without_one_is_shipped() {
    let world = world_with_secrets().await;
    let origin = world.origin("hello");
    let _factory = world.factory("a");
    let script = "printf %s \"$API_KEY\" | sha256sum > digest";
    let job = world.submit("honest", "repo: hello\nship: auto\nsecrets: [API_KEY]", script).await;
    world.until_merged(&job).await;
    assert!(origin.git(&["show", "main:digest"]).contains("  -"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_gone_fails_the_job_before_its_engine() {
    let world = world_with_secrets().await;
    let job = world.submit("late", "secrets: [API_KEY]", "echo ran").await;
    let (product, name) = ("demo".parse().unwrap(), "API_KEY".parse().unwrap());
    assert!(world.coordinator.remove_secret(product, name, Actor::system("test")).await.unwrap());
    let _factory = world.factory("a");
    let job = failed(&world, &job).await;
    let failure = job.failure.as_ref().unwrap();
    assert_eq!((failure.reason, job.attempts), (FailReason::Secret, 1));
    let detail = failure.detail.as_deref().unwrap_or_default();
    assert!(
        detail.contains("no secret API_KEY in product demo") && detail.contains("giga secret set"),
        "{detail}"
    );
    assert!(!world.log(&job.id, None).await.contains("ran"));
}

/// A file goes into a home of the job's own. Where there is none, the operator's is not used instead.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_there_is_no_home_for_a_file() {
    let world = world_with_secrets().await;
    let mut config = world.config("a");
    config.sandbox.mode = SandboxMode::Off;
    config.sandbox.write = Vec::new();
    let _factory = Factory::start(config);
    let env = world.submit("env", "ship: auto\nsecrets: [API_KEY]", "echo \"has ${#API_KEY}\"").await;
    world.until_stage(&env, Stage::Shipped).await;
    assert!(world.log(&env, None).await.contains("has 28"));
    let file = world.submit("file", "secrets: [{name: NPMRC, file: .npmrc}]", "echo ran").await;
    let job = failed(&world, &file).await;
    let failure = job.failure.as_ref().unwrap();
    assert_eq!(failure.reason, FailReason::CapabilityMismatch, "{failure:?}");
}

/// Whoever finds the folder after a crash does not know the values, so nothing of it is pushed.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_work_stays_on_the_machine() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let workspace = world.workspace("a");
    let (job, epoch) = (JobId::from_u128(7), Epoch(1));
    let repos = [("hello".to_owned(), workspace.resolve("hello").await.unwrap())];
    for has_secrets in [true, false] {
        let epoch = if has_secrets { epoch } else { epoch.next() };
        let folder = workspace.open_folder(job, epoch, &repos, None, None).await.unwrap();
        if has_secrets {
            folder.keep_back(&Leaks::kept_back([("API_KEY", VALUE.as_bytes())])).unwrap();
        }
        std::fs::write(folder.path().join("notes"), format!("{has_secrets}")).unwrap();
        drop(folder);
        let leftovers = workspace.find_leftovers().await;
        let found = leftovers.iter().find(|left| left.epoch == epoch).unwrap();
        let folder = workspace.adopt(found).unwrap();
        let saved = folder.checkpoint("after a crash", true).await.unwrap().unwrap();
        assert_eq!(saved.not_pushed.is_some(), has_secrets, "{saved:?}");
        assert_eq!(origin.branches().len(), if has_secrets { 1 } else { 2 }, "{saved:?}");
        folder.remove().await.unwrap();
    }
}

/// A lease that is lost while the holder asks: another one has the job, and its secrets.
#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_gets_none() {
    let world = world_with_secrets().await;
    let gate = world.gate("gate");
    let _factory = world.factory("a");
    let script = format!("echo waiting; read line < {}", gate.display());
    let job = world.submit("held", "ship: auto\nsecrets: [API_KEY]", &script).await;
    world.until_logged(&job, "waiting").await;
    let held = world.store.read().job(job.parse().unwrap()).await.unwrap().unwrap();
    let holder =
        |factory: &str, epoch: Epoch| giga_domain::Holder { factory: factory.parse().unwrap(), epoch };
    let ask = |holder| {
        let world = &world;
        async move { world.coordinator.secrets_for_holder(held.id, &holder).await }
    };
    assert_eq!(ask(holder("a", held.epoch)).await.unwrap().len(), 1);
    assert!(ask(holder("b", held.epoch)).await.is_err());
    assert!(ask(holder("a", Epoch(held.epoch.0 - 1))).await.is_err());
    assert!(ask(holder("a", held.epoch.next())).await.is_err());
    tokio::time::timeout(Duration::from_secs(10), tokio::fs::write(gate, "go\n")).await.unwrap().unwrap();
    world.until_stage(&job, Stage::Shipped).await;
    assert!(ask(holder("a", held.epoch)).await.is_err(), "it is over");
}

/// Each process of a run has a home of its own, and what it left in it does not lie about while the next one runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_home_goes_with_its_process() {
    let world = world_with_secrets().await;
    world.origin("hello");
    let gate = world.gate("gate");
    let _factory = world.factory("a");
    let more = format!(
        "repo: hello\nship: manual\nsecrets: [{{name: NPMRC, file: .npmrc}}]\nverify: ['echo verifying; read line < {}']",
        gate.display()
    );
    let script = "cp \"$HOME/.npmrc\" \"$HOME/copy\"; mkdir -p $HOME/deep; cp $HOME/.npmrc $HOME/deep/; chmod 0 $HOME/deep\n\
                  echo x > y";
    let job = world.submit("tidy", &more, script).await;
    world.until_logged(&job, "verifying").await;
    let homes: Vec<_> = files(&world.base("a").join("work"))
        .into_iter()
        .filter(|(_, bytes)| holds(bytes, "abcdefghijklmnop"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(homes.len(), 1, "that of the verify command: {homes:?}");
    assert!(homes[0].ends_with("/.npmrc"), "{homes:?}");
    tokio::time::timeout(Duration::from_secs(10), tokio::fs::write(gate, "go\n")).await.unwrap().unwrap();
    world.until_stage(&job, Stage::Testing).await;
}
