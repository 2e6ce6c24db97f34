//! How a factory gets to its broker. The URL holds a password and is never shown.

use std::fmt;
use std::sync::Arc;

use giga_broker::Access;
use giga_domain::FactoryId;
use giga_factory::agent::BrokerConnector;
use giga_ports::BrokerError;
use giga_ports::broker::Offers;

use crate::config::mask_url;

struct ByUrl {
    url: String,
    access: Access,
}

pub(super) fn connector(url: String, access: Access) -> Arc<dyn BrokerConnector> {
    Arc::new(ByUrl { url, access })
}

impl fmt::Debug for ByUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByUrl").field("url", &mask_url(&self.url)).field("access", &self.access).finish()
    }
}

#[async_trait::async_trait]
impl BrokerConnector for ByUrl {
    async fn read_offers(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError> {
        match &self.access.service_bus {
            Some(access) => giga_broker::read_service_bus_offers(&self.url, access.clone(), factory).await,
            None => giga_broker::read_offers(&self.url, self.access.nats.as_ref(), factory).await,
        }
    }

    /// The seed of the key, the password, a token in its place, or a signature.
    fn secret(&self) -> Option<String> {
        if let Some(access) = &self.access.service_bus {
            return access.credential.secret().map(str::to_owned);
        }
        if let Some(key) = &self.access.nats {
            return Some(key.seed().to_owned());
        }
        let (user, _) = self.url.split_once("://")?.1.rsplit_once('@')?;
        let secret = user.split_once(':').map_or(user, |(_, password)| password);
        (!secret.is_empty()).then(|| secret.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use giga_broker::NatsKey;

    use super::*;

    #[test]
    fn the_secret_is_known_and_not_shown() {
        let by = |url: &str, nats: Option<NatsKey>| {
            let access = Access { nats, ..Access::default() };
            ByUrl { url: url.to_owned(), access }
        };
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
