//! Connections of the store, and the schema they expect.

use giga_ports::StoreError;
use giga_postgres::ConnectorError;
use tokio_postgres::Client;

use super::error::failure;
use crate::migrations::{self, Applied, FIRST_ADDITION, Migration, POSTGRES};

/// Nothing waits for ever, and a coordinator that is stopped in its tracks does not keep its locks.
const LIMITS: &str = "\
    SET statement_timeout = '10s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET synchronous_commit = on";

/// Every statement of ours goes from a few values to rows by index. The planner is set so, because what it guesses
/// from old statistics, above all about tables that were empty when they were last counted, is what makes a queue
/// slow after a busy minute. No bitmaps: a plain index scan also marks the dead entries that it passes, so that the
/// next one does not pass them.
const PLANNER: &str = "\
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off; SET jit = off";

pub(crate) struct Connector(giga_postgres::Connector);

impl Connector {
    pub(crate) fn new(url: &str) -> Result<Self, StoreError> {
        let connector = giga_postgres::Connector::new(url, "gigafactory").map_err(|error| match error {
            ConnectorError::Url(error) => failure(error),
            ConnectorError::Tls(why) => StoreError::broken_because(why),
        })?;
        Ok(Self(connector))
    }

    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        let (client, _) = self.0.connect(&format!("{LIMITS}; {PLANNER}")).await.map_err(failure)?;
        Ok(client)
    }
}

/// Everybody who starts at the same time waits here for the first; the others find nothing left to do.
pub(crate) async fn migrate(client: &mut Client) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    transaction
        .batch_execute(
            "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'; \
             SELECT pg_advisory_xact_lock(7717, 1)",
        )
        .await
        .map_err(failure)?;
    for (table, more) in [("schema_migrations", ""), ("schema_additions", "readable_from BIGINT NOT NULL, ")]
    {
        // Looked for first: a role that may not create tables can still use those that are there.
        let row =
            transaction.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await.map_err(failure)?;
        if !row.try_get::<_, bool>(0).map_err(failure)? {
            let columns = "version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL";
            let create = format!(
                "CREATE TABLE {table} ({columns}, {more}applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
            );
            transaction.batch_execute(&create).await.map_err(failure)?;
        }
    }
    let rows = transaction.query(migrations::SELECT_APPLIED, &[]).await.map_err(failure)?;
    let applied = rows
        .iter()
        .map(|row| {
            let (version, checksum) = (row.try_get(0)?, row.try_get(1)?);
            Ok(Applied { version, checksum, readable_from: row.try_get(2)? })
        })
        .collect::<Result<Vec<_>, tokio_postgres::Error>>()
        .map_err(failure)?;
    for migration in migrations::pending(POSTGRES, &applied)? {
        let Migration { version, name, sql } = migration;
        transaction.batch_execute(sql).await.map_err(failure)?;
        let (checksum, readable_from) = (migration.checksum(), migration.readable_from());
        let written = if *version < FIRST_ADDITION {
            let insert = "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";
            transaction.execute(insert, &[version, name, &checksum]).await
        } else {
            let insert = "INSERT INTO schema_additions (version, name, checksum, readable_from) VALUES ($1, $2, $3, $4)";
            transaction.execute(insert, &[version, name, &checksum, &readable_from]).await
        };
        written.map_err(failure)?;
    }
    transaction.commit().await.map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_at_the_address_is_passing() {
        // Port 1 is nobody's.
        let connector = Connector::new("postgres://ana:hunter2@127.0.0.1:1/giga").unwrap();
        let error = connector.connect().await.unwrap_err();
        assert!(error.is_transient() && !error.to_string().contains("hunter2"), "{error}");
    }
}
