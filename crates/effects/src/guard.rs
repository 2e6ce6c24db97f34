//! What somebody typed as an address, and where it may lead.
//!
//! A name is looked up once per connection, every address that comes back is judged, one bad address refuses them all,
//! and the connection goes to exactly the addresses that were judged. What the operator allows is let through.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::limits;
use ipnet::IpNet;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use crate::address::{meant, network, not_public};

/// Why an address is not reached. The text is for whoever typed it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

fn refused<T>(text: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(text.into()))
}

/// What may be reached although it is not public, and without encryption: blocks of addresses, and names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    networks: Vec<IpNet>,
    hosts: Vec<String>,
}

impl Allowed {
    /// `127.0.0.0/8`, `10.1.2.3`, `hooks.example.internal`.
    pub fn read<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Refused> {
        let mut allowed = Self::default();
        for entry in entries {
            if let Some(network) = network(entry) {
                allowed.networks.push(network);
            } else if is_host_name(entry) {
                allowed.hosts.push(entry.to_ascii_lowercase());
            } else {
                let entry: String = entry.chars().take(80).flat_map(char::escape_default).collect();
                return refused(format!(
                    "`{entry}` is neither a block of addresses such as 10.0.0.0/8 nor a host name"
                ));
            }
        }
        Ok(allowed)
    }

    /// The same, and this host whatever it resolves to.
    #[must_use]
    pub(crate) fn and_host(mut self, host: &str) -> Self {
        match network(host) {
            Some(network) => self.networks.push(network),
            None => self.hosts.push(host.to_ascii_lowercase()),
        }
        self
    }

    fn host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    fn address(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&meant(address)) || network.contains(&address))
    }

    /// `Ok` where the address may be reached; unencrypted only where it is allowed by name or number.
    fn judge(&self, host: &str, address: IpAddr, encrypted: bool) -> Result<(), Refused> {
        if self.host(host) || self.address(address) {
            return Ok(());
        }
        match not_public(address) {
            Some(what) => refused(format!(
                "{host} leads to {address}, which is {what}; such addresses are refused unless the setting \
                 effects-allow of the coordinator lists them"
            )),
            None if !encrypted => refused(format!(
                "{host} is spoken to over https only, unless the setting effects-allow of the coordinator lists it"
            )),
            None => Ok(()),
        }
    }
}

