//! A repository to work on, and factories as processes. What is waited for is a line: of a ready process, of a log or
//! of the feed.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::world::{Home, Server, giga};

/// `hello`, a bare repository under `HOME/repos`, so that it is its own origin.
pub(crate) struct Repo(PathBuf);

impl Repo {
    pub(crate) fn hello(home: &Home) -> Self {
        let work = home.path().join("seed");
        std::fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "-q", "-b", "main"]);
        std::fs::write(work.join("greeting.txt"), "helo\n").unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "-m", "a greeting"]);
        let bare = home.path().join("repos/hello.git");
        git(&work, &["init", "-q", "--bare", "-b", "main", bare.to_str().unwrap()]);
        git(&work, &["push", "-q", bare.to_str().unwrap(), "main"]);
        Self(bare)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.0, args)
    }
}

pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A manifest for the shell engine on `hello`, which ships by itself.
pub(crate) fn shell_job(name: &str, script: &str, verify: &str) -> String {
    let script = script.replace('\n', "\n  ");
    format!(
        "---\nname: {name}\nproduct: demo\nrepo: hello\nengine: shell\nscript: |\n  {script}\nverify: ['{verify}']\n\
         ship: auto\n---\nFix the greeting.\n"
    )
}

/// `giga up` with its factories, offering the repositories of the home.
pub(crate) fn up(home: &Home, args: &[&str]) -> Server {
    let mut command = giga(home.path());
    command.args(["up", "--listen", "127.0.0.1:0", "--repos"]).arg(home.path().join("repos")).args(args);
    // Scripts of these tests wait at pipes of the test's own.
    command.arg("--sandbox-write").arg(home.path());
    Server::spawn(command, home.path())
}

/// A process whose stdout is read line by line; killed when dropped.
pub(crate) struct Reader {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Reader {
    pub(crate) fn spawn(home: &Home, args: &[&str]) -> Self {
        let mut command = giga(home.path());
        command.args(args);
        Self::of(home, command)
    }

    /// What it says to people goes to a file.
    pub(crate) fn of(home: &Home, mut command: Command) -> Self {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(home.path().join("talk.log"));
        let mut process = command.stdout(Stdio::piped()).stderr(log.unwrap()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The first line that fits. Fails when the process ends without one.
    #[track_caller]
    pub(crate) fn until(&mut self, fits: impl Fn(&str) -> bool) -> String {
        let mut seen = Vec::new();
        for line in &mut self.lines {
            let line = line.unwrap();
            if fits(&line) {
                return line;
            }
            seen.push(line);
        }
        panic!("it ended without the line that was waited for: {seen:#?}");
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn ended(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A factory of its own, ready to take jobs.
pub(crate) fn factory(home: &Home, id: &str) -> Reader {
    let repos = home.path().join("repos");
    let args = ["factory", "run", "--id", id, "--repos", repos.to_str().unwrap(), "--sandbox-write"];
    let mut process = Reader::spawn(home, &[&args[..], &[home.path().to_str().unwrap()]].concat());
    process.until(|line| line == format!("ready factory {id}"));
    process
}

/// Waits until this has happened to the job, and returns the event.
pub(crate) fn event(home: &Home, job: &str, kind: &str) -> Value {
    let mut feed = Reader::spawn(home, &["events", "-f", "--after", "0", "-o", "jsonl"]);
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let line = feed.until(|line| {
        let event = read(line);
        event["type"] == kind && event["jobId"] == job
    });
    read(&line)
}

pub(crate) fn submit(home: &Home, manifest: &str) -> String {
    home.write("job.md", manifest);
    home.giga(&["job", "submit", "job.md", "-o", "name"]).ok().trim().to_owned()
}

pub(crate) fn job(home: &Home, id: &str) -> Value {
    serde_json::from_str(&home.giga(&["job", "show", id, "-o", "json"]).ok()).unwrap()
}
