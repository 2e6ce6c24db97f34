//! A coordinator with a short lease, origins beside it, and factories as tasks of the test.
//!
//! Whatever is waited for is waited for through the API: events of the job, or lines of its log.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use giga_api::client::{Client, ClientOptions, Idempotency, Signal};
use giga_api::wire::{Job, MergeState, ReviewRequest, ReviewVerdict, Run, Stage};
use giga_blobs::{FolderLogs, ObjectArtifacts};
use giga_broker::Embedded;
use giga_coordinator::{Coordinator, Options, Ports};
use giga_domain::{Actor, CapabilitySet, Delivery, Timestamp};
use giga_factory::agent::{self, AgentConfig, AgentError, CoordinatorStages};
use giga_factory::engines::{EnginesConfig, Program, Watchdog};
use giga_factory::sandbox::{InitProgram, SandboxConfig};
use giga_factory::workspace::{GitPolicy, Workspace};
use giga_ports::store::{EvictJobs, NewEviction};
use giga_ports::{Broker, Clock, Effects, Store};
use giga_server::ServerOptions;
use giga_store::Tuning;
use giga_testkit::SeededRandomness;
use giga_testkit::effects::Recorded;
use giga_testkit::secret_keys::TestSecretKeys;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Nothing here takes this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
pub(crate) const LEASE_MS: u64 = 2_000;
/// For what nobody tells of.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::ZERO.plus(since.unwrap())
    }
}

