//! Connections of the broker's own: never the store's, whose transactions must not wait for a notification.

use std::io::ErrorKind;

use giga_ports::BrokerError;
use giga_postgres::ConnectorError;
use tokio::sync::mpsc;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Notification};

pub(super) struct Connector(giga_postgres::Connector);

impl Connector {
    pub(super) fn new(url: &str) -> Result<Self, BrokerError> {
        let connector =
            giga_postgres::Connector::new(url, "gigafactory-broker").map_err(|error| match error {
                ConnectorError::Url(error) => failure(error),
                ConnectorError::Tls(why) => BrokerError::because(why),
            })?;
        Ok(Self(connector))
    }

    pub(super) async fn connect(
        &self,
    ) -> Result<(Client, mpsc::UnboundedReceiver<Notification>), BrokerError> {
        self.0.connect("SET statement_timeout = '5s'").await.map_err(failure)
    }
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
