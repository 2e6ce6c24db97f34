//! From the last release to this one while jobs run: two coordinators of before on one PostgreSQL, factories of before and of
//! now, one coordinator after the other replaced, one of them taken back to the old version in between. Nothing is lost,
//! nothing is held twice, every log is whole.
//!
//! Not part of the ordinary suite, because it takes the binary of the last release. `cargo xtask upgrade` builds that one from
//! the revision in `tests/upgrade/last-release` and runs this.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test code: a panic is how it reports")]

#[path = "../cli/balance.rs"]
mod balance;
#[path = "../cli/bench.rs"]
#[expect(dead_code, reason = "shared with the ordinary suite")]
mod bench;
#[path = "../cli/world.rs"]
#[expect(dead_code, reason = "shared with the ordinary suite")]
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use giga_api::client::{Client, ClientOptions, Idempotency};
use giga_api::wire::Stage;
use giga_testkit::postgres::TestDatabase;
use tempfile::TempDir;

use balance::Alternating;
use bench::{Reader, Repo};
use world::{Home, Server};

const PATIENCE: Duration = Duration::from_secs(180);
const LINES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    LastRelease,
    ThisOne,
}

/// `giga` of that version, with nothing of the surroundings.
fn giga(version: Version, home: &Path) -> Command {
    let program = match version {
        Version::LastRelease => PathBuf::from(
            std::env::var_os("GIGA_LAST_RELEASE")
                .expect("run this with `cargo xtask upgrade`, which builds the last release"),
        ),
        Version::ThisOne => PathBuf::from(env!("CARGO_BIN_EXE_giga")),
    };
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(home).stdin(std::process::Stdio::null());
    command
}

struct Node {
    home: Home,
    store: String,
    bytes: PathBuf,
    server: Option<Server>,
    url: String,
}

impl Node {
    fn start(version: Version, store: &str, bytes: &Path) -> Self {
        let (store, bytes) = (store.to_owned(), bytes.to_owned());
        let mut node = Self { home: Home::new(), store, bytes, server: None, url: String::new() };
        node.start_at(version, "127.0.0.1:0");
        node
    }

    fn start_at(&mut self, version: Version, address: &str) {
        let mut command = giga(version, self.home.path());
        command.args(["serve", "--listen", address, "--store", &self.store, "--artifacts"]).arg(&self.bytes);
        let server = Server::spawn(command, self.home.path());
        self.url.clone_from(&server.url);
        self.server = Some(server);
    }

    /// As an operator does it: stopped in good order, and another one started at the same address.
    fn replace_with(&mut self, version: Version) {
        let stopped = self.server.take().unwrap().stop("TERM");
        assert_eq!(stopped.code(), Some(0));
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        self.start_at(version, &address);
        println!("{} is {version:?} now", self.url);
    }

    fn client(&self) -> Client {
        let token = std::fs::read_to_string(self.home.data().join("admin.token")).unwrap();
        let options = ClientOptions {
            url: self.url.clone(),
            token: Some(token.trim().to_owned()),
            product: Some("demo".to_owned()),
            ..ClientOptions::default()
        };
        Client::new(options).unwrap()
    }
}

/// A database, a place for bytes, and jobs that write down that they were begun and ended.
struct Fleet {
    nodes: [Node; 2],
    folder: TempDir,
    factories: Vec<Reader>,
    jobs: Vec<String>,
    _database: TestDatabase,
}

