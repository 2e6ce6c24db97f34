//! From the word to ship to the branch, with a coordinator that is killed at every step of the way: it ends shipped, with
//! one merge, and whoever waited for it is told so.
//!
//! Hooks of the origin and the job's own check stop a merge where a test wants it: whoever comes there first says so into
//! a pipe and waits for another.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::{self, Reader, Repo, factory, git, job, submit};
use crate::world::{Home, Ran, Server, giga};

const PATIENCE: Duration = Duration::from_secs(90);
/// A lease of two seconds, ten until it is mentioned once more, and a merge on a busy machine.
const TAKEN_OVER: Duration = Duration::from_secs(45);

#[derive(Clone, Copy)]
enum Step {
    /// While the candidate is kept on the origin.
    Candidate,
    /// While the merged tree is checked.
    Checks,
    /// It is announced, and the origin has not moved the branch yet.
    Push,
    /// The branch has it, and nobody was told.
    Pushed,
}

struct Stop {
    mark: PathBuf,
    came: PathBuf,
    gate: PathBuf,
}

impl Stop {
    fn new(home: &Home) -> Self {
        let pipe = |name: &str| {
            let path = home.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        Self { mark: home.path().join("mark"), came: pipe("came"), gate: pipe("gate") }
    }

    /// The first one stops here; everybody after it goes on.
    fn command(&self) -> String {
        let [mark, came, gate] = [&self.mark, &self.came, &self.gate].map(|path| path.display());
        format!("if mkdir {mark} 2>/dev/null; then echo > {came}; read _ < {gate}; fi")
    }

    fn install(&self, origin: &Path, step: Step) {
        match step {
            Step::Candidate => hook(origin, "pre-receive", "refs/heads/giga/merge/", &self.command()),
            Step::Checks => {}
            Step::Push => hook(origin, "pre-receive", "refs/heads/main", &self.command()),
            Step::Pushed => hook(origin, "post-receive", "refs/heads/main", &self.command()),
        }
    }

    fn reached(&self) {
        let came = self.came.clone();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            sender.send(BufReader::new(File::open(came).unwrap()).read_line(&mut line).unwrap())
        });
        receiver.recv_timeout(PATIENCE).expect("nobody came to the step");
    }

    /// Whoever waits goes on, for as long as the file is kept.
    fn open(&self) -> File {
        let mut gate = File::options().read(true).write(true).open(&self.gate).unwrap();
        gate.write_all(b"\n").unwrap();
        gate
    }
}

impl Drop for Stop {
    /// Nobody is left waiting, however the test ended.
    fn drop(&mut self) {
        drop(self.open());
    }
}

