//! From a URL to where the namespace is and what our entities are called. It never holds credentials.

use giga_domain::FactoryId;
use giga_ports::BrokerError;
use percent_encoding::percent_decode_str;
use sha2::{Digest as _, Sha256};

const FORM: &str = "the Service Bus URL is malformed; it looks like `servicebus://NAMESPACE.servicebus.windows.net` or \
                    `servicebus://NAMESPACE.servicebus.windows.net/TOPIC?coordinator=NAME`";
const TOPIC: &str = "giga";
const TLS_PORT: u16 = 5671;
const PLAIN_PORT: u16 = 5672;
/// What Service Bus allows for the name of a subscription.
const LONGEST_NAME: usize = 50;
/// Of a topic it allows more; ours get a suffix.
const LONGEST_TOPIC: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    /// Plain AMQP and HTTP, which is for a stand-in on this machine only, unless `tls=true`.
    pub(super) plain: bool,
    management_port: Option<u16>,
    topic: String,
    /// What this coordinator's own subscriptions are called, where somebody else makes them.
    pub(super) coordinator: Option<String>,
}

pub(super) fn parse(url: &str) -> Result<Address, BrokerError> {
    let malformed = || BrokerError::because(FORM);
    let rest = url.strip_prefix("servicebus://").ok_or_else(malformed)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, topic) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') || query.to_ascii_lowercase().contains("sharedaccess") {
        // Not repeated: it is a secret.
        return Err(BrokerError::because(
            "the Service Bus URL holds credentials; put the connection string into a file (--servicebus-connection FILE) \
             or into AZURE_SERVICEBUS_CONNECTION_STRING",
        ));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().map_err(|_| malformed())?)),
        None => (authority, None),
    };
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')) {
        return Err(malformed());
    }
    let topic = topic.trim_end_matches('/');
    let topic = if topic.is_empty() { TOPIC } else { topic };
    if topic.len() > LONGEST_TOPIC || !is_name(topic) {
        return Err(malformed());
    }
    let mut address = Address {
        host: host.to_ascii_lowercase(),
        port: TLS_PORT,
        plain: is_loopback(host),
        management_port: None,
        topic: topic.to_owned(),
        coordinator: None,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let value = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        match pair.split_once('=').map(|(name, text)| (name, value(text))) {
            Some(("coordinator", name)) if is_name(&name) && name.len() <= 32 => {
                address.coordinator = Some(name);
            }
            Some(("management", port)) => {
                address.management_port = Some(port.parse().map_err(|_| malformed())?);
            }
            Some(("tls", yes)) if yes == "true" => address.plain = false,
            _ => return Err(malformed()),
        }
    }
    address.port = port.unwrap_or(if address.plain { PLAIN_PORT } else { TLS_PORT });
    Ok(address)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Letters, digits, dots, hyphens and underscores, with a letter or a digit at both ends.
fn is_name(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

impl Address {
    pub(super) fn offers(&self) -> String {
        self.topic.clone()
    }

    pub(super) fn hints(&self) -> String {
        format!("{}-hints", self.topic)
    }

    pub(super) fn dead(&self) -> String {
        format!("{}-dead", self.topic)
    }

    /// Where a factory's offers are read from.
    pub(super) fn mailbox(&self, factory: &FactoryId) -> String {
        subscription(&self.topic, &subscription_name(factory))
    }

    /// What a token is for, and what a signature covers.
    pub(super) fn audience(&self, entity: &str) -> String {
        format!("sb://{}/{entity}", self.host)
    }

    pub(super) fn management(&self, path: &str) -> String {
        if self.plain {
            let port = self.management_port.unwrap_or(self.port);
            return format!("http://{}:{port}/{path}", self.host);
        }
        match self.management_port {
            Some(port) => format!("https://{}:{port}/{path}", self.host),
            None => format!("https://{}/{path}", self.host),
        }
    }
}

pub(super) fn subscription(topic: &str, name: &str) -> String {
    format!("{topic}/Subscriptions/{name}")
}

/// What the subscription of a factory is called. Names mean the same in capitals there and are 50 characters at most, so a
/// factory whose id is not simply a name gets a part of the id's hash.
pub fn subscription_name(factory: &FactoryId) -> String {
    let id = factory.as_str();
    let lower = id.to_ascii_lowercase();
    if lower == id && id.len() <= LONGEST_NAME && is_name(id) {
        return lower;
    }
    let hash = const_hex::encode(&Sha256::digest(id)[..8]);
    let readable: String =
        lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(32).collect();
    format!("{}-{hash}", readable.trim_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_reached_by_tls_and_a_stand_in_is_not() {
        let real = parse("servicebus://Contoso.servicebus.windows.net").unwrap();
        assert_eq!(
            (real.host.as_str(), real.port, real.plain),
            ("contoso.servicebus.windows.net", 5671, false)
        );
        assert_eq!(real.offers(), "giga");
        assert_eq!(real.management("giga"), "https://contoso.servicebus.windows.net/giga");
        let local = parse("servicebus://127.0.0.1:7000/fleet?coordinator=a&management=5300").unwrap();
        assert_eq!((local.port, local.plain, local.coordinator.as_deref()), (7000, true, Some("a")));
        assert_eq!(local.hints(), "fleet-hints");
        assert_eq!(local.management("x"), "http://127.0.0.1:5300/x");
        let encrypted = parse("servicebus://127.0.0.1?tls=true&management=443").unwrap();
        assert_eq!((encrypted.port, encrypted.plain), (5671, false));
        assert_eq!(encrypted.management("x"), "https://127.0.0.1:443/x");
    }

    #[test]
    fn what_is_malformed_or_secret_is_refused_and_not_repeated() {
        for url in [
            "servicebus://",
            "servicebus://root:hunter2@ns.servicebus.windows.net",
            "servicebus://ns/giga?SharedAccessKey=hunter2",
            "servicebus://ns:hunter2",
            "servicebus://ns/a/hunter2",
            "servicebus://ns/?hunter2=1",
            "servicebus://ns/?coordinator=hunter2/x",
        ] {
            let error = parse(url).expect_err(url).to_string();
            assert!(!error.contains("hunter2") && error.contains("Service Bus URL"), "{error}");
        }
    }

    #[test]
    fn different_factories_have_different_subscriptions_whatever_the_case() {
        let long = "a".repeat(60);
        let ids = ["mac-1", "MAC-1", "mac-1.local", "mac-1_local", "mac-1.", &long, "a-"];
        let names: Vec<String> =
            ids.iter().filter_map(|id| id.parse().ok()).map(|id: FactoryId| subscription_name(&id)).collect();
        assert!(names.len() >= 5, "{names:?}");
        let different: std::collections::BTreeSet<String> =
            names.iter().map(|name| name.to_ascii_lowercase()).collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| is_name(name) && name.len() <= LONGEST_NAME), "{names:?}");
        assert_eq!(names[0], "mac-1", "a plain name stays one, for whoever makes entities by hand");
    }
}
