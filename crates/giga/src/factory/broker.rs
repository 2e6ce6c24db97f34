//! How a factory gets to its broker. The URL holds a password and is never shown.

use std::fmt;
use std::sync::Arc;

use giga_broker::NatsKey;
use giga_domain::FactoryId;
use giga_factory::agent::BrokerConnector;
use giga_ports::BrokerError;
use giga_ports::broker::Offers;

use crate::config::mask_url;

struct ByUrl {
    url: String,
    key: Option<NatsKey>,
}

pub(super) fn connector(url: String, key: Option<NatsKey>) -> Arc<dyn BrokerConnector> {
    Arc::new(ByUrl { url, key })
}

impl fmt::Debug for ByUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByUrl").field("url", &mask_url(&self.url)).field("key", &self.key).finish()
    }
}

#[async_trait::async_trait]
impl BrokerConnector for ByUrl {
    async fn read_offers(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        giga_broker::read_offers(&self.url, self.key.as_ref(), factory).await
    }

    /// The seed of the key, the password, or a token in its place.
    fn secret(&self) -> Option<String> {
        if let Some(key) = &self.key {
            return Some(key.seed().to_owned());
        }
        let (user, _) = self.url.split_once("://")?.1.rsplit_once('@')?;
        let secret = user.split_once(':').map_or(user, |(_, password)| password);
        (!secret.is_empty()).then(|| secret.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_known_and_not_shown() {
        let by = |url: &str, key: Option<NatsKey>| ByUrl { url: url.to_owned(), key };
        let secret = |url: &str| by(url, None).secret();
        assert_eq!(secret("nats://ana:hunter2@host:4222").as_deref(), Some("hunter2"));
        assert_eq!(secret("tls://s3cr3t@host").as_deref(), Some("s3cr3t"));
        assert_eq!(secret("nats://host:4222"), None);
        let shown = format!("{:?}", by("nats://ana:hunter2@host", None));
        assert!(!shown.contains("hunter2"), "{shown}");
        let key = NatsKey::from_random([5; 32]).unwrap();
        let with_key = by("nats://host", Some(key.clone()));
        assert_eq!(with_key.secret().as_deref(), Some(key.seed()));
        assert!(!format!("{with_key:?}").contains(key.seed()));
    }
}