/// A hook of the origin for pushes to a ref, or to those that begin with it.
fn hook(origin: &Path, name: &str, to: &str, then: &str) {
    let path = origin.join("hooks").join(name);
    let script =
        format!("#!/bin/sh\nwhile read -r old new ref; do case $ref in {to}*) {then};; esac; done\n");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A job with the word to ship, a factory and a coordinator, at a step of its merge.
struct Stopped {
    stop: Stop,
    id: String,
    origin: Repo,
    /// Where the branch was.
    before: String,
    server: Option<Server>,
    factory: Option<Reader>,
    _other: Option<Reader>,
    /// `job wait` and `job ship`, which live through all of it.
    followers: Vec<Child>,
    home: Home,
}

impl Stopped {
    fn at(step: Step) -> Self {
        Self::beside(step, None)
    }

    /// With another factory that is there before the word to ship.
    fn beside(step: Step, other: Option<&str>) -> Self {
        let home = Home::new();
        let origin = Repo::hello(&home);
        let stop = Stop::new(&home);
        let server = home.start();
        home.giga(&["flags", "set", "merge_lease_ms", "2000"]).ok();
        let factory = factory(&home, "a");
        // In the job's own run the check passes by: only the merged tree has what came into the branch meanwhile.
        let verify = match step {
            Step::Checks => format!("test ! -f meanwhile.txt || {{ {}; }}", stop.command()),
            _ => "true".to_owned(),
        };
        let id = submit(&home, &manifest("one", "manual", &verify));
        let waits = follower(&home, &["job", "wait", "--keep-waiting", &id]);
        home.giga(&["job", "wait", &id, "--until", "testing"]).ok();
        let other = other.map(|id| bench::factory(&home, id));
        move_branch(&home);
        let before = origin.git(&["rev-parse", "main"]);
        stop.install(&home.path().join("repos/hello.git"), step);
        let followers = vec![waits, follower(&home, &["job", "ship", &id])];
        stop.reached();
        Self {
            stop,
            id,
            origin,
            before,
            server: Some(server),
            factory: Some(factory),
            _other: other,
            followers,
            home,
        }
    }

    /// As when the coordinator's machine loses its power. What it says is how to bring it back: at the same address, so
    /// that whoever knew it finds it again.
    fn kill_coordinator(&mut self) -> String {
        let server = self.server.take().unwrap();
        let url = server.url.clone();
        server.kill9();
        url.strip_prefix("http://").unwrap().to_owned()
    }

    fn start_coordinator(&mut self, address: &str) {
        let mut command = giga(self.home.path());
        command.args(["serve", "--listen", address]);
        self.server = Some(Server::spawn(command, self.home.path()));
    }

    fn kill_factory(&mut self) {
        let factory = self.factory.take().unwrap();
        factory.signal("KILL");
        factory.ended();
    }

    /// Away for longer than a call is repeated: whoever comes now is told, whoever follows already goes on waiting.
    fn check_away(&self) {
        let refused = self.home.giga(&["job", "show", &self.id]).fails(1);
        assert!(refused.contains("cannot reach"), "{refused}");
    }

    /// Waits until the factory has said this about the job.
    fn factory_says(&self, words: &str) {
        let log = self.home.path().join("talk.log");
        let mut tail = Command::new("tail");
        let mut tail = tail.args(["-n", "+1", "-F"]).arg(log).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (words, id) = (words.to_owned(), self.id.clone());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            sender.send(lines.any(|line| line.contains(&words) && line.contains(&id)))
        });
        let said = receiver.recv_timeout(PATIENCE);
        tail.kill().unwrap();
        tail.wait().unwrap();
        assert_eq!(said, Ok(true), "the factory did not say it");
    }

    fn tip(&self) -> String {
        self.origin.git(&["rev-parse", "main"])
    }

    fn subjects(&self) -> Vec<String> {
        let log = self.origin.git(&["log", "--first-parent", "--format=%s", "main"]);
        log.lines().map(str::to_owned).collect()
    }

    /// Of the queue's own branches: they go after the job is shipped.
    fn until_nothing_is_left(&self) {
        let late = Instant::now() + Duration::from_mins(1);
        while !self.candidates().is_empty() {
            assert!(Instant::now() < late, "{}", self.candidates());
        }
    }

    fn candidates(&self) -> String {
        self.origin.git(&["for-each-ref", "--format=%(refname)", "refs/heads/giga/merge"])
    }

    /// Shipped, in the branch, once; and everybody who followed it knows.
    fn check_shipped(&mut self) {
        let waited = self.home.giga(&["job", "wait", &self.id, "--timeout", "90s"]).ok();
        assert!(waited.contains("shipped"), "{waited}");
        let shipped = job(&self.home, &self.id);
        assert_eq!(shipped["merge"]["state"], "merged", "{shipped:#}");
        let commit = shipped["merge"]["commit"].as_str().unwrap().to_owned();
        for follower in self.followers.drain(..) {
            let ran = Ran::from(follower.wait_with_output().unwrap());
            assert!(ran.out.contains("shipped"), "{ran:#?}");
            assert_eq!(ran.code, Some(0), "{ran:#?}");
        }
        self.origin.git(&["merge-base", "--is-ancestor", &commit, "main"]);
        self.check_once();
        assert_eq!(events(&self.home, &self.id, "job.merged"), 1);
    }

    fn check_once(&self) {
        let subjects = self.subjects();
        let of_job = subjects.iter().filter(|subject| subject.contains("Merge one")).count();
        assert_eq!(of_job, 1, "{subjects:?}");
        assert_eq!(self.origin.git(&["show", "main:one.txt"]), "1\n");
        assert_eq!(self.origin.git(&["show", "main:meanwhile.txt"]), "x\n");
    }

    /// The queue goes on after it, and what was brought in stays as it is.
    fn check_the_next(&self) {
        let next = submit(&self.home, &manifest("two", "auto", "true"));
        self.home.giga(&["job", "wait", &next, "--timeout", "90s"]).ok();
        assert_eq!(self.origin.git(&["show", "main:two.txt"]), "1\n");
        self.check_once();
        assert_eq!(self.subjects().len(), 4, "the first, meanwhile, one, two: {:?}", self.subjects());
    }
}

fn manifest(name: &str, ship: &str, verify: &str) -> String {
    format!(
        "---\nname: {name}\nproduct: demo\nrepo: hello\nengine: shell\nscript: echo 1 > {name}.txt\nverify: [{}]\n\
         ship: {ship}\n---\nDo it.\n",
        json!(verify)
    )
}

/// Something in the branch that the run did not see.
fn move_branch(home: &Home) {
    let seed = home.path().join("seed");
    std::fs::write(seed.join("meanwhile.txt"), "x\n").unwrap();
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "-q", "-m", "meanwhile"]);
    git(&seed, &["push", "-q", home.path().join("repos/hello.git").to_str().unwrap(), "main"]);
}

