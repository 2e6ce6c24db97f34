//! One PostgreSQL server on a free port, and the shell process that owns it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use parking_lot::Mutex;

use crate::supervisor::Supervisor;

/// Whether a commit waits for the disk. `Relaxed` is for tests that measure nothing and survive nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Full,
    Relaxed,
}

/// A private server. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct PostgresServer {
    supervisor: Mutex<Supervisor>,
    port: u16,
    folder: PathBuf,
}

impl PostgresServer {
    pub fn start() -> Self {
        Self::start_with(Durability::Full)
    }

    pub fn start_with(durability: Durability) -> Self {
        let (mut supervisor, folder) = launch(durability);
        // Between finding a free port and using it somebody else may take it.
        let started = (0..5).find_map(|_| {
            let port = free_port();
            supervisor.order(&format!("start {port}")).ok().map(|_| port)
        });
        let port =
            started.unwrap_or_else(|| panic!("PostgreSQL did not start; see {}/log", folder.display()));
        Self { supervisor: Mutex::new(supervisor), port, folder }
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops it in good order: open transactions are rolled back, connections are told.
    pub fn stop(&self) {
        self.order("stop");
    }

    /// As when the machine loses its power: nobody is told anything.
    pub fn kill9(&self) {
        self.order("kill");
    }

    /// On the same port and data, after `stop` or `kill9`. Returns when it takes connections again.
    pub fn start_again(&self) {
        self.order(&format!("start {}", self.port));
    }

    fn order(&self, order: &str) {
        let answer = self.supervisor.lock().order(order);
        answer.unwrap_or_else(|why| panic!("PostgreSQL: `{order}` failed: {why}"));
    }
}

fn launch(durability: Durability) -> (Supervisor, PathBuf) {
    let mut command = shell();
    command.arg("-c").arg(include_str!("supervise.sh")).arg("supervise").arg(programs());
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]);
    if durability == Durability::Relaxed {
        command.args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]);
    }
    let (supervisor, folder) = Supervisor::launch(command);
    (supervisor, folder.into())
}

/// PostgreSQL refuses to run as root, so root hands it to the user that its package made.
fn shell() -> Command {
    let me = Command::new("id").arg("-u").output().unwrap();
    if me.stdout.trim_ascii() == b"0" {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh"]);
        command
    } else {
        Command::new("sh")
    }
}

/// Where `initdb` and `pg_ctl` are. Distributions keep them off the PATH.
fn programs() -> PathBuf {
    let reported = Command::new("pg_config").arg("--bindir").output().ok();
    let reported =
        reported.and_then(|output| String::from_utf8(output.stdout).ok()).map(|text| text.trim().into());
    let mut installed: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    installed.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates =
        reported.into_iter().chain(installed.into_iter().rev()).chain(std::env::split_paths(&path));
    candidates
        .into_iter()
        .find(|folder: &PathBuf| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
        .expect(
            "PostgreSQL's server programs are not installed: run `cargo xtask setup`, which installs them",
        )
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).unwrap().port()
}
