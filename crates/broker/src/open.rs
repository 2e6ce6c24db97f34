//! From a broker's URL to a running broker. The only place where all of them are named together.

use std::sync::Arc;

use giga_ports::{Broker, BrokerError};

use crate::nats::NatsTuning;
use crate::{Embedded, Nats, NatsKey, Postgres, ServiceBus, ServiceBusAccess};

/// Who this process is at its broker, where the URL does not say it.
#[derive(Debug, Default)]
pub struct Access {
    pub nats: Option<NatsKey>,
    pub service_bus: Option<ServiceBusAccess>,
}

/// `embedded:`, `postgres://…` (also `postgresql://…`), `nats://…`, `tls://…` or `servicebus://…`. Whoever drops the broker ends what was
/// opened on it.
///
/// A server that cannot be reached is no reason to fail: it only carries hints, and it is connected to as soon as it is
/// there. Until then calls fail at once. Fails when the URL is malformed, and when the server is there and refuses.
///
/// The embedded one has no clock here; a composition root that has one uses [`Embedded::with_clock`].
pub async fn open(url: &str) -> Result<Arc<dyn Broker>, BrokerError> {
    open_with(url, Access::default()).await
}

/// The same with what the coordinator proves itself by, in place of credentials in the URL.
pub async fn open_with(url: &str, access: Access) -> Result<Arc<dyn Broker>, BrokerError> {
    match url.split_once(':') {
        Some(("embedded", "")) => Ok(Arc::new(Embedded::new())),
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(Postgres::connect(url).await?)),
        Some(("nats" | "tls", _)) => {
            Ok(Arc::new(Nats::connect_with(url, access.nats, NatsTuning::default()).await?))
        }
        Some(("servicebus", _)) => {
            let access = access
                .service_bus
                .ok_or_else(|| BrokerError::because("Service Bus needs a credential, and none was given"))?;
            Ok(Arc::new(ServiceBus::connect(url, access).await?))
        }
        // The URL is not repeated: what looks wrong here may still hold a password.
        _ => Err(BrokerError::because(
            "the broker's URL is not one of `embedded:`, `postgres://USER@HOST/DATABASE`, \
             `nats://USER:PASSWORD@HOST:PORT` and `servicebus://NAMESPACE.servicebus.windows.net`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_embedded_one_needs_nothing() {
        assert_eq!(open("embedded:").await.unwrap().kind(), "embedded");
    }

    #[tokio::test]
    async fn anything_else_is_refused_without_repeating_it() {
        for url in ["", "hunter2", "redis://ana:hunter2@db", "embedded:hunter2", "postgre://ana:hunter2@db"] {
            let error = open(url).await.err().expect("nobody knows it").to_string();
            assert!(!error.contains("hunter2"), "{error}");
            for known in ["embedded:", "postgres://", "nats://", "servicebus://"] {
                assert!(error.contains(known), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn nobody_at_the_address_is_said_by_each_call_without_the_password() {
        // Port 1 is nobody's.
        for url in ["postgres://ana:hunter2@127.0.0.1:1/giga", "nats://ana:hunter2@127.0.0.1:1"] {
            let broker = open(url).await.expect("it may come yet");
            let error = broker.ping().await.expect_err("nobody is there");
            let all = format!("{error} {error:?}");
            assert!(!all.contains("hunter2"), "{all}");
            assert!(broker.consume(&"f1".parse().unwrap()).await.is_err());
            assert!(broker.hints().await.is_ok(), "they are heard once there are any");
        }
    }
}
