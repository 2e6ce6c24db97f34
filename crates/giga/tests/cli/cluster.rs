//! Several coordinators on one PostgreSQL, workers and factories as processes of their own, and everything killed with -9
//! in the middle of it: nothing is lost, nothing is done twice.
//!
//! What is handled is told by the worker processes themselves, by job and epoch. A job may be handed out again after its
//! holder died; the same grant may never be.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use giga_api::client::{Client, ClientOptions, Idempotency};
use giga_testkit::nats::NatsServer;
use giga_testkit::postgres::{PostgresServer, TestDatabase};
use giga_worker::{Config, Job};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::world::{Home, Server, giga, manifest};

const PATIENCE: Duration = Duration::from_secs(90);
const TOPIC: &str = "noop";

/// A coordinator that can be killed and come back where it was.
struct Node {
    home: Home,
    args: Vec<String>,
    server: Option<Server>,
    url: String,
    token: String,
}

impl Node {
    /// All of one database have the same folder for logs and artifacts.
    fn start(store: &str, broker: Option<&str>, bytes: &Path) -> Self {
        let home = Home::new();
        let mut args = vec!["--store".to_owned(), store.to_owned()];
        args.extend(["--artifacts".to_owned(), bytes.display().to_string()]);
        args.extend(broker.into_iter().flat_map(|url| ["--broker".to_owned(), url.to_owned()]));
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let server = home.start_with(&words);
        let url = server.url.clone();
        let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap().trim().to_owned();
        Self { home, args, server: Some(server), url, token }
    }

    fn client(&self) -> Client {
        let options = ClientOptions {
            url: self.url.clone(),
            token: Some(self.token.clone()),
            product: Some("demo".to_owned()),
            ..ClientOptions::default()
        };
        Client::new(options).unwrap()
    }

    async fn queue(&self) -> giga_worker::Client {
        giga_worker::Client::connect(Config::new(&self.url, &self.token).product("demo")).await.unwrap()
    }

    fn kill9(&mut self) {
        self.server.take().unwrap().kill9();
    }

    /// At the same address, so that whoever knew it finds it again.
    fn start_again(&mut self) {
        let mut command = giga(self.home.path());
        let address = self.url.strip_prefix("http://").unwrap();
        command.args(["serve", "--listen", address]).args(&self.args);
        self.server = Some(Server::spawn(command, self.home.path()));
    }

    async fn leads(&self) -> bool {
        let scrape = reqwest::Client::new().get(format!("{}/metrics", self.url)).bearer_auth(&self.token);
        let text = scrape.send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with("giga_dispatch_leader "));
        line.and_then(|line| line.split(' ').nth(1)).is_some_and(|figure| figure.starts_with('1'))
    }
}

/// Built by the first test that needs it.
fn giga_bench() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| giga_testkit::binary::built("giga-bench", "giga-bench"))
}

/// A worker or factory process, and what it says it was given.
struct Hand {
    process: Child,
    grants: Receiver<(String, u64)>,
}

impl Hand {
    fn spawn(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = process.stdout.take().unwrap();
        let (sender, grants) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((job, epoch)) = line.strip_prefix("job ").and_then(|rest| rest.split_once(' ')) {
                    let _ = sender.send((job.to_owned(), epoch.parse().unwrap()));
                }
            }
        });
        Self { process, grants }
    }

    fn worker(node: &Node, name: &str, work_ms: u32) -> Self {
        let mut command = Command::new(giga_bench());
        command.args(["worker", "--print-each", "--name", name, "--product", "demo"]);
        command.args(["--work-ms", &work_ms.to_string()]);
        command.env("GIGA_URL", &node.url).env("GIGA_TOKEN", &node.token).stdin(Stdio::piped());
        Self::spawn(command)
    }

    async fn factory(node: &Node, id: &str) -> Self {
        let request = giga_api::wire::EnrollRequest {
            factory_id: id.to_owned(),
            products: Vec::new(),
            capabilities: Vec::new(),
        };
        let token = node.client().enroll(&request).await.unwrap().value.token;
        let mut command = Command::new(giga_bench());
        command.args(["factory", "--seats", "20", "--id", id]);
        command.env("GIGA_URL", &node.url).env("GIGA_TOKEN", token);
        Self::spawn(command)
    }

    fn kill9(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Everything that hands were given so far: by job, the epochs in the order of arrival.
#[derive(Default)]
struct Given(BTreeMap<String, Vec<u64>>);

impl Given {
    fn hear(&mut self, hands: &[Hand]) {
        for (job, epoch) in hands.iter().flat_map(|hand| hand.grants.try_iter()) {
            self.0.entry(job).or_default().push(epoch);
        }
    }

    fn assert_no_grant_twice(&self) {
        for (job, epochs) in &self.0 {
            let mut unique = epochs.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), epochs.len(), "{job} was handed out twice with one epoch: {epochs:?}");
        }
    }
}

