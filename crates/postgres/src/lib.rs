//! Connections to PostgreSQL, for the store and for the broker: each has its own, and both make them in the same way.
//!
//! The URL holds a password, so it is never written anywhere.

mod ssl;

use std::fmt;
use std::future::poll_fn;
use std::str::FromStr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;

use ssl::{Mode, SslSettings};

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
    mode: Mode,
    tls: Option<MakeRustlsConnect>,
}

/// A connection, and what the server notifies of.
type Connected = (Client, mpsc::UnboundedReceiver<Notification>);

impl Connector {
    /// The name is what the server's own lists of connections show, unless the URL has another.
    pub fn new(url: &str, name: &str) -> Result<Self, ConnectorError> {
        let ssl = SslSettings::of(url)?;
        let mut config = Config::from_str(&ssl.url)?;
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
        // There is nobody on the way to a socket in the file system, so there is no TLS either.
        let hosts = config.get_hosts();
        let is_local = !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)));
        let mode = if is_local { Mode::Disable } else { ssl.mode() };
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Allow | Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        let tls = (mode != Mode::Disable).then(|| ssl.tls()).transpose()?;
        Ok(Self { config, mode, tls })
    }

    /// A connection with these settings. What the server notifies of comes out of the receiver, which ends with the
    /// connection.
    pub async fn connect(&self, settings: &str) -> Result<Connected, tokio_postgres::Error> {
        let (client, receiver) = self.open().await?;
        client.batch_execute(settings).await?;
        Ok((client, receiver))
    }

    /// The modes that can do either try the other way where the server refuses the first.
    async fn open(&self) -> Result<Connected, tokio_postgres::Error> {
        let Some(tls) = &self.tls else { return self.open_plain().await };
        match self.mode {
            Mode::Allow => match self.open_plain().await {
                Err(error) if is_refused(&error) => self.open_tls(tls).await,
                opened => opened,
            },
            Mode::Prefer => match self.open_tls(tls).await {
                Err(error) if is_refused(&error) || is_tls(&error) => self.open_plain().await,
                opened => opened,
            },
            _ => self.open_tls(tls).await,
        }
    }

    async fn open_tls(&self, tls: &MakeRustlsConnect) -> Result<Connected, tokio_postgres::Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (client, connection) = self.config.connect(tls.clone()).await?;
        drive(connection, sender);
        Ok((client, receiver))
    }

    async fn open_plain(&self) -> Result<Connected, tokio_postgres::Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut config = self.config.clone();
        let (client, connection) = config.ssl_mode(SslMode::Disable).connect(NoTls).await?;
        drive(connection, sender);
        Ok((client, receiver))
    }
}

/// By a rule of the server about who may come in how.
fn is_refused(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// The handshake failed, and not the way to the server.
fn is_tls(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let wrapped = inner.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if inner.is::<rustls::Error>()
            || wrapped.is_some_and(|error| error.downcast_ref::<rustls::Error>().is_some())
        {
            return true;
        }
        source = inner.source();
    }
    false
}

/// Without the URL's password.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("mode", &self.mode).finish_non_exhaustive()
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
