//! The database as seen from outside: fresh ones to measure on, its own count of transactions, a snapshot held open.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio_postgres::{Client, Config, NoTls};

/// Where an error comes from.
const POSTGRES: &str = "PostgreSQL";
/// PostgreSQL's backends write their counts at most once a second.
const STATISTICS: Duration = Duration::from_millis(1_200);

/// A server on which databases can be made.
pub(crate) struct Server {
    url: String,
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context(POSTGRES)?;
    tokio::spawn(connection);
    Ok(client)
}

impl Server {
    pub(crate) async fn at(url: &str) -> Result<Self> {
        connect(url).await?;
        Ok(Self { url: url.to_owned() })
    }

    /// Empty, and gone with whoever measured on it.
    pub(crate) async fn fresh(&self) -> Result<Database> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("giga_bench_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&self.url).await?;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.context(POSTGRES)?;
        let config = Config::from_str(&self.url).context(POSTGRES)?;
        let known = config.get_dbname().unwrap_or_default();
        let url = match self.url.rsplit_once('/') {
            Some((server, rest)) if rest.starts_with(known) => {
                format!("{server}/{name}{}", &rest[known.len()..])
            }
            _ => {
                bail!("--store must name a database: postgres://USER@HOST/DB");
            }
        };
        let watcher = connect(&url).await?;
        Ok(Database { url, name, admin, watcher })
    }
}

pub(crate) struct Database {
    pub(crate) url: String,
    name: String,
    admin: Client,
    watcher: Client,
}

/// Since the database was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transactions {
    pub(crate) commits: i64,
    pub(crate) rollbacks: i64,
}

impl Database {
    /// Waits until the count stands still: backends report with a delay, and idle ones not before they are asked again.
    pub(crate) async fn transactions(&self) -> Result<Transactions> {
        let sql = "SELECT pg_stat_force_next_flush(), xact_commit, xact_rollback FROM pg_stat_database
                   WHERE datname = current_database()";
        let mut last = None;
        loop {
            tokio::time::sleep(STATISTICS).await;
            let row = self.watcher.query_one(sql, &[]).await.context(POSTGRES)?;
            let now = Transactions { commits: row.get(1), rollbacks: row.get(2) };
            // Each look is a transaction itself.
            if last.is_some_and(|last| now.commits - last <= 2) {
                return Ok(now);
            }
            last = Some(now.commits);
        }
    }

    /// A session that has looked once and does not let go: nothing that dies from here on can be cleaned up.
    pub(crate) async fn hold_a_snapshot(&self) -> Result<Client> {
        let session = connect(&self.url).await?;
        session
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM schema_migrations")
            .await
            .context(POSTGRES)?;
        Ok(session)
    }

    pub(crate) async fn drop(self) -> Result<()> {
        drop(self.watcher);
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        self.admin.batch_execute(&sql).await.context(POSTGRES)
    }
}