async fn count(client: &Client, state: &str) -> Option<u64> {
    let topics = client.topics().await.ok()?.json;
    let topic = topics["topics"].as_array()?.iter().find(|topic| topic["name"] == TOPIC)?.clone();
    topic["byState"][state].as_u64()
}

async fn until(what: &str, is: impl AsyncFn() -> bool) -> Duration {
    let start = Instant::now();
    while !is().await {
        assert!(start.elapsed() < PATIENCE, "waited too long: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    start.elapsed()
}

async fn enqueue(node: &Node, jobs: usize) {
    let queue = node.queue().await;
    for _ in 0..jobs.div_ceil(1_000) {
        let batch: Vec<Job> = (0..jobs.min(1_000)).map(|_| Job::new(TOPIC, vec![b'x'; 200])).collect();
        queue.enqueue_many(batch).await.unwrap();
    }
}

async fn rollbacks(url: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_workers_on_two_coordinators_do_each_of_20000_jobs_once() {
    const JOBS: usize = 20_000;
    let database = TestDatabase::new().await;
    let bytes = tempfile::tempdir().unwrap();
    let nodes = [0; 2].map(|_| Node::start(database.url(), None, bytes.path()));
    let before = rollbacks(database.url()).await;
    let hands: Vec<Hand> = (0..8).map(|n| Hand::worker(&nodes[n % 2], &format!("w{n}"), 0)).collect();
    tokio::join!(enqueue(&nodes[0], JOBS / 2), enqueue(&nodes[1], JOBS / 2));
    let client = nodes[1].client();
    until("every job is done", async || count(&client, "done").await == Some(JOBS as u64)).await;

    let mut given = Given::default();
    // Workers tell in small batches; the last one may still be on its way.
    let end = Instant::now() + PATIENCE;
    while given.0.len() < JOBS && Instant::now() < end {
        given.hear(&hands);
        tokio::task::yield_now().await;
    }
    assert_eq!(given.0.len(), JOBS, "every job reached a handler");
    let twice: Vec<_> = given.0.iter().filter(|(_, epochs)| epochs.len() > 1).collect();
    assert!(twice.is_empty(), "handled more than once: {twice:?}");
    for state in ["ready", "running", "scheduled", "dead"] {
        assert_eq!(count(&client, state).await, Some(0), "{state}");
    }
    assert_eq!(rollbacks(database.url()).await - before, 0, "nobody had to give way");
}

async fn submit(client: Client, n: usize) {
    let text = manifest(
        &format!("scored-{n}"),
        "engine: shell\nscript: 'true'\nship: auto\nretry: {max: 20, backoff: 1s}\n",
    );
    let key = Idempotency::Key(format!("scored-{n}"));
    // Somebody is being killed: a submit with a key is repeated until it is answered.
    let start = Instant::now();
    while client.submit(text.clone().into_bytes(), &key).await.is_err() {
        assert!(start.elapsed() < PATIENCE, "a submit is not taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn stages(client: &Client) -> HashMap<String, u64> {
    let Ok(metrics) = client.metrics().await else { return HashMap::new() };
    let products = metrics.json["products"].as_array().cloned().unwrap_or_default();
    let demo = products.into_iter().find(|product| product["productId"] == "demo").unwrap_or(Value::Null);
    let stages = demo["byStage"].as_object().cloned().unwrap_or_default();
    stages.into_iter().map(|(stage, count)| (stage, count.as_u64().unwrap_or(0))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_killed_in_the_middle_and_nothing_is_lost() {
    const TOPIC_JOBS: usize = 5_000;
    const SCORED: usize = 1_000;
    /// Four hundred handlers take about a second for each fifth of the topic jobs.
    const WORK_MS: u32 = 400;
    let postgres = tokio::task::spawn_blocking(PostgresServer::start).await.unwrap();
    let database = TestDatabase::on(&postgres).await;
    let nats = tokio::task::spawn_blocking(NatsServer::start).await.unwrap();
    let bytes = tempfile::tempdir().unwrap();
    let mut nodes = [0; 2].map(|_| Node::start(database.url(), Some(&nats.url()), bytes.path()));
    let admin = nodes[0].client();
    for (flag, value) in [("lease_ms", 3_000), ("topic_lease_ms", 3_000), ("pickup_ms", 2_000)] {
        admin.set_flag(flag, json!(value)).await.unwrap();
    }
    let worker = |n: usize| Hand::worker(&nodes[n % 2], &format!("w{n}"), WORK_MS);
    let mut hands: Vec<Hand> = (0..4).map(worker).collect();
    for n in 0..4 {
        hands.push(Hand::factory(&nodes[n % 2], &format!("f{n}")).await);
    }
    let mut given = Given::default();
    let mut submits = JoinSet::new();
    let mut recovered: Vec<(&str, Duration)> = Vec::new();

    // A fifth of the work, then a blow, four times; the last fifth is done by whoever is left.
    for blow in 0..5 {
        let alive = &nodes[0];
        for n in 0..SCORED / 5 {
            submits.spawn(submit(alive.client(), blow * SCORED / 5 + n));
        }
        enqueue(alive, TOPIC_JOBS / 5).await;
        let client = alive.client();
        let (some, all) = ((blow * TOPIC_JOBS / 5) as u64, ((blow + 1) * TOPIC_JOBS / 5) as u64);
        until("some of it is done", async || count(&client, "done").await > Some(some)).await;
        assert!(count(&client, "done").await < Some(all), "the blow falls in the middle");
        let (name, start) = match blow {
            0 => {
                let leader = usize::from(!nodes[0].leads().await);
                nodes[leader].kill9();
                let start = Instant::now();
                nodes[leader].start_again();
                // Its lease has to end first; topics do not wait for that.
                until("somebody leads again", async || nodes[0].leads().await || nodes[1].leads().await)
                    .await;
                ("leader", start)
            }
            1 => {
                nats.kill9();
                let start = Instant::now();
                nats.start_empty();
                ("NATS, with an empty disk", start)
            }
            2 => {
                postgres.kill9();
                let start = Instant::now();
                postgres.start_again();
                ("PostgreSQL", start)
            }
            3 => {
                // Heard first: what a killed process said before is still in its pipe.
                for hand in [0, 1, 4] {
                    hands[hand].kill9();
                }
                ("two workers and a factory", Instant::now())
            }
            _ => break,
        };
        // Recovered when everything so far has come to its end.
        let (topics, scored) = ((blow + 1) * TOPIC_JOBS / 5, (blow + 1) * SCORED / 5);
        let clients = nodes.iter().map(Node::client).collect::<Vec<_>>();
        until(name, async || {
            let shipped = stages(&clients[0]).await.get("shipped").copied();
            count(&clients[1], "done").await == Some(topics as u64) && shipped == Some(scored as u64)
        })
        .await;
        recovered.push((name, start.elapsed()));
        given.hear(&hands);
    }
    submits.join_all().await;
    let client = nodes[0].client();
    until("every job is done", async || {
        let shipped = stages(&client).await.get("shipped").copied();
        count(&client, "done").await == Some(TOPIC_JOBS as u64) && shipped == Some(SCORED as u64)
    })
    .await;
    given.hear(&hands);
    given.assert_no_grant_twice();
    assert_eq!(count(&client, "dead").await, Some(0));
    for (name, time) in recovered {
        println!("{name} killed in the middle: all work was through after {:.1} s", time.as_secs_f64());
    }
}
