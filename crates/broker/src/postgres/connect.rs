//! Connections of the broker's own: never the store's, whose transactions must not wait for a notification.
//!
//! The URL holds a password, so it is never written anywhere.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use giga_ports::BrokerError;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT: Duration = Duration::from_secs(5);
/// How long a peer that does not answer is believed to be alive.
const SILENCE: Duration = Duration::from_secs(10);

pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    pub(super) fn new(url: &str) -> Result<Self, BrokerError> {
        let mut config = Config::from_str(url).map_err(failure)?;
        if config.get_application_name().is_none() {
            config.application_name("gigafactory-broker");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        config.keepalives_idle(SILENCE);
        // As the store does: only what was asked for.
        let tls = (config.get_ssl_mode() == SslMode::Require).then(verified_tls).transpose()?;
        Ok(Self { config, tls })
    }

    /// What the server notifies of comes out of the receiver, which ends with the connection.
    pub(super) async fn connect(
        &self,
    ) -> Result<(Client, mpsc::UnboundedReceiver<Notification>), BrokerError> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let client = if let Some(tls) = &self.tls {
            let (client, connection) = self.config.connect(tls.clone()).await.map_err(failure)?;
            drive(connection, sender);
            client
        } else {
            let (client, connection) = self.config.connect(NoTls).await.map_err(failure)?;
            drive(connection, sender);
            client
        };
        client.batch_execute("SET statement_timeout = '5s'").await.map_err(failure)?;
        Ok((client, receiver))
    }
}

/// The driver's half of a connection; it ends when the client is dropped or the connection breaks.
fn drive<S, T>(mut connection: Connection<S, T>, notifications: mpsc::UnboundedSender<Notification>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(notification)) => {
                    // Nobody listens on the publishing connection.
                    let _ = notifications.send(notification);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a PostgreSQL connection of the broker ended");
                    return;
                }
            }
        }
    });
}

/// The server has to prove itself to the roots that this machine trusts (`SSL_CERT_FILE` names others).
fn verified_tls() -> Result<MakeRustlsConnect, BrokerError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(BrokerError::because(format!(
            "sslmode=require needs the machine's root certificates, and there are none: {}",
            why.join("; ")
        )));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(BrokerError::from_source)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The driver's own text says little; its sources have the message of the server or the socket.
pub(super) fn failure(error: tokio_postgres::Error) -> BrokerError {
    let reason = match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    BrokerError { reason, source: Some(Box::new(error)) }
}

/// Nobody is there, or somebody who cannot take us now. Anything else is an answer that waiting does not change: another
/// password, another database, a certificate that is not trusted.
pub(super) fn is_passing(error: &BrokerError) -> bool {
    let Some(source) = error.source.as_deref() else { return false };
    if let Some(error) = source.downcast_ref::<tokio_postgres::Error>() {
        return match error.code() {
            Some(code) => {
                let later = [
                    SqlState::CANNOT_CONNECT_NOW,
                    SqlState::TOO_MANY_CONNECTIONS,
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                ];
                later.contains(code)
            }
            None => error.is_closed() || std::error::Error::source(error).is_some_and(is_broken_off),
        };
    }
    is_broken_off(source)
}

fn is_broken_off(error: &(dyn std::error::Error + 'static)) -> bool {
    // What TLS objects to comes as invalid data.
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() != ErrorKind::InvalidData)
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
        ] {
            let error = Connector::new(url).err().expect("the URL is malformed");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
