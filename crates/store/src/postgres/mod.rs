//! The shared store: several coordinators on one PostgreSQL.
//!
//! A write transaction is two round trips: one that locks and looks, one that writes and commits. Rows are locked
//! in the order of [`Needs`](crate::engine::Needs), the feed last and only together with the commit, so no
//! coordinator ever holds the feed while it thinks. Isolation is read committed: what is decided on is locked.

pub(crate) mod connect;
mod effects;
pub(crate) mod error;
mod graph;
mod load;
mod persist;
pub(crate) mod pipeline;
mod pools;
pub(crate) mod readers;
mod registry;
mod secrets;
mod statements;

use std::sync::Arc;

use giga_domain::Timestamp;
use giga_ports::{Clock, StoreError};
use tokio::sync::Mutex;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row};

use self::connect::Connector;
use self::error::failure;
use self::pipeline::Pipeline;
use self::readers::Readers;
use self::statements::Statements;
use crate::engine::{Batch, Committed};
use crate::rows::{self, Cell, Fields, Kind, Source, Table};
use crate::sql::{Decode, Driver, Query, SqlBackend};

pub type PostgresBackend = SqlBackend<Postgres>;

/// Whose clock sets and judges deadlines.
pub enum ClockSource {
    /// The server's, read inside of each transaction: the one clock that all coordinators share.
    Database,
    /// A test's.
    Injected(Arc<dyn Clock>),
}

impl std::fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Database => "Database",
            Self::Injected(_) => "Injected",
        })
    }
}

pub struct Postgres {
    connector: Connector,
    clock: ClockSource,
    /// Taken out while a transaction is under way, so that one which is given up closes its connection.
    writer: Mutex<Option<Writer>>,
    readers: Readers,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

struct Writer {
    client: Client,
    statements: Statements,
}

impl SqlBackend<Postgres> {
    /// Connects, and brings the schema up to date; whoever else starts at the same time waits for it.
    pub async fn open(url: &str, clock: ClockSource) -> Result<Self, StoreError> {
        let connector = Connector::new(url)?;
        let mut client = connector.connect().await?;
        connect::migrate(&mut client).await?;
        let writer = Mutex::new(Some(Writer::on(client).await?));
        Ok(Self { driver: Postgres { connector, clock, writer, readers: Readers::default() } })
    }
}

impl Postgres {
    async fn write(&self, batch: &mut Batch) -> Result<Committed, StoreError> {
        let mut slot = self.writer.lock().await;
        let open = slot.take().filter(|writer| !writer.client.is_closed());
        let writer = match open {
            Some(writer) => writer,
            None => Writer::on(self.connector.connect().await?).await?,
        };
        let result = writer.run(&self.clock, batch).await;
        // Whatever went wrong, the transaction is over before its connection is used again.
        if result.is_ok() || writer.client.batch_execute("ROLLBACK").await.is_ok() {
            *slot = Some(writer);
        }
        result
    }
}

impl Writer {
    async fn on(client: Client) -> Result<Self, StoreError> {
        let statements = Statements::prepare(&client).await?;
        Ok(Self { client, statements })
    }

    /// On an error the transaction may still be open.
    async fn run(&self, clock: &ClockSource, batch: &mut Batch) -> Result<Committed, StoreError> {
        let loaded = load::load(self, clock, &batch.needs()).await?;
        let present = persist::Present::of(&loaded);
        let writes = batch.decide(loaded);
        if writes.is_empty() {
            self.client.batch_execute("COMMIT").await.map_err(failure)?;
            return Ok(Committed { head: None });
        }
        let head = persist::persist(self, &present, writes).await?;
        Ok(Committed { head })
    }

    fn pipeline(&self) -> Pipeline<'_> {
        Pipeline::new(&self.client)
    }
}

impl Driver for Postgres {
    const LIVE_JOBS: &'static str = "jobs";
    const NAME_CONTAINS: &'static str = "strpos(lower(jobs.name COLLATE \"C\"), {}) > 0";

    async fn now(&self) -> Result<Timestamp, StoreError> {
        const NOW: Table = Table { name: "clock", key: 0, columns: &[("now", Kind::Int)] };
        if let ClockSource::Injected(clock) = &self.clock {
            return Ok(clock.now());
        }
        let sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let query = Query { sql: sql.into(), values: Vec::new(), table: &NOW };
        let now = self.query(query, rows::time).await?.pop();
        now.ok_or_else(|| StoreError::broken_because("PostgreSQL did not tell the time"))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        const SETTING: Table = Table { name: "pg_settings", key: 0, columns: &[("setting", Kind::Text)] };
        let sql = "SELECT current_setting('transaction_read_only')";
        let query = Query { sql: sql.into(), values: Vec::new(), table: &SETTING };
        let read_only = self.query(query, |fields| Ok(fields.text()? != "off")).await?;
        if read_only.first() == Some(&false) {
            return Ok(());
        }
        let reason = "PostgreSQL takes no writes now: it is a standby or was set to read-only".to_owned();
        Err(StoreError::Unavailable { reason, source: None })
    }

    async fn query<T: Send + 'static>(&self, query: Query, decode: Decode<T>) -> Result<Vec<T>, StoreError> {
        self.readers.query(&self.connector, query, decode).await
    }

    async fn transact(&self, mut batch: Batch) -> (Batch, Result<Committed, StoreError>) {
        let result = self.write(&mut batch).await;
        (batch, result)
    }
}

pub(crate) fn decode_all<T>(
    rows: &[Row],
    table: &'static Table,
    decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| decode(&mut Fields::new(row, table))).collect()
}

impl tokio_postgres::types::ToSql for Cell {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(tokio_postgres::types::IsNull::Yes),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::TEXT, Type::INT8, Type::BYTEA].contains(kind)
    }

    tokio_postgres::types::to_sql_checked!();
}

impl Source for Row {
    fn text(&self, column: usize) -> Result<Option<&str>, String> {
        get(self, column)
    }

    fn int(&self, column: usize) -> Result<Option<i64>, String> {
        get(self, column)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, String> {
        get(self, column)
    }
}

fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<Option<T>, String> {
    row.try_get(column).map_err(|error| error.to_string())
}