pub(crate) struct World {
    folder: TempDir,
    pub(crate) client: Client,
    pub(crate) admin: String,
    pub(crate) url: String,
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) store: Arc<dyn Store>,
    shutdown: CancellationToken,
    served: Option<JoinHandle<std::io::Result<()>>>,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_on(Arc::new(Embedded::new())).await
    }

    pub(crate) async fn start_on(broker: Arc<dyn Broker>) -> Self {
        Self::start_with(broker, Arc::new(Recorded::default()), Options::default()).await
    }

    pub(crate) async fn start_with(
        broker: Arc<dyn Broker>,
        effects: Arc<dyn Effects>,
        options: Options,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("repos")).unwrap();
        let (coordinator, store) = Self::coordinator(folder.path(), broker, effects, options).await;
        let actor = Actor::system("test");
        coordinator.set_flag("lease_ms", json!(LEASE_MS), actor).await.unwrap();
        let admin = coordinator.new_admin().await.unwrap().reveal().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let served =
            giga_server::serve(coordinator.clone(), listener, ServerOptions::default(), shutdown.clone());
        let served = Some(tokio::spawn(served));
        let options = ClientOptions {
            url: url.clone(),
            token: Some(admin.clone()),
            product: Some("demo".to_owned()),
            agent: "test".to_owned(),
            ..ClientOptions::default()
        };
        let client = Client::new(options).unwrap();
        Self { folder, client, admin, url, coordinator, store, shutdown, served }
    }

    /// Another coordinator on the same store and at the same address, as after a crash: nothing is handed over.
    pub(crate) async fn restart(&mut self, effects: Arc<dyn Effects>, options: Options) {
        self.shutdown.cancel();
        if let Some(served) = self.served.take() {
            served.abort();
            let _ = served.await;
        }
        self.coordinator.stop().await;
        let broker = Arc::new(Embedded::new());
        (self.coordinator, self.store) = Self::coordinator(self.path(), broker, effects, options).await;
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind(address).await.unwrap();
        self.shutdown = CancellationToken::new();
        let (coordinator, shutdown) = (self.coordinator.clone(), self.shutdown.clone());
        let served = giga_server::serve(coordinator, listener, ServerOptions::default(), shutdown);
        self.served = Some(tokio::spawn(served));
    }

    async fn coordinator(
        folder: &Path,
        broker: Arc<dyn Broker>,
        effects: Arc<dyn Effects>,
        options: Options,
    ) -> (Arc<Coordinator>, Arc<dyn Store>) {
        let clock = Arc::new(RealClock);
        let url = format!("sqlite:{}", folder.join("giga.db").display());
        let stores = giga_store::open(&url, clock.clone(), Tuning::default()).await.unwrap();
        let store = stores.jobs.clone();
        let ports = Ports {
            store: stores.jobs,
            topics: stores.topics,
            broker,
            clock,
            random: Arc::new(SeededRandomness::new(3)),
            logs: Arc::new(FolderLogs::new(folder.join("logs"))),
            artifacts: Arc::new(ObjectArtifacts::folder(&folder.join("artifacts")).unwrap()),
            effects,
            secret_keys: Arc::new(TestSecretKeys::default()),
            pool_drivers: giga_ports::PoolDrivers::default(),
        };
        (Coordinator::start(ports, options).await.unwrap(), store)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A bare origin that factories know by its name, with one commit on `main`.
    pub(crate) fn origin(&self, name: &str) -> Origin {
        self.origin_on(name, "main")
    }

    /// The same with another name for its branch.
    pub(crate) fn origin_on(&self, name: &str, branch: &str) -> Origin {
        self.origin_with(name, branch, |seed| {
            std::fs::write(seed.join("greeting.txt"), "helo\n").unwrap();
        })
    }

    /// With these files in its first commit; without any, it has none.
    pub(crate) fn origin_with(&self, name: &str, branch: &str, fill: impl Fn(&Path)) -> Origin {
        let path = self.path().join("repos").join(format!("{name}.git"));
        let seed = self.path().join("seeds").join(name);
        let unseen = self.path().join("seeds").join(format!("{name}.git"));
        std::fs::create_dir_all(&seed).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let initial = format!("--initial-branch={branch}");
        git(self.path(), &["init", "-q", "--bare", &initial, unseen.to_str().unwrap()]);
        git(&seed, &["init", "-q", &initial]);
        fill(&seed);
        git(&seed, &["add", "."]);
        if !git(&seed, &["status", "--porcelain"]).is_empty() {
            git(&seed, &["commit", "-qm", "first"]);
            git(&seed, &["push", "-q", unseen.to_str().unwrap(), branch]);
        }
        // Whole from the first moment: a factory may be looking.
        std::fs::rename(unseen, &path).unwrap();
        Origin { path }
    }

    /// The same with the factories' folder holding a clone of it.
    pub(crate) fn origin_elsewhere(&self, name: &str) -> Origin {
        let Origin { path } = self.origin(name);
        let elsewhere = self.path().join(format!("{name}.git"));
        std::fs::rename(&path, &elsewhere).unwrap();
        let clone = path.with_extension("");
        git(self.path(), &["clone", "-q", elsewhere.to_str().unwrap(), clone.to_str().unwrap()]);
        Origin { path: elsewhere }
    }

    pub(crate) fn base(&self, factory: &str) -> PathBuf {
        self.path().join(factory)
    }

    pub(crate) fn config(&self, factory: &str) -> AgentConfig {
        Self::config_in(self.path(), &self.url, &self.admin, factory)
    }

    pub(crate) fn config_in(world: &Path, url: &str, admin: &str, factory: &str) -> AgentConfig {
        AgentConfig {
            trust: giga_api::client::Trust::default(),
            url: url.to_owned(),
            id: factory.parse().unwrap(),
            base: world.join(factory),
            enroll_with: Some(admin.to_owned()),
            pool: None,
            capabilities: CapabilitySet::new(),
            cost_per_hour: None,
            seats: 1,
            engines: EnginesConfig { disabled: others(), ..EnginesConfig::default() },
            // Scripts of these tests wait at pipes of the test's own.
            sandbox: SandboxConfig { write: vec![world.to_owned()], ..sandbox() },
            commands: true,
            job_tools: None,
            git: GitPolicy { repos: Some(world.join("repos")), ..GitPolicy::default() },
            watchdog: Watchdog { kill_grace: Duration::from_millis(500), ..Watchdog::default() },
            checkpoint_every: Duration::from_millis(200),
            can_clone: false,
            take_over: false,
            broker: None,
            once: false,
        }
    }

    pub(crate) fn factory(&self, name: &str) -> Factory {
        Factory::start(self.config(name))
    }

    /// What the factory itself is told when it asks which jobs are over.
    pub(crate) fn states_for(&self, factory: &str) -> CoordinatorStages {
        let token = std::fs::read_to_string(self.base(factory).join("factory.token")).unwrap();
        let (url, agent) = (self.url.clone(), "test".to_owned());
        let options =
            ClientOptions { url, token: Some(token.trim().to_owned()), agent, ..ClientOptions::default() };
        CoordinatorStages(Client::new(options).unwrap())
    }

    pub(crate) fn workspace(&self, factory: &str) -> Workspace {
        let git = GitPolicy { repos: Some(self.path().join("repos")), ..GitPolicy::default() };
        Workspace::open(self.base(factory), git).unwrap()
    }

    /// `more` is front matter; the script stands in a block of its own.
    pub(crate) async fn submit(&self, name: &str, more: &str, script: &str) -> String {
        let script = script.replace('\n', "\n  ");
        let manifest =
            format!("---\nname: {name}\nengine: shell\n{more}\nscript: |\n  {script}\n---\nDo it.\n");
        let answer = self.client.submit(manifest.into_bytes(), &Idempotency::Nothing).await.unwrap();
        answer.value.job.id
    }

    /// A job for an engine that reads prompts.
    pub(crate) async fn ask(&self, name: &str, more: &str) -> String {
        let manifest = format!("---\nname: {name}\n{more}\n---\nDo it.\n");
        let answer = self.client.submit(manifest.into_bytes(), &Idempotency::Nothing).await.unwrap();
        answer.value.job.id
    }

    pub(crate) async fn review(&self, id: &str, verdict: ReviewVerdict, comment: Option<&str>) {
        let review = ReviewRequest {
            verdict,
            reviewer: Some("ana".to_owned()),
            comment: comment.map(str::to_owned),
            lease_epoch: None,
            commit: None,
            acknowledge_unseen: false,
        };
        self.client.review(id, &review).await.unwrap();
    }

    /// As the dispatcher does for a more urgent job.
    pub(crate) async fn evict(&self, id: &str, for_job: &str) {
        let job = id.parse().unwrap();
        let rev = self.store.read().job(job).await.unwrap().unwrap().rev;
        let asked = NewEviction { job, rev, for_job: Some(for_job.parse().unwrap()) };
        let grace = Duration::from_secs(30);
        let answers = self
            .store
            .evict(EvictJobs { term: None, asked: vec![asked], grace, actor: Actor::system("test") })
            .await
            .unwrap();
        assert_eq!(answers, [true]);
    }

    pub(crate) async fn job(&self, id: &str) -> Job {
        self.client.job(id).await.unwrap().value
    }

    pub(crate) async fn runs(&self, id: &str) -> Vec<Run> {
        self.client.runs(id).await.unwrap().value.runs
    }

    /// The job as soon as it is so.
    pub(crate) async fn until(&self, id: &str, so: impl Fn(&Job) -> bool) -> Job {
        let waited = tokio::time::timeout(PATIENCE, async {
            let mut events = self.client.follow_job(id, 0);
            loop {
                let job = self.job(id).await;
                if so(&job) {
                    return job;
                }
                while !matches!(events.next().await.unwrap(), Signal::Event(_)) {}
            }
        });
        match waited.await {
            Ok(job) => job,
            Err(late) => panic!("{late}: {:#?}\n{}", self.job(id).await, self.log(id, None).await),
        }
    }

    pub(crate) async fn until_stage(&self, id: &str, stage: Stage) -> Job {
        self.until(id, |job| job.stage == stage).await
    }

    pub(crate) async fn until_merged(&self, id: &str) -> Job {
        self.until(id, |job| job.merge.as_ref().is_some_and(|merge| merge.state == MergeState::Merged)).await
    }

    /// As soon as the newest run has printed it.
    pub(crate) async fn until_logged(&self, id: &str, text: &str) {
        let waited = tokio::time::timeout(PATIENCE, async {
            self.until(id, |job| job.stage != Stage::Queued && job.stage != Stage::Assigned).await;
            let (mut offset, mut seen) = (0, String::new());
            while !seen.contains(text) {
                let piece = self.client.log(id, None, offset, Duration::from_secs(5)).await.unwrap();
                offset = piece.next_offset;
                seen.push_str(&piece.text);
                assert!(!piece.complete || seen.contains(text), "{text:?} is not in:\n{seen}");
            }
        });
        assert!(waited.await.is_ok(), "{text:?} is not in:\n{}", self.log(id, None).await);
    }

    pub(crate) async fn log(&self, id: &str, epoch: Option<u64>) -> String {
        self.client.log(id, epoch, 0, Duration::ZERO).await.map_or_else(|e| e.to_string(), |p| p.text.clone())
    }

    pub(crate) async fn set_flag(&self, name: &str, value: serde_json::Value) {
        self.coordinator.set_flag(name, value, Actor::system("test")).await.unwrap();
    }

    /// As soon as the factory has said that jobs reach it so.
    pub(crate) async fn until_delivered_by(&self, factory: &str, mode: Delivery) {
        let id = factory.parse().unwrap();
        let mut delivery = None;
        let waited = tokio::time::timeout(PATIENCE, async {
            while delivery != Some(mode) {
                tokio::time::sleep(LOOK_AGAIN).await;
                let known = self.coordinator.reads().factory(&id).await.unwrap();
                delivery = known.and_then(|factory| factory.advertised.delivery);
            }
        });
        assert!(waited.await.is_ok(), "{factory} says {delivery:?}, not {mode:?}");
    }

    /// How often a route has answered, whatever it answered.
    pub(crate) async fn answered(&self, route: &str) -> u64 {
        let scrape = reqwest::Client::new().get(format!("{}/metrics", self.url)).bearer_auth(&self.admin);
        let text = scrape.send().await.unwrap().text().await.unwrap();
        let wanted = format!("route=\"{route}\"");
        let counted = text.lines().filter(|line| line.contains(&wanted));
        counted.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    pub(crate) async fn until_answered(&self, route: &str, count: u64) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.answered(route).await < count {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(waited.await.is_ok(), "{route} was not asked {count} times");
    }

    /// When the lease ends, where there is one.
    pub(crate) async fn lease_of(&self, id: &str) -> Option<Timestamp> {
        self.job(id).await.lease.map(|lease| lease.expires_at.parse().unwrap())
    }

    /// A pipe that a script waits at until the test writes to it.
    pub(crate) fn gate(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
        let coordinator = self.coordinator.clone();
        tokio::spawn(async move { coordinator.stop().await });
    }
}

/// As a factory has it by default.
pub(crate) fn sandbox() -> SandboxConfig {
    let program = env!("CARGO_BIN_EXE_giga-sandbox-init").into();
    SandboxConfig::new(InitProgram { program, args: Vec::new() })
}

/// Engines that a developer's machine may have; a test must not use an account.
fn others() -> Vec<String> {
    Program::ALL.iter().map(ToString::to_string).chain(["devin".to_owned()]).collect()
}

/// An agent in this process.
pub(crate) struct Factory {
    stop: CancellationToken,
    task: JoinHandle<Result<(), AgentError>>,
}

impl Factory {
    pub(crate) fn start(config: AgentConfig) -> Self {
        let stop = CancellationToken::new();
        Self { task: tokio::spawn(agent::run(config, stop.clone())), stop }
    }

    /// As SIGTERM does it.
    pub(crate) async fn drain(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("a drain ends").unwrap().unwrap();
    }

    /// For one that leaves by itself.
    pub(crate) async fn ended(self) -> Result<(), AgentError> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap()
    }
}

pub(crate) struct Origin {
    path: PathBuf,
}

impl Origin {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.path, args)
    }

    pub(crate) fn file(&self, revision: &str, name: &str) -> String {
        self.git(&["show", &format!("{revision}:{name}")])
    }

    pub(crate) fn branches(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname:short)"]).lines().map(str::to_owned).collect()
    }
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Branches of every mirror of a factory that begin so.
pub(crate) fn mirror_branches(base: &Path, prefix: &str) -> Vec<String> {
    let mirrors = std::fs::read_dir(base.join("mirrors")).unwrap().flatten().map(|entry| entry.path());
    mirrors
        .filter(|path| path.is_dir())
        .flat_map(|path| {
            let found =
                git(&path, &["for-each-ref", "--format=%(refname:short)", &format!("refs/heads/{prefix}")]);
            found.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Processes whose environment names this job.
pub(crate) fn processes_of(job: &str) -> Vec<u32> {
    let wanted = format!("GIGA_JOB_ID={job}");
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            std::fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|env| env.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes()))
        })
        .collect()
}

pub(crate) fn work_folders(base: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(base.join("work")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