fn is_host_name(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let label = |label: &str| {
        !label.is_empty() && label.len() <= 63 && label.chars().all(legal) && !label.starts_with('-')
    };
    // A last part that begins with a digit would be read as an address by somebody.
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253 && text.split('.').all(label) && last.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// How a name becomes addresses.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    async fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// As the machine does it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Judges addresses by what is allowed.
#[derive(Clone)]
pub(crate) struct Guard {
    allowed: Arc<Allowed>,
    lookup: Arc<dyn Lookup>,
}

pub(crate) enum Found {
    Reachable,
    /// It may become so.
    Unknown(String),
}

impl Guard {
    pub(crate) fn new(allowed: Allowed, lookup: Arc<dyn Lookup>) -> Self {
        Self { allowed: Arc::new(allowed), lookup }
    }

    /// Reads an address that somebody typed. An IP address in it, in whatever spelling, is judged here; a name is judged
    /// when it is looked up.
    pub(crate) fn read(&self, text: &str) -> Result<Url, Refused> {
        if text.chars().count() > limits::URL_CHARS {
            return refused(format!("it may have at most {} characters", limits::URL_CHARS));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return refused("it may have no spaces, backslashes or control characters");
        }
        let url = Url::parse(text).map_err(|error| {
            Refused(format!("it must be a URL such as https://example.com/hooks: {error}"))
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return refused("it must begin with https://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused(
                "it may not have a user or password before the host; messages are signed instead",
            );
        }
        if url.fragment().is_some() {
            return refused("it may not have a fragment (#…): receivers never see it");
        }
        if url.port() == Some(0) {
            return refused("port 0 is no port");
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return refused("it has no host");
        };
        if let Some(address) = literal(host) {
            self.allowed.judge(host, address, is_encrypted(&url))?;
        }
        Ok(url)
    }

    /// Reads it and looks where it leads.
    pub(crate) async fn check(&self, text: &str) -> Result<Found, Refused> {
        let url = self.read(text)?;
        let host = url.host_str().unwrap_or_default();
        if literal(host).is_some() {
            return Ok(Found::Reachable);
        }
        match self.lookup.lookup(host).await {
            Err(error) => Ok(Found::Unknown(format!("{host} cannot be looked up: {error}"))),
            Ok(addresses) => self.judge_all(host, &addresses, is_encrypted(&url)).map(|()| Found::Reachable),
        }
    }

    fn judge_all(&self, host: &str, addresses: &[IpAddr], encrypted: bool) -> Result<(), Refused> {
        if addresses.is_empty() {
            return refused(format!("{host} has no addresses"));
        }
        addresses.iter().try_for_each(|address| self.allowed.judge(host, *address, encrypted))
    }

    /// For the client: where every name goes through on its way to a connection.
    pub(crate) fn resolver(&self, encrypted: bool) -> Arc<Judged> {
        Arc::new(Judged { guard: self.clone(), encrypted })
    }
}

pub(crate) fn is_encrypted(url: &Url) -> bool {
    url.scheme() == "https"
}

/// The URL's parser has turned every spelling of a number into the usual one.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Gives a connection only addresses that were judged, all of them in one look.
pub(crate) struct Judged {
    guard: Guard,
    encrypted: bool,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, encrypted) = (self.guard.clone(), self.encrypted);
        Box::pin(async move {
            let addresses = guard.lookup.lookup(name.as_str()).await?;
            guard.judge_all(name.as_str(), &addresses, encrypted)?;
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    struct Says(Vec<&'static str>);

    #[async_trait]
    impl Lookup for Says {
        async fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
            Ok(self.0.iter().map(|text| text.parse().unwrap()).collect())
        }
    }

    fn guard(allowed: &[&str], says: &[&'static str]) -> Guard {
        Guard::new(Allowed::read(allowed.iter().copied()).unwrap(), Arc::new(Says(says.to_vec())))
    }

    fn reads(allowed: &[&str], url: &str) -> Result<(), String> {
        guard(allowed, &[]).read(url).map(drop).map_err(|error| error.0)
    }

    #[test]
    fn every_spelling_of_a_forbidden_address_is_refused() {
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "0177.0.0.1",
            "0x7F.0x0.0x0.0x1",
            "127.0.0.1.",
            "0",
            "0.0.0.0",
            "00.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:7f00:0001]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[2002:7f00:1::]",
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0251.0376.0251.0376",
            "[::ffff:a9fe:a9fe]",
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "100.64.0.1",
            "１２７.０.０.１",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
            "%31%32%37.0.0.1",
            "255.255.255.255",
            "224.0.0.1",
        ] {
            for scheme in ["https", "http"] {
                let url = format!("{scheme}://{host}/hook");
                assert!(reads(&[], &url).is_err(), "{url} was let through");
                assert!(reads(&[], &format!("{scheme}://{host}:8443/hook")).is_err(), "{url} with a port");
            }
        }
    }

    #[test]
    fn addresses_that_make_no_sense_are_refused_with_the_reason() {
        for (url, reason) in [
            ("ftp://example.com/", "https://"),
            ("file:///etc/passwd", "https://"),
            ("gopher://example.com/", "https://"),
            ("javascript:alert(1)", "https://"),
            ("https://user:pw@example.com/", "user or password"),
            ("https://user@example.com/", "user or password"),
            ("https://:pw@example.com/", "user or password"),
            ("https://example.com/#x", "fragment"),
            ("https://example.com:0/", "port"),
            ("https:// example.com/", "spaces"),
            ("https://exa\nmple.com/", "spaces"),
            ("https://example.com\\@127.0.0.1/", "backslashes"),
            ("https://", "must be a URL"),
            ("//example.com/", "must be a URL"),
            ("example.com", "must be a URL"),
            ("https://[::1", "must be a URL"),
            ("https://999.1.1.1/", "must be a URL"),
            ("https://8.8.8.8.8/", "must be a URL"),
        ] {
            let error = reads(&[], url).expect_err(url);
            assert!(error.contains(reason), "{url}: {error}");
        }
        assert!(reads(&[], &format!("https://example.com/{}", "x".repeat(limits::URL_CHARS))).is_err());
        assert_eq!(reads(&[], "https://example.com/hooks?a=b"), Ok(()));
        assert_eq!(reads(&[], "https://8.8.8.8/"), Ok(()));
    }

    #[test]
    fn http_is_for_what_is_allowed() {
        assert!(reads(&[], "http://8.8.8.8/").expect_err("in the clear").contains("https only"));
        assert_eq!(reads(&["8.8.8.0/24"], "http://8.8.8.8/"), Ok(()));
        assert_eq!(reads(&["127.0.0.0/8"], "http://127.0.0.1:8080/x"), Ok(()));
        assert_eq!(reads(&["127.0.0.0/8"], "http://[::ffff:127.0.0.1]/"), Ok(()), "the same address");
        assert!(reads(&["127.0.0.0/8"], "http://10.0.0.1/").is_err());
        assert!(reads(&["::1"], "http://127.0.0.1/").is_err());
    }

    async fn leads(guard: &Guard, url: &str) -> Result<(), Refused> {
        guard.check(url).await.map(drop)
    }

    #[tokio::test]
    async fn one_bad_address_refuses_the_whole_name() {
        let url = "https://example.com/";
        assert_eq!(leads(&guard(&[], &["8.8.8.8", "2606:4700::1111"]), url).await, Ok(()));
        for bad in ["127.0.0.1", "10.9.9.9", "::1", "::ffff:127.0.0.1", "fe80::1", "169.254.169.254"] {
            assert!(leads(&guard(&[], &["8.8.8.8", bad]), url).await.is_err(), "{bad} at the end");
            assert!(leads(&guard(&[], &[bad, "8.8.8.8"]), url).await.is_err(), "{bad} at the start");
        }
        assert!(leads(&guard(&[], &[]), url).await.is_err(), "nothing is not everything");
        assert!(leads(&guard(&["10.0.0.0/8"], &["10.1.1.1", "192.168.0.1"]), url).await.is_err());
        assert_eq!(leads(&guard(&["example.com"], &["10.1.1.1"]), "http://EXAMPLE.com./").await, Ok(()));
        assert!(leads(&guard(&["example.com"], &["10.1.1.1"]), "http://a.example.com/").await.is_err());
        assert!(
            leads(&guard(&["example.com"], &["10.1.1.1"]), "http://example.com.evil.org/").await.is_err()
        );
    }

    #[tokio::test]
    async fn the_resolver_of_connections_judges_the_same_way() {
        let resolve = async |guard: &Guard, encrypted: bool| {
            let found = guard.resolver(encrypted).resolve("example.com".parse().unwrap()).await;
            found.map(|addresses| addresses.map(|a| a.ip().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(resolve(&guard(&[], &["8.8.8.8"]), true).await.unwrap(), ["8.8.8.8"]);
        assert!(resolve(&guard(&[], &["8.8.8.8"]), false).await.is_err(), "not in the clear");
        assert!(resolve(&guard(&[], &["8.8.8.8", "127.0.0.1"]), true).await.is_err());
        assert!(resolve(&guard(&["127.0.0.1"], &["127.0.0.1"]), false).await.is_ok());
    }

    #[test]
    fn what_is_allowed_is_read_strictly() {
        for bad in
            ["", "*", "https://x", "10.0.0.0/99", "a b", "a/b", "1.2.3", "-x.com", "a..b", "0x7f000001"]
        {
            assert!(Allowed::read([bad]).is_err(), "{bad}");
        }
        assert!(Allowed::read(["hooks.example.com", "localhost", "10.0.0.0/8", "fd00::/8"]).is_ok());
    }

    proptest! {
        /// However an address is spelled as one to four numbers in three bases, it is judged by its value.
        #[test]
        fn no_spelling_slips_through(bits: u32, parts in 1usize..=4, bases in proptest::array::uniform4(0u8..3)) {
            let bytes = bits.to_be_bytes();
            let mut numbers: Vec<u64> = bytes[..parts - 1].iter().map(|b| u64::from(*b)).collect();
            numbers.push(bytes[parts - 1..].iter().fold(0, |value, b| value << 8 | u64::from(*b)));
            let spelled: Vec<String> = numbers.iter().zip(bases).map(|(number, base)| match base {
                0 => number.to_string(),
                1 => format!("{number:#x}"),
                _ => format!("0{number:o}"),
            }).collect();
            let url = format!("https://{}/", spelled.join("."));
            let public = not_public(Ipv4Addr::from_bits(bits).into()).is_none();
            prop_assert_eq!(reads(&[], &url).is_ok(), public, "{}", url);
        }

        #[test]
        fn reading_never_panics(text in "\\PC{0,60}") {
            let _ = guard(&[], &[]).read(&text);
            let _ = guard(&[], &[]).read(&format!("https://{text}"));
        }
    }
}
