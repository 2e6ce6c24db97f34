//! A real PostgreSQL for tests: one server per test process, a fresh database per test.
//!
//! The server is never left behind. A small shell process owns it and watches a pipe that only the test process
//! holds: when that process is gone, panicked or killed alike, the shell stops the server and removes its files.

mod server;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub use server::{Durability, PostgresServer};
use tokio_postgres::NoTls;

/// A fresh, empty database on the server that all tests of this process share.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    url: String,
}

impl TestDatabase {
    pub async fn new() -> Self {
        static SERVER: OnceLock<PostgresServer> = OnceLock::new();
        // Starting takes a second or two and may not hold up the tasks of a test that already runs.
        let server = tokio::task::spawn_blocking(|| SERVER.get_or_init(PostgresServer::start)).await.unwrap();
        Self::on(server).await
    }

    pub async fn on(server: &PostgresServer) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed));
        let (client, connection) = tokio_postgres::connect(&server.url("postgres"), NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        Self { url: server.url(&name) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    async fn answers(url: &str) -> bool {
        match tokio_postgres::connect(url, NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                client.simple_query("SELECT 1").await.is_ok()
            }
            Err(_) => false,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn databases_of_one_process_are_apart() {
        let (one, two) = (TestDatabase::new().await, TestDatabase::new().await);
        assert_ne!(one.url(), two.url());
        assert!(answers(one.url()).await && answers(two.url()).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_private_server_can_die_and_come_back_and_leaves_nothing() {
        let server = PostgresServer::start();
        let url = server.url("postgres");
        let folder = server.folder().to_owned();
        assert!(answers(&url).await && folder.exists());
        server.kill9();
        assert!(!answers(&url).await);
        server.start_again();
        assert!(answers(&url).await);
        server.stop();
        assert!(!answers(&url).await);
        server.start_again();
        assert!(answers(&url).await);
        drop(server);
        assert!(!answers(&url).await && !folder.exists());
    }

    /// The test runs itself once more as a process of its own, which starts a server and is killed at once.
    #[test]
    fn a_killed_process_leaves_nothing() {
        const VICTIM: &str = "GIGA_TESTKIT_VICTIM";
        if std::env::var_os(VICTIM).is_some() {
            let server = PostgresServer::start();
            println!("folder={}=", server.folder().display());
            let me = std::process::id().to_string();
            Command::new("kill").args(["-9", &me]).status().unwrap();
            unreachable!("it was killed");
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "postgres::tests::a_killed_process_leaves_nothing", "--nocapture"]);
        // The supervisor inherits the standard error, so this returns when that has ended too.
        let output = again.env(VICTIM, "yes").output().unwrap();
        assert_eq!(output.status.signal(), Some(9));
        let text = String::from_utf8(output.stdout).unwrap();
        let folder = text.split('=').nth(1).expect("it names the folder");
        assert!(folder.starts_with("/tmp/giga-postgres."), "{folder}");
        assert!(!std::path::Path::new(folder).exists(), "{folder} was left behind");
    }
}
