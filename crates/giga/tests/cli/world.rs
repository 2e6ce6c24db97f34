//! A coordinator of its own for each test, and `giga` as its user would run it. Nothing here sleeps: the ready line
//! is waited for, and what is started is ended when it is dropped.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// `giga` with nothing of the surroundings but what a test gives it.
pub(crate) fn giga(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_giga"));
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(home).stdin(Stdio::null());
    command
}

/// A finished command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.out
    }

    /// Its stderr, after it ended with this code.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self.err
    }
}

pub(crate) fn run(command: &mut Command) -> Ran {
    command.output().unwrap().into()
}

pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().into()
}

/// A folder that plays the user's home; the coordinator's data lies where `giga` looks by itself.
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join(".local/share/gigafactory")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn giga(&self, args: &[&str]) -> Ran {
        run(giga(self.path()).args(args))
    }

    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, args: &[&str]) -> Server {
        let mut command = giga(self.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(args);
        Server::spawn(command, self.path())
    }
}

/// A running coordinator; killed when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn spawn(mut command: Command, home: &Path) -> Self {
        // To a file: nobody reads a pipe, and a full one would stop the coordinator.
        let log = home.join("server.log");
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut process = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(url) = line.trim_end().strip_prefix("ready ") else {
            let _ = process.wait();
            panic!("not ready: {line:?}\n{}", std::fs::read_to_string(log).unwrap());
        };
        Self { url: url.to_owned(), process }
    }

    /// As when the machine loses its power.
    pub(crate) fn kill9(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// What it has in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// Waits until it ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(mut self, signal: &str) -> ExitStatus {
        self.signal(signal);
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A factory as an outside client: plain HTTP with the token that enrolment printed.
pub(crate) struct Holder {
    pub(crate) id: String,
    pub(crate) token: String,
    url: String,
    http: reqwest::Client,
}

impl Holder {
    pub(crate) async fn enroll(home: &Home, server: &Server, id: &str, capabilities: &[&str]) -> Self {
        let token = home.giga(&["factory", "enroll", id]).ok().trim().to_owned();
        let holder = Self { id: id.to_owned(), token, url: server.url.clone(), http: reqwest::Client::new() };
        let beat = json!({"factoryId": id, "capabilities": capabilities, "seatLimit": 4});
        let (status, answer) = holder.post("factories/heartbeat", beat).await;
        assert_eq!(status, 200, "{answer}");
        holder
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(reqwest::Method::POST, path, body).await
    }

    pub(crate) async fn send(&self, method: reqwest::Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.http.request(method, format!("{}/api/fleet/{path}", self.url));
        let answer = request.bearer_auth(&self.token).json(&body).send().await.unwrap();
        let status = answer.status().as_u16();
        let bytes = answer.bytes().await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// Takes a job and starts it: its id and the epoch.
    pub(crate) async fn take(&self, request: &str) -> (String, u64) {
        let (status, grant) = self.post("claim", json!({"factoryId": self.id, "requestId": request})).await;
        assert_eq!(status, 200, "{grant}");
        let (job, epoch) = (grant["job"]["id"].as_str().unwrap(), grant["leaseEpoch"].as_u64().unwrap());
        let start = json!({"leaseEpoch": epoch, "stage": "building"});
        let (status, answer) = self.send(reqwest::Method::PATCH, &format!("jobs/{job}"), start).await;
        assert_eq!(status, 200, "{answer}");
        (job.to_owned(), epoch)
    }

    pub(crate) async fn report(&self, job: &str, epoch: u64) -> Value {
        let report = json!({"leaseEpoch": epoch, "report": {"summary": "greeting fixed", "costUsd": 0.42}});
        let (status, answer) = self.post(&format!("jobs/{job}/report"), report).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    pub(crate) async fn fail(&self, job: &str, epoch: u64, reason: &str) -> Value {
        let failure = json!({"jobId": job, "leaseEpoch": epoch, "reason": reason, "retryable": false});
        let (status, answer) = self.post("fail", failure).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!("---\nname: {name}\nproduct: demo\n{more}---\nSay hello.\n")
}
