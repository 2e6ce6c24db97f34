//! A real NATS with JetStream for tests: a server of its own for whoever needs one, because streams have fixed names.
//!
//! It starts in a fraction of a second and is never left behind; a missing program fails the test, it does not skip it.

use std::path::{Path, PathBuf};
use std::process::Command;

use parking_lot::Mutex;

use crate::supervisor::Supervisor;

/// A private server. Dropping it ends it and removes its data.
#[derive(Debug)]
pub struct NatsServer {
    supervisor: Mutex<Supervisor>,
    port: u16,
    folder: PathBuf,
}

impl NatsServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further settings on its command line, `["--user", "ana", "--pass", "secret"]` for example.
    pub fn start_with(settings: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(include_str!("supervise.sh")).arg("supervise").arg(program()).args(settings);
        let (mut supervisor, folder) = Supervisor::launch(command);
        let ports = supervisor.order("start -1").unwrap_or_else(|why| panic!("NATS did not start: {why}"));
        Self { supervisor: Mutex::new(supervisor), port: port_in(&ports), folder: folder.into() }
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// As when the machine loses its power: nobody is told anything.
    pub fn kill9(&self) {
        self.order("kill");
    }

    /// On the same port and data, after `kill9`. Returns when it takes connections again.
    pub fn start_again(&self) {
        self.order(&format!("start {}", self.port));
    }

    /// On the same port with an empty disk, after `kill9`.
    pub fn start_empty(&self) {
        self.order("wipe");
        self.start_again();
    }

    /// Reads its settings again, as an operator has it do by SIGHUP. Returns before it has.
    pub fn reload(&self) {
        self.order("reload");
    }

    fn order(&self, order: &str) {
        let answer = self.supervisor.lock().order(order);
        answer.unwrap_or_else(|why| panic!("NATS: `{order}` failed: {why}"));
    }
}

fn port_in(ports: &str) -> u16 {
    let ports: serde_json::Value = serde_json::from_str(ports).unwrap();
    let address = ports["nats"][0].as_str().expect("the server says where it listens");
    address.rsplit(':').next().unwrap().parse().unwrap()
}

/// Where `cargo xtask setup` puts it, or on the PATH. Debian's own is too old for JetStream as it is used here.
fn program() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nats/bin/nats-server");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    std::iter::once(installed)
        .chain(on_path)
        .find(|program| program.exists())
        .expect("there is no nats-server: run `cargo xtask setup`, which installs one")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::TcpStream;

    use super::*;

    /// NATS greets whoever connects.
    async fn answers(server: &str) -> bool {
        let Ok(stream) = TcpStream::connect(server).await else { return false };
        let mut greeting = String::new();
        BufReader::new(stream).read_line(&mut greeting).await.is_ok() && greeting.starts_with("INFO ")
    }

    #[tokio::test]
    async fn a_server_can_die_and_come_back_and_leaves_nothing() {
        let server = NatsServer::start();
        let (address, folder) = (server.address(), server.folder().to_owned());
        assert!(answers(&address).await && folder.exists());
        server.kill9();
        assert!(!answers(&address).await);
        server.start_again();
        assert!(answers(&address).await);
        server.kill9();
        server.start_empty();
        assert!(answers(&address).await);
        drop(server);
        assert!(!answers(&address).await && !folder.exists());
    }

    /// The test runs itself once more as a process of its own, which starts a server and is killed at once.
    #[test]
    fn a_killed_process_leaves_nothing() {
        const VICTIM: &str = "GIGA_TESTKIT_NATS_VICTIM";
        if std::env::var_os(VICTIM).is_some() {
            let server = NatsServer::start();
            println!("folder={}=", server.folder().display());
            let me = std::process::id().to_string();
            Command::new("kill").args(["-9", &me]).status().unwrap();
            unreachable!("it was killed");
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "nats::tests::a_killed_process_leaves_nothing", "--nocapture"]);
        // The supervisor inherits the standard error, so this returns when that has ended too.
        let output = again.env(VICTIM, "yes").output().unwrap();
        assert_eq!(output.status.signal(), Some(9));
        let text = String::from_utf8(output.stdout).unwrap();
        let folder = text.split('=').nth(1).expect("it names the folder");
        assert!(folder.starts_with("/tmp/giga-nats."), "{folder}");
        assert!(!Path::new(folder).exists(), "{folder} was left behind");
    }
}
