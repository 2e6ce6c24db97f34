//! Connections: how they are made, and the schema they expect.
//!
//! The URL holds a password, so it is never written anywhere.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use giga_ports::StoreError;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::failure;
use crate::migrations::{self, POSTGRES};

const CONNECT: Duration = Duration::from_secs(5);
/// How long a peer that does not answer is believed to be alive.
const SILENCE: Duration = Duration::from_secs(10);

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

pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    pub(crate) fn new(url: &str) -> Result<Self, StoreError> {
        let mut config = Config::from_str(url).map_err(failure)?;
        if config.get_application_name().is_none() {
            config.application_name("gigafactory");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        config.keepalives_idle(SILENCE);
        // Only what was asked for: a preference for TLS that the server's certificate cannot meet would shut out
        // servers that a plain connection reaches.
        let tls = (config.get_ssl_mode() == SslMode::Require).then(verified_tls).transpose()?;
        Ok(Self { config, tls })
    }

    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        let client = if let Some(tls) = &self.tls {
            let (client, connection) = self.config.connect(tls.clone()).await.map_err(failure)?;
            drive(connection);
            client
        } else {
            let (client, connection) = self.config.connect(NoTls).await.map_err(failure)?;
            drive(connection);
            client
        };
        client.batch_execute(&format!("{LIMITS}; {PLANNER}")).await.map_err(failure)?;
        Ok(client)
    }
}

/// The server has to prove itself to the roots that this machine trusts (`SSL_CERT_FILE` names others).
fn verified_tls() -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(StoreError::broken_because(format!(
            "sslmode=require needs the machine's root certificates, and there are none: {}",
            why.join("; ")
        )));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(StoreError::broken)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The driver's half of a connection ends when the client is dropped, or when the connection breaks; whoever
/// waits for an answer then is told by the client.
fn drive<S, T>(connection: tokio_postgres::Connection<S, T>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(%error, "a PostgreSQL connection ended");
        }
    });
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
    // Looked for first: a role that may not create tables can still use those that are there.
    let row = transaction
        .query_one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[])
        .await
        .map_err(failure)?;
    if !row.try_get::<_, bool>(0).map_err(failure)? {
        transaction
            .batch_execute(
                "CREATE TABLE schema_migrations ( \
                     version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, \
                     applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
            )
            .await
            .map_err(failure)?;
    }
    let rows = transaction
        .query("SELECT version, checksum FROM schema_migrations ORDER BY version", &[])
        .await
        .map_err(failure)?;
    let applied = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<Vec<(i64, String)>, tokio_postgres::Error>>()
        .map_err(failure)?;
    for migration in migrations::pending(POSTGRES, &applied)? {
        transaction.batch_execute(migration.sql).await.map_err(failure)?;
        transaction
            .execute(
                "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
                &[&migration.version, &migration.name, &migration.checksum()],
            )
            .await
            .map_err(failure)?;
    }
    transaction.commit().await.map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> StoreError {
        Connector::new(url).err().expect("the URL is malformed")
    }

    #[test]
    fn a_malformed_url_is_refused_without_repeating_it() {
        for url in [
            "postgres://ana:hunter2@db:port/giga",
            "postgres://ana:hunter2@db/giga?sslmode=hunter2",
            "postgres://ana:hunter2@db/giga?sslrootcert=hunter2",
            "postgres://ana:hun%ter2@[db/giga",
        ] {
            let error = refusal(url);
            assert!(!error.is_transient() && !error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[tokio::test]
    async fn nobody_at_the_address_is_passing() {
        // Port 1 is nobody's.
        let connector = Connector::new("postgres://ana:hunter2@127.0.0.1:1/giga").unwrap();
        let error = connector.connect().await.unwrap_err();
        assert!(error.is_transient() && !error.to_string().contains("hunter2"), "{error}");
    }
}