fn follower(home: &Home, args: &[&str]) -> Child {
    giga(home.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn events(home: &Home, id: &str, kind: &str) -> usize {
    let page: Value = serde_json::from_str(&home.giga(&["job", "events", id, "-o", "json"]).ok()).unwrap();
    page["events"].as_array().unwrap().iter().filter(|event| event["type"] == kind).count()
}

fn killed_at(step: Step) {
    let mut at = Stopped::at(step);
    let address = at.kill_coordinator();
    at.start_coordinator(&address);
    if !matches!(step, Step::Pushed) {
        assert_eq!(at.tip(), at.before, "nothing is half pushed");
    }
    let _gate = at.stop.open();
    at.check_shipped();
    at.until_nothing_is_left();
    at.check_the_next();
}

#[test]
fn the_coordinator_is_killed_when_it_has_the_word_to_ship() {
    let home = Home::new();
    let origin = Repo::hello(&home);
    let server = home.start();
    let first = factory(&home, "a");
    let id = submit(&home, &manifest("one", "manual", "true"));
    home.giga(&["job", "wait", &id, "--until", "testing"]).ok();
    drop(first);
    home.giga(&["job", "ship", "--detach", &id]).ok();
    server.kill9();
    let _server = home.start();
    assert_eq!(job(&home, &id)["stage"], "shipping", "acknowledged means durable");
    let _factory = factory(&home, "a");
    home.giga(&["job", "wait", &id, "--timeout", "90s"]).ok();
    assert_eq!(origin.git(&["rev-list", "--merges", "--count", "main"]).trim(), "1");
}

#[test]
fn the_coordinator_is_killed_while_the_candidate_is_kept() {
    killed_at(Step::Candidate);
}

#[test]
fn the_coordinator_is_killed_while_the_merged_tree_is_checked() {
    killed_at(Step::Checks);
}

#[test]
fn the_coordinator_is_killed_while_the_factory_pushes() {
    killed_at(Step::Push);
}

#[test]
fn the_coordinator_is_killed_when_the_factory_has_pushed() {
    killed_at(Step::Pushed);
}

#[test]
fn without_a_coordinator_nothing_is_pushed_that_was_not_announced() {
    let mut at = Stopped::at(Step::Checks);
    let address = at.kill_coordinator();
    let _gate = at.stop.open();
    at.factory_says("not merged");
    at.check_away();
    assert_eq!(at.tip(), at.before);
    at.start_coordinator(&address);
    at.check_shipped();
    at.until_nothing_is_left();
    at.check_the_next();
}

#[test]
fn what_was_pushed_without_a_coordinator_is_found_when_it_is_back() {
    let mut at = Stopped::at(Step::Push);
    let address = at.kill_coordinator();
    let _gate = at.stop.open();
    at.factory_says("merged");
    at.check_away();
    at.check_once();
    at.start_coordinator(&address);
    at.check_shipped();
    at.until_nothing_is_left();
    at.check_the_next();
}

fn both_killed_at(step: Step) {
    let mut at = Stopped::at(step);
    let address = at.kill_coordinator();
    at.kill_factory();
    let stopped_at = at.tip();
    at.start_coordinator(&address);
    assert_eq!(job(&at.home, &at.id)["stage"], "shipping");
    assert_eq!(at.tip(), stopped_at, "nothing goes on by itself");
    at.factory = Some(factory(&at.home, "a"));
    at.check_shipped();
    at.until_nothing_is_left();
    // What the killed one had started goes on when it is too late.
    let _gate = at.stop.open();
    at.check_the_next();
}

#[test]
fn both_are_killed_between_the_announcement_and_the_push() {
    both_killed_at(Step::Push);
}

#[test]
fn both_are_killed_between_the_push_and_the_news_of_it() {
    both_killed_at(Step::Pushed);
}

/// With another one that is there all the time and has nothing to do: it takes over when the lease of the frozen one is
/// over, and what that one still does when it goes on changes nothing.
fn frozen_at(step: Step) {
    let mut at = Stopped::beside(step, Some("b"));
    let frozen = at.factory.take().unwrap();
    assert_eq!(job(&at.home, &at.id)["merge"]["factoryId"], "a");
    frozen.signal("STOP");
    let began = Instant::now();
    at.check_shipped();
    // A lease, and until the other one is told of it once more; not until somebody happens to look.
    assert!(began.elapsed() < TAKEN_OVER, "{:?}", began.elapsed());
    let tip = at.tip();
    let _gate = at.stop.open();
    frozen.signal("CONT");
    at.until_nothing_is_left();
    assert_eq!(at.tip(), tip, "the frozen one pushes nothing when it goes on");
    at.check_the_next();
}

#[test]
fn a_factory_that_is_frozen_while_it_checks_is_taken_over_from() {
    frozen_at(Step::Checks);
}

#[test]
fn a_factory_that_is_frozen_while_it_pushes_is_taken_over_from() {
    frozen_at(Step::Push);
}
