//! The embedded store: one file, one writer connection, a few that only read.
//!
//! All SQL runs on blocking threads and never awaits, so a transaction cannot be left open by a task that went
//! away. `BEGIN IMMEDIATE` comes before the first look: two processes on one file take turns and never decide on
//! what the other is changing.

pub(crate) mod connection;
mod effects;
mod graph;
mod load;
mod persist;
mod pools;
pub(crate) mod readers;
mod registry;
mod secrets;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_domain::Timestamp;
use giga_ports::{Clock, StoreError};
use parking_lot::Mutex;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params_from_iter};

use self::connection::failure;
use self::readers::Readers;
use crate::engine::{Batch, Committed};
use crate::rows::{Cell, Fields, Source, Table};
use crate::sql::{Decode, Driver, Query, SqlBackend};

pub type SqliteBackend = SqlBackend<Sqlite>;

pub struct Sqlite {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    writer: Arc<Mutex<Connection>>,
    readers: Readers,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").finish_non_exhaustive()
    }
}

impl SqlBackend<Sqlite> {
    /// Opens the file, which is created for its owner alone where it is missing, and brings its schema up to date.
    pub async fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let path = path.to_owned();
        blocking(move || {
            let now = clock.now();
            let writer = connection::open_writer(&path, now)?;
            let readers = Readers::new(path.clone());
            let driver = Sqlite { path, clock, writer: Arc::new(Mutex::new(writer)), readers };
            Ok(Self { driver })
        })
        .await
    }
}

/// Runs on a thread that may wait for the disk. A panic there goes on here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down and nobody will ask for the answer.
            Err(_) => std::future::pending().await,
        },
    }
}

impl Driver for Sqlite {
    const LIVE_JOBS: &'static str = "jobs INDEXED BY jobs_live";
    const NAME_CONTAINS: &'static str = "instr(lower(jobs.name), {}) > 0";

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let (path, writer) = (self.path.clone(), self.writer.clone());
        blocking(move || {
            // A file that was deleted under us can still be written to, but nothing written would be found again.
            std::fs::metadata(&path).map_err(|error| StoreError::Unavailable {
                reason: format!("{}: {error}", path.display()),
                source: Some(Box::new(error)),
            })?;
            let mut connection = writer.lock();
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
            transaction.execute("UPDATE feed SET last_pos = last_pos", []).map_err(failure)?;
            transaction.rollback().map_err(failure)
        })
        .await
    }

    async fn query<T: Send + 'static>(&self, query: Query, decode: Decode<T>) -> Result<Vec<T>, StoreError> {
        self.readers.query(query, decode).await
    }

    async fn transact(&self, mut batch: Batch) -> (Batch, Result<Committed, StoreError>) {
        let (writer, clock) = (self.writer.clone(), self.clock.clone());
        blocking(move || {
            let result = run(&writer, &*clock, &mut batch);
            (batch, result)
        })
        .await
    }
}

fn run(writer: &Mutex<Connection>, clock: &dyn Clock, batch: &mut Batch) -> Result<Committed, StoreError> {
    // A transaction that a panic interrupted was rolled back on the way out: the connection is whole.
    let mut connection = writer.lock();
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    let loaded = load::load(&transaction, &batch.needs(), clock.now())?;
    let writes = batch.decide(loaded);
    if writes.is_empty() {
        transaction.rollback().map_err(failure)?;
        return Ok(Committed { head: None });
    }
    let head = persist::persist(&transaction, writes)?;
    transaction.commit().map_err(failure)?;
    Ok(Committed { head })
}

pub(crate) fn read<T>(
    connection: &Connection,
    sql: &str,
    values: Vec<Cell>,
    table: &'static Table,
    decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(failure)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(failure)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failure)? {
        found.push(decode(&mut Fields::new(row, table))?);
    }
    Ok(found)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Source for rusqlite::Row<'_> {
    fn text(&self, column: usize) -> Result<Option<&str>, String> {
        self.get_ref(column)
            .map_err(|error| error.to_string())?
            .as_str_or_null()
            .map_err(|error| error.to_string())
    }

    fn int(&self, column: usize) -> Result<Option<i64>, String> {
        self.get_ref(column)
            .map_err(|error| error.to_string())?
            .as_i64_or_null()
            .map_err(|error| error.to_string())
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, String> {
        self.get_ref(column)
            .map_err(|error| error.to_string())?
            .as_blob_or_null()
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