impl Fleet {
    async fn of_last_release() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::new().await;
        let nodes = [0; 2].map(|_| Node::start(Version::LastRelease, database.url(), folder.path()));
        Self { nodes, folder, factories: Vec::new(), jobs: Vec::new(), _database: database }
    }

    /// With the sandbox open for the place where jobs write down what they did.
    async fn factory(&mut self, version: Version, id: &str, url: &str) {
        let request = giga_api::wire::EnrollRequest {
            factory_id: id.to_owned(),
            products: Vec::new(),
            capabilities: Vec::new(),
        };
        let token = self.nodes[0].client().enroll(&request).await.unwrap().value.token;
        if self.nodes.iter().all(|node| node.url != url) {
            // What comes through the load balancer comes call by call.
            let flag = format!("delivery.{id}");
            self.nodes[0].client().set_flag(&flag, serde_json::json!("poll")).await.unwrap();
        }
        let home = &self.nodes[0].home;
        let mut command = giga(version, home.path());
        command.args(["factory", "run", "--id", id, "--url", url, "--seats", "2", "--repos"]);
        command.arg(home.path().join("repos")).arg("--base").arg(home.path().join(id));
        command.arg("--sandbox-write").arg(self.folder.path()).env("GIGA_TOKEN", token);
        let mut process = Reader::of(home, command);
        process.until(|line| line == format!("ready factory {id}"));
        self.factories.push(process);
    }

    fn witness(&self) -> PathBuf {
        self.folder.path().join("witness")
    }

    async fn submit(&mut self, node: usize, count: usize) {
        for _ in 0..count {
            let name = format!("job-{}", self.jobs.len());
            let witness = self.witness().display().to_string();
            let script = format!(
                "echo \"$GIGA_JOB_ID begins\" >> {witness}\n  for n in $(seq 1 {LINES}); do echo \"line $n\"; sleep 0.1; done\n  \
                 echo \"$GIGA_JOB_ID ends\" >> {witness}"
            );
            self.submit_as(node, &name, "", &script).await;
        }
    }

    async fn submit_as(&mut self, node: usize, name: &str, more: &str, script: &str) {
        let manifest = format!(
            "---\nname: {name}\nproduct: demo\n{more}engine: shell\nscript: |\n  {script}\nship: auto\n---\nDo it.\n"
        );
        let key = Idempotency::Key(name.to_owned());
        let job = self.nodes[node].client().submit(manifest.into_bytes(), &key).await.unwrap();
        self.jobs
            .push(job.json["id"].as_str().or_else(|| job.json["job"]["id"].as_str()).unwrap().to_owned());
    }

    fn count(&self, what: &str) -> usize {
        let text = std::fs::read_to_string(self.witness()).unwrap_or_default();
        text.lines().filter(|line| line.ends_with(what)).count()
    }

    async fn until(&self, what: &str, is: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while !is().await {
            if start.elapsed() > PATIENCE {
                for node in &self.nodes {
                    let log =
                        std::fs::read_to_string(node.home.path().join("server.log")).unwrap_or_default();
                    println!("{}", log.lines().rev().take(40).collect::<Vec<_>>().join("\n"));
                }
                panic!("waited too long: {what}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// So many more have ended than there were, and others are in the middle of their work.
    async fn until_work_goes_on(&self) {
        let ended = self.count("ends");
        self.until("jobs go on", async || self.count("ends") >= ended + 3).await;
        assert!(self.count("begins") > self.count("ends"), "there is work in flight");
    }

    async fn assert_all_is_well(&self) {
        let clients = self.nodes.each_ref().map(Node::client);
        let mut begun: BTreeMap<String, usize> = BTreeMap::new();
        for line in std::fs::read_to_string(self.witness()).unwrap().lines() {
            if let Some(job) = line.strip_suffix(" begins") {
                *begun.entry(job.to_owned()).or_default() += 1;
            }
        }
        for id in &self.jobs {
            let job = clients[0].job(id).await.unwrap();
            assert_eq!(job.value.stage, Stage::Shipped, "{:#}", job.json);
            assert_eq!((begun.get(id), job.value.lease_epoch), (Some(&1), 1), "held once: {:#}", job.json);
            let events = clients[1].job_events(id, None).await.unwrap();
            let seqs: Vec<u64> = events.value.events.iter().filter_map(|event| event.seq).collect();
            assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no gap in the history");
            let mut logs = Vec::new();
            for client in &clients {
                let piece = client.log(id, None, 0, Duration::ZERO).await.unwrap();
                assert!(piece.complete, "{piece:?}");
                logs.push(piece.value.text);
            }
            assert_eq!(logs[0], logs[1]);
            let lines: Vec<&str> = logs[0].lines().filter(|line| line.starts_with("line ")).collect();
            let expected: Vec<String> = (1..=LINES).map(|n| format!("line {n}")).collect();
            assert_eq!(lines, expected, "each line once and in order");
            assert!(logs[0].contains("[giga] succeeded"), "{}", logs[0]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn coordinators_are_replaced_one_by_one_while_jobs_run() {
    use Version::{LastRelease, ThisOne};
    let mut fleet = Fleet::of_last_release().await;
    let origin = Repo::hello(&fleet.nodes[0].home);
    let urls = fleet.nodes.each_ref().map(|node| node.url.clone());
    let balanced = Alternating::before(urls.clone()).await;
    // Factories of now with coordinators of before come too, though an operator upgrades coordinators first.
    fleet.factory(LastRelease, "old-balanced", &balanced.url).await;
    fleet.factory(ThisOne, "new-balanced", &balanced.url).await;
    fleet.factory(LastRelease, "old-direct", &urls[0]).await;
    fleet.factory(ThisOne, "new-direct", &urls[1]).await;

    // From the first moment to the last, on a branch.
    let gate = fleet.folder.path().join("gate");
    let witness = fleet.witness();
    let half = LINES / 2;
    let script = format!(
        "echo \"$GIGA_JOB_ID begins\" >> {witness}\n  for n in $(seq 1 {half}); do echo \"line $n\"; done\n  \
         until [ -e {gate} ]; do echo waiting; sleep 0.2; done\n  \
         for n in $(seq {next} {LINES}); do echo \"line $n\"; done\n  \
         echo hello > greeting.txt; echo \"$GIGA_JOB_ID ends\" >> {witness}",
        witness = witness.display(),
        gate = gate.display(),
        next = half + 1,
    );
    fleet.submit_as(0, "throughout", "repo: hello\n", &script).await;
    fleet.until("it runs", async || fleet.count("begins") == 1).await;

    fleet.submit(0, 16).await;
    fleet.until_work_goes_on().await;
    fleet.nodes[1].replace_with(ThisOne);
    fleet.submit(1, 8).await;
    fleet.submit(0, 8).await;
    fleet.until_work_goes_on().await;
    // One step back: the database is the new one's by now.
    fleet.nodes[1].replace_with(LastRelease);
    fleet.submit(1, 8).await;
    fleet.until_work_goes_on().await;
    fleet.nodes[1].replace_with(ThisOne);
    fleet.until_work_goes_on().await;
    fleet.nodes[0].replace_with(ThisOne);
    fleet.submit(0, 16).await;
    fleet.until_work_goes_on().await;

    std::fs::write(&gate, "").unwrap();
    let client = fleet.nodes[1].client();
    fleet
        .until("everything has shipped", async || {
            for id in &fleet.jobs {
                if client.job(id).await.is_ok_and(|job| job.value.stage != Stage::Shipped) {
                    return false;
                }
            }
            true
        })
        .await;
    fleet.assert_all_is_well().await;
    assert_eq!(origin.git(&["show", "main:greeting.txt"]), "hello\n");
    let by: Vec<String> = {
        let mut by = Vec::new();
        for id in &fleet.jobs {
            by.extend(client.job(id).await.unwrap().json["lastFactoryId"].as_str().map(str::to_owned));
        }
        by
    };
    for id in ["old-balanced", "new-balanced", "old-direct", "new-direct"] {
        let count = by.iter().filter(|factory| *factory == id).count();
        println!("{id}: {count} jobs");
        assert!(count > 0, "{id} did nothing");
    }
    println!("pieces of logs by coordinator, through the load balancer: {:?}", balanced.pieces());
}
