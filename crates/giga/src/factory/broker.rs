//! How a factory gets to its broker. The URL holds a password and is never shown.

use std::fmt;
use std::sync::Arc;

use giga_factory::agent::BrokerConnector;
use giga_ports::{Broker, BrokerError};

use crate::config::mask_url;

struct ByUrl(String);

pub(super) fn door(url: String) -> Arc<dyn BrokerConnector> {
    Arc::new(ByUrl(url))
}

impl fmt::Debug for ByUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByUrl").field(&mask_url(&self.0)).finish()
    }
}

#[async_trait::async_trait]
impl BrokerConnector for ByUrl {
    async fn open(&self) -> Result<Arc<dyn Broker>, BrokerError> {
        giga_broker::open(&self.0).await
    }

    /// The password, or a token in its place.
    fn secret(&self) -> Option<String> {
        let (user, _) = self.0.split_once("://")?.1.rsplit_once('@')?;
        let secret = user.split_once(':').map_or(user, |(_, password)| password);
        (!secret.is_empty()).then(|| secret.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_known_and_not_shown() {
        let secret = |url: &str| ByUrl(url.to_owned()).secret();
        assert_eq!(secret("nats://ana:hunter2@host:4222").as_deref(), Some("hunter2"));
        assert_eq!(secret("tls://s3cr3t@host").as_deref(), Some("s3cr3t"));
        assert_eq!(secret("nats://host:4222"), None);
        let shown = format!("{:?}", ByUrl("nats://ana:hunter2@host".to_owned()));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
