//! Connections to PostgreSQL, for the store and for the broker: each has its own, and both make them in the same way.
//!
//! The URL holds a password, so it is never written anywhere.

use std::fmt;
use std::future::poll_fn;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT: Duration = Duration::from_secs(5);
/// How long a peer that does not answer is believed to be alive.
const SILENCE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    #[error(transparent)]
    Url(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Tls(String),
}

pub struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// The name is what the server's own lists of connections show, unless the URL has another.
    pub fn new(url: &str, name: &str) -> Result<Self, ConnectorError> {
        let mut config = Config::from_str(url)?;
        if config.get_application_name().is_none() {
            config.application_name(name);
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

    /// A connection with these settings. What the server notifies of comes out of the receiver, which ends with the
    /// connection.
    pub async fn connect(
        &self,
        settings: &str,
    ) -> Result<(Client, mpsc::UnboundedReceiver<Notification>), tokio_postgres::Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let client = if let Some(tls) = &self.tls {
            let (client, connection) = self.config.connect(tls.clone()).await?;
            drive(connection, sender);
            client
        } else {
            let (client, connection) = self.config.connect(NoTls).await?;
            drive(connection, sender);
            client
        };
        client.batch_execute(settings).await?;
        Ok((client, receiver))
    }
}

/// Without the URL's password.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

/// The driver's half of a connection ends when the client is dropped, or when the connection breaks; whoever waits for an
/// answer then learns it from the client.
fn drive<S, T>(mut connection: Connection<S, T>, notifications: mpsc::UnboundedSender<Notification>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(notification)) => {
                    // Most connections have nobody who listens.
                    let _ = notifications.send(notification);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a PostgreSQL connection ended");
                    return;
                }
            }
        }
    });
}

/// The server has to prove itself to the roots that this machine trusts (`SSL_CERT_FILE` names others).
fn verified_tls() -> Result<MakeRustlsConnect, ConnectorError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(ConnectorError::Tls(format!(
            "sslmode=require needs the machine's root certificates, and there are none: {}",
            why.join("; ")
        )));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectorError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_url_is_refused_without_repeating_it() {
        for url in [
            "postgres://ana:hunter2@db:port/giga",
            "postgres://ana:hunter2@db/giga?sslmode=hunter2",
            "postgres://ana:hunter2@db/giga?sslrootcert=hunter2",
            "postgres://ana:hun%ter2@[db/giga",
        ] {
            let error = Connector::new(url, "test").unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
        let right = Connector::new("postgres://ana:hunter2@db/giga", "test").unwrap();
        assert!(!format!("{right:?}").contains("hunter2"), "{right:?}");
    }
}
