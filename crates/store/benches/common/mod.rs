//! What both benchmarks share: their words, a clock, and how a rate and its transactions are measured.

use std::time::{Duration, Instant};

use giga_domain::Timestamp;
use giga_ports::Clock;

pub(crate) struct Wall;

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_millis(since.unwrap_or_default().as_millis() as i64)
    }
}

/// What follows the name on the command line.
pub(crate) fn word(name: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != name).nth(1)
}

pub(crate) fn number(name: &str, default: usize) -> usize {
    word(name).and_then(|word| word.parse().ok()).unwrap_or(default)
}

pub(crate) fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work);
}

pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("it connects");
    tokio::spawn(connection);
    client
}

/// The rates of several runs, and what the last of them cost in transactions.
#[derive(Default)]
pub(crate) struct Series {
    rates: Vec<f64>,
    database: Option<(f64, i64)>,
}

impl Series {
    /// `watcher` counts the database's transactions, where there is one; `write` makes the store write once more.
    pub(crate) async fn add(
        &mut self,
        jobs: usize,
        watcher: Option<&tokio_postgres::Client>,
        work: impl Future<Output = ()>,
        write: impl Future<Output = ()>,
    ) {
        let before = transactions(watcher).await;
        let start = Instant::now();
        work.await;
        self.rates.push(jobs as f64 / start.elapsed().as_secs_f64());
        if let Some(before) = before {
            // A backend reports its counts at the end of a transaction, at most once a second: one more, a little later,
            // makes the writer report all of its own.
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            write.await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            if let Some(after) = transactions(watcher).await {
                self.database = Some(((after.0 - before.0) as f64 / jobs as f64, after.1 - before.1));
            }
        }
    }

    /// The median with its range.
    pub(crate) fn rates(&mut self) -> String {
        self.rates.sort_by(f64::total_cmp);
        let [least, .., most] = self.rates[..] else { return format!("{:.0}", self.rates[0]) };
        format!("{:.0} ({least:.0} to {most:.0})", self.rates[self.rates.len() / 2])
    }

    /// Transactions per job and rollbacks, as text.
    pub(crate) fn database(&self) -> (String, String) {
        self.database.map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |(per_job, rollbacks)| (format!("{per_job:.4}"), rollbacks.to_string()),
        )
    }
}

/// Commits and rollbacks of the database so far, this look included.
async fn transactions(watcher: Option<&tokio_postgres::Client>) -> Option<(i64, i64)> {
    let sql = "SELECT pg_stat_force_next_flush(), xact_commit, xact_rollback FROM pg_stat_database
               WHERE datname = current_database()";
    let row = watcher?.query_one(sql, &[]).await.ok()?;
    Some((row.get(1), row.get(2)))
}
