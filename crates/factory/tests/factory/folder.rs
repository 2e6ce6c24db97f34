//! Folder mode against a real coordinator: files go where their jobs go, once, whatever happens in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_api::client::{Client, ClientOptions, JobQuery};
use giga_blobs::{FolderLogs, ObjectArtifacts};
use giga_broker::Embedded;
use giga_coordinator::{Coordinator, Options, Ports};
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::{Actor, FactoryId, Holder, HolderAction, Job, JobId, OperatorAction, RunReport};
use giga_factory::folder::{self, FolderConfig, FolderEvent, Place};
use giga_ports::NoSecretKeys;
use giga_server::ServerOptions;
use giga_store::{BatchStore, MemoryBackend, MemoryTopics, Tuning};
use giga_testkit::effects::Recorded;
use giga_testkit::{ManualClock, SeededRandomness};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    temp: TempDir,
    coordinator: Arc<Coordinator>,
    client: Client,
    shutdown: CancellationToken,
}

impl World {
    async fn start() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let backend = MemoryBackend::new(clock.clone());
        let ports = Ports {
            store: Arc::new(BatchStore::start(backend, Tuning::default()).await.unwrap()),
            topics: Arc::new(MemoryTopics::new(clock.clone())),
            broker: Arc::new(Embedded::new()),
            clock,
            random: Arc::new(SeededRandomness::new(5)),
            logs: Arc::new(FolderLogs::new(temp.path().join("logs"))),
            artifacts: Arc::new(ObjectArtifacts::folder(&temp.path().join("artifacts")).unwrap()),
            effects: Arc::new(Recorded::default()),
            secret_keys: Arc::new(NoSecretKeys),
            pool_drivers: giga_ports::PoolDrivers::default(),
        };
        let coordinator = Coordinator::start(ports, Options::default()).await.unwrap();
        let admin = coordinator.new_admin().await.unwrap().reveal().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let options = ServerOptions::default();
        tokio::spawn(giga_server::serve(coordinator.clone(), listener, options, shutdown.clone()));
        let client =
            Client::new(ClientOptions { url, token: Some(admin), ..ClientOptions::default() }).unwrap();
        let world = Self { temp, coordinator, client, shutdown };
        let scope = FactoryScope::default();
        world.coordinator.enroll(mac(), scope, actor()).await.unwrap();
        let advertised = Advertised { seat_limit: 8, ..Advertised::default() };
        world.coordinator.heartbeat(mac(), advertised).await.unwrap();
        world
    }

    fn root(&self) -> PathBuf {
        self.temp.path().join("jobs")
    }

    /// Folder mode as a task of the test.
    fn run(&self) -> Running {
        let (sender, events) = mpsc::unbounded_channel();
        let config = FolderConfig {
            product: Some("demo".to_owned()),
            poll: Duration::from_millis(20),
            look_again: Duration::from_millis(500),
            events: Some(sender),
            ..FolderConfig::new(self.root(), self.client.clone())
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(folder::run(config, stop.clone()));
        Running { events, stop, task }
    }

    fn drop_file(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.root().join("inbox")).unwrap();
        // As a careful editor does it: whole, under another name first.
        let draft = self.root().join("draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, self.root().join("inbox").join(name)).unwrap();
    }

    async fn claim(&self, request: &str) -> Job {
        self.coordinator
            .claims()
            .claim(mac(), request.parse().unwrap())
            .await
            .unwrap()
            .expect("a job to claim")
    }

    async fn report(&self, job: &Job) {
        let holder = Holder { factory: mac(), epoch: job.epoch };
        let actions = vec![HolderAction::Start, HolderAction::Report(RunReport::default())];
        self.coordinator.hold(job.id, holder, actions).await.unwrap();
    }

    async fn operate(&self, job: JobId, action: OperatorAction) {
        self.coordinator.operate(job, action, None, None, actor()).await.unwrap();
    }

    async fn jobs(&self) -> usize {
        self.client.jobs(&JobQuery::default()).await.unwrap().jobs.len()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

struct Running {
    events: mpsc::UnboundedReceiver<FolderEvent>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), folder::FolderError>>,
}

impl Running {
    async fn next(&mut self) -> FolderEvent {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.unwrap().unwrap()
    }

    async fn submitted(&mut self, name: &str) -> JobId {
        match self.next().await {
            FolderEvent::Submitted { file, job } if file == name => job,
            other => panic!("{other:?} instead of a submit of {name}"),
        }
    }

    async fn moved(&mut self, job: JobId, file: &str, place: Place) {
        assert_eq!(self.next().await, FolderEvent::Moved { job, file: file.to_owned(), place });
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn mac() -> FactoryId {
    "mac-1".parse().unwrap()
}

fn actor() -> Actor {
    Actor::system("test")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

const FIX: &str = "---\nname: fix\nreview: {quorum: 1}\n---\nFix it.\n";

#[tokio::test]
async fn a_file_goes_where_its_job_goes() {
    let world = World::start().await;
    let mut running = world.run();
    world.drop_file("fix.md", FIX);
    let id = running.submitted("fix.md").await;
    assert_eq!(text(&world.root().join("inbox/fix.md")), FIX, "what waits, waits in the inbox");
    let job = world.client.job(&id.to_string()).await.unwrap();
    assert_eq!((job.name.as_str(), job.product_id.as_str()), ("fix", "demo"));
    let held = world.claim("r-1").await;
    running.moved(id, "fix.md", Place::Building).await;
    world.report(&held).await;
    running.moved(id, "fix.md", Place::Review).await;
    let approve = serde_json::from_value(serde_json::json!({"verdict": "approve"})).unwrap();
    world.client.review(&id.to_string(), &approve).await.unwrap();
    running.moved(id, "fix.md", Place::Testing).await;
    world.operate(id, OperatorAction::Ship).await;
    running.moved(id, "fix.md", Place::Shipped).await;
    assert_eq!(text(&world.root().join("shipped/fix.md")), FIX);
    assert!(!world.root().join("inbox/fix.md").exists());
    running.stop().await;
}

#[tokio::test]
async fn what_ends_badly_lies_in_failed_and_comes_back_with_a_requeue() {
    let world = World::start().await;
    let mut running = world.run();
    world.drop_file("a.md", "---\nname: a\n---\n");
    let id = running.submitted("a.md").await;
    let held = world.claim("r-1").await;
    running.moved(id, "a.md", Place::Building).await;
    let failure = giga_domain::Failure { reason: giga_domain::FailReason::VerifyFailed, detail: None };
    let holder = Holder { factory: mac(), epoch: held.epoch };
    let fail = HolderAction::Fail { failure, retryable: false };
    world.coordinator.hold(id, holder, vec![fail]).await.unwrap();
    running.moved(id, "a.md", Place::Failed).await;
    world.operate(id, OperatorAction::Requeue).await;
    running.moved(id, "a.md", Place::Inbox).await;
    world.operate(id, OperatorAction::Cancel).await;
    running.moved(id, "a.md", Place::Failed).await;
    assert_eq!(world.jobs().await, 1, "back in the inbox it was still the same job");
    running.stop().await;
}

#[tokio::test]
async fn a_refused_file_says_why_with_every_line() {
    let world = World::start().await;
    let mut running = world.run();
    world.drop_file("bad.md", "---\nname: a\npriorty: high\nkind: robot\n---\n");
    assert_eq!(running.next().await, FolderEvent::Refused { file: "bad.md".to_owned() });
    let why = text(&world.root().join("failed/bad.md.error.txt"));
    assert!(why.contains("line 3: priorty: ") && why.contains("line 4: kind: "), "{why}");
    assert!(world.root().join("failed/bad.md").exists());
    world.drop_file("bad.md", "no front matter");
    assert_eq!(running.next().await, FolderEvent::Refused { file: "bad-2.md".to_owned() });
    assert!(world.root().join("failed/bad-2.md.error.txt").exists());
    assert_eq!(world.jobs().await, 0);
    running.stop().await;
}

#[tokio::test]
async fn a_crash_between_submit_and_note_makes_no_second_job() {
    let world = World::start().await;
    let mut running = world.run();
    world.drop_file("fix.md", FIX);
    let id = running.submitted("fix.md").await;
    running.stop().await;
    std::fs::remove_file(world.root().join(format!(".giga/{id}.json"))).unwrap();
    let mut running = world.run();
    assert_eq!(running.submitted("fix.md").await, id);
    assert_eq!(world.jobs().await, 1);
    running.stop().await;
}

#[tokio::test]
async fn a_crash_between_move_and_note_finds_the_file_again() {
    let world = World::start().await;
    let mut running = world.run();
    world.drop_file("fix.md", FIX);
    let id = running.submitted("fix.md").await;
    running.stop().await;
    let held = world.claim("r-1").await;
    std::fs::rename(world.root().join("inbox/fix.md"), world.root().join("building/fix.md")).unwrap();
    world.report(&held).await;
    let mut running = world.run();
    running.moved(id, "fix.md", Place::Review).await;
    assert!(world.root().join("review/fix.md").exists());
    running.stop().await;
}

#[tokio::test]
async fn the_same_file_again_is_told_and_another_of_its_name_is_another_job() {
    let world = World::start().await;
    let mut running = world.run();
    world.drop_file("fix.md", FIX);
    let first = running.submitted("fix.md").await;
    world.operate(first, OperatorAction::Cancel).await;
    running.moved(first, "fix.md", Place::Failed).await;
    world.drop_file("fix.md", FIX);
    assert_eq!(running.next().await, FolderEvent::Refused { file: "fix-2.md".to_owned() });
    let why = text(&world.root().join("failed/fix-2.md.error.txt"));
    assert!(why.contains(&first.to_string()), "{why}");
    world.drop_file("fix.md", &FIX.replace("Fix it.", "Fix it again."));
    let second = running.submitted("fix.md").await;
    assert_ne!(first, second);
    world.operate(second, OperatorAction::Cancel).await;
    running.moved(second, "fix-3.md", Place::Failed).await;
    assert_eq!(text(&world.root().join("failed/fix.md")), FIX, "nothing was overwritten");
    running.stop().await;
}

#[tokio::test]
async fn links_drafts_and_other_things_are_left_alone() {
    let world = World::start().await;
    let secret = world.temp.path().join("secret.md");
    std::fs::write(&secret, FIX).unwrap();
    world.drop_file(".draft.md", FIX);
    world.drop_file("notes.txt", FIX);
    std::os::unix::fs::symlink(&secret, world.root().join("inbox/a-link.md")).unwrap();
    std::fs::create_dir(world.root().join("inbox/b-folder.md")).unwrap();
    let mut running = world.run();
    world.drop_file("z.md", FIX);
    // In order of their names, so whatever is taken of the others is taken before.
    running.submitted("z.md").await;
    assert_eq!(world.jobs().await, 1);
    for kept in [".draft.md", "notes.txt", "a-link.md", "b-folder.md"] {
        assert!(std::fs::symlink_metadata(world.root().join("inbox").join(kept)).is_ok(), "{kept}");
    }
    running.stop().await;
}
