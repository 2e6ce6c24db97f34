//! Two coordinators on one PostgreSQL behind something that sends each call to the other one than the call before, as a
//! load balancer may. Logs and files are the same from both, also when one of them is killed with -9.

use std::process::Command;

use giga_testkit::azurite::Azurite;
use giga_testkit::postgres::TestDatabase;

use crate::balance::Alternating;
use crate::bench::{Reader, Repo, event, shell_job, submit};
use crate::world::{Home, Server, giga, run};

/// Where two coordinators keep their bytes, and what they need to know to do so.
struct Place {
    place: String,
    variables: Vec<(String, String)>,
}

struct Node {
    home: Home,
    store: String,
    place: Place,
    server: Option<Server>,
    url: String,
}

impl Node {
    fn start(store: &str, place: &Place) -> Self {
        let place = Place { place: place.place.clone(), variables: place.variables.clone() };
        let mut node =
            Self { home: Home::new(), store: store.to_owned(), place, server: None, url: String::new() };
        node.start_at("127.0.0.1:0");
        node
    }

    fn start_at(&mut self, address: &str) {
        let mut command = giga(self.home.path());
        command.args(["serve", "--listen", address, "--store", &self.store]);
        command.args(["--artifacts", &self.place.place]).envs(self.place.variables.iter().cloned());
        let server = Server::spawn(command, self.home.path());
        self.url.clone_from(&server.url);
        self.server = Some(server);
    }

    fn kill9(&mut self) {
        self.server.take().unwrap().kill9();
    }

    fn start_again(&mut self) {
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        self.start_at(&address);
    }
}

const LINES: usize = 60;

/// Prints half of its lines, says so, and goes on when it is let.
fn script(home: &Home) -> String {
    let half = LINES / 2;
    format!(
        "line() {{ echo \"line $1\"; sleep 0.05; }}\n\
         for n in $(seq 1 {half}); do line $n; done\n\
         until [ -e {go} ]; do echo waiting; sleep 0.05; done\n\
         for n in $(seq {next} {LINES}); do line $n; done\n\
         echo hello > greeting.txt",
        next = half + 1,
        go = home.path().join("go").display(),
    )
}

/// A factory that knows the coordinators by the address of the load balancer.
fn factory(node: &Node, url: &str) -> Reader {
    let token = node.home.giga(&["factory", "enroll", "f-1"]).ok();
    let home = &node.home;
    let mut command = giga(home.path());
    command.args(["factory", "run", "--id", "f-1", "--url", url, "--repos"]).arg(home.path().join("repos"));
    command.arg("--sandbox-write").arg(home.path()).env("GIGA_TOKEN", token.trim());
    let mut process = Reader::of(home, command);
    process.until(|line| line == "ready factory f-1");
    process
}

/// The same from both, and whole.
fn assert_log_and_files(nodes: &[Node; 2], id: &str) {
    let logs = nodes.each_ref().map(|node| node.home.giga(&["job", "logs", id]).ok());
    assert_eq!(logs[0], logs[1]);
    let lines: Vec<&str> = logs[0].lines().filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (1..=LINES).map(|n| format!("line {n}")).collect();
    assert_eq!(lines, expected, "each line once and in order");
    assert!(logs[0].contains("[giga] succeeded"), "the end is there too: {}", logs[0]);
    let file = nodes[0].home.giga(&["artifact", "list", id, "-o", "name"]).ok();
    let diffs = nodes.each_ref().map(|node| node.home.giga(&["artifact", "get", file.trim()]).ok());
    assert!(diffs[0].contains("+hello"), "{}", diffs[0]);
    assert_eq!(diffs[0], diffs[1]);
}

async fn one_is_killed_in_the_middle(place: Place) {
    let database = TestDatabase::new().await;
    let mut nodes = [Node::start(database.url(), &place), Node::start(database.url(), &place)];
    let balanced = Alternating::before(nodes.each_ref().map(|node| node.url.clone())).await;
    nodes[0].home.giga(&["flags", "set", "delivery", "poll"]).ok();
    Repo::hello(&nodes[0].home);
    let job = shell_job("long", &script(&nodes[0].home), "true");
    let id = submit(&nodes[0].home, &job);
    let _factory = factory(&nodes[0], &balanced.url);
    let half = format!("line {}", LINES / 2);
    let mut tails = nodes.each_ref().map(|node| Reader::spawn(&node.home, &["job", "logs", &id, "-f"]));
    for tail in &mut tails {
        tail.until(|line| line == half);
    }
    let before = balanced.pieces();
    assert!(before[0] > 0 && before[1] > 0, "both took pieces: {before:?}");

    nodes[1].kill9();
    // Something is said through the one that is left before the job goes on.
    tails[0].until(|line| line == "waiting");
    nodes[0].home.write("go", "");
    tails[0].until(|line| line == format!("line {LINES}"));
    event(&nodes[0].home, &id, "job.merged");
    nodes[1].start_again();
    assert_log_and_files(&nodes, &id);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_in_a_shared_folder_are_whole_wherever_calls_go() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    one_is_killed_in_the_middle(Place { place, variables: Vec::new() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_in_a_bucket_are_whole_wherever_calls_go() {
    let azurite = tokio::task::spawn_blocking(Azurite::shared).await.unwrap();
    let made = reqwest::Client::new().put(azurite.to_make("nodes")).header("content-length", 0).send().await;
    assert_eq!(made.unwrap().status(), 201);
    let place = format!("az://{}/nodes/fleet", giga_testkit::azurite::ACCOUNT);
    one_is_killed_in_the_middle(Place { place, variables: azurite.variables() }).await;
}

fn serve(home: &Home, store: &str, more: &[&str]) -> Command {
    let mut command = giga(home.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]).args(more);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_whose_bytes_would_be_elsewhere_does_not_start() {
    let database = TestDatabase::new().await;
    let (one, other) = (Home::new(), Home::new());
    let first = one.start_with(&["--store", database.url()]);
    let refused = run(&mut serve(&other, database.url(), &[])).fails(1);
    assert!(refused.contains("--artifacts") && refused.contains("--adopt-artifacts"), "{refused}");
    let shared = one.data().display().to_string();
    let second = other.start_with(&["--store", database.url(), "--artifacts", &shared]);
    drop(second);

    // Somebody who knows better; whoever is left with the old place does not go on as if nothing were.
    let third = other.start_with(&["--store", database.url(), "--adopt-artifacts"]);
    let ended = tokio::task::spawn_blocking(move || first.ended()).await.unwrap();
    assert_eq!(ended.code(), Some(1));
    let log = std::fs::read_to_string(one.path().join("server.log")).unwrap();
    assert!(log.contains("the logs and artifacts of this database are in place"), "{log}");
    drop(third);
    other.start_with(&["--store", database.url()]);
    run(&mut serve(&one, database.url(), &[])).fails(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_was_copied_whole_is_the_same_place() {
    let database = TestDatabase::new().await;
    let (one, other) = (Home::new(), Home::new());
    drop(one.start_with(&["--store", database.url()]));
    std::fs::create_dir_all(other.data()).unwrap();
    std::fs::copy(one.data().join("giga-place"), other.data().join("giga-place")).unwrap();
    other.start_with(&["--store", database.url()]);
}
