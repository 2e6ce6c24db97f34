//! Which hosts a job may reach, by name and port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;

/// What is meant where no port is named.
const WEB: [u16; 2] = [80, 443];

/// `example.com`, `*.example.com` for everything below it, each with `:PORT` for another port than the web's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostRule {
    /// In lower case, without the star.
    name: String,
    below: bool,
    port: Option<u16>,
}

impl FromStr for HostRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a host, such as example.com, *.example.com or example.com:8443");
        let text_without_star = text.strip_prefix("*.");
        let (name, port) = split_port(text_without_star.unwrap_or(text)).ok_or_else(wrong)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if name.is_empty() || !name.chars().all(is_name) || name.starts_with('.') {
            return Err(wrong());
        }
        Ok(Self { name, below: text_without_star.is_some(), port })
    }
}

impl TryFrom<String> for HostRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.below { "*." } else { "" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{star}{}{port}", self.name)
    }
}

impl HostRule {
    fn admits(&self, host: &str, port: u16) -> bool {
        let named = if self.below {
            host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.name
        };
        named && self.port.map_or_else(|| WEB.contains(&port), |only| only == port)
    }

    /// Whoever writes an address, or this machine's own name, means just that.
    fn names_an_address(&self) -> bool {
        !self.below && (self.name == "localhost" || self.name.parse::<IpAddr>().is_ok())
    }
}

/// Whether a host may be reached, and where it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Refused,
    /// Anywhere but on this machine or its link: a name of somebody else's could point there.
    Elsewhere,
    Anywhere,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    hosts: Vec<HostRule>,
    coordinator: Option<(String, u16)>,
}

impl Rules {
    pub(crate) fn new(hosts: Vec<HostRule>, coordinator: Option<&str>) -> Self {
        Self { hosts, coordinator: coordinator.and_then(host_of) }
    }

    pub(super) fn judge(&self, host: &str, port: u16) -> Verdict {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if self.coordinator.as_ref().is_some_and(|(name, of)| *name == host && *of == port) {
            return Verdict::Anywhere;
        }
        match self.hosts.iter().find(|rule| rule.admits(&host, port)) {
            None => Verdict::Refused,
            Some(rule) if rule.names_an_address() => Verdict::Anywhere,
            Some(_) => Verdict::Elsewhere,
        }
    }
}

/// On this machine, or where clouds keep the credentials of a machine.
pub(super) fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_near(IpAddr::V4(v4)),
            None => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
        },
    }
}

/// Host and port of an address such as `https://example.com/v1`.
pub(crate) fn host_of(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = split_port(authority)?;
    let usual = if scheme == "https" { 443 } else { 80 };
    Some((name, port.unwrap_or(usual))).filter(|(name, _)| !name.is_empty())
}

/// In lower case; the brackets of an address of version 6 go.
pub(super) fn split_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            (name, port.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map(str::parse).transpose().ok()?;
    Some((name.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(hosts: &[&str]) -> Rules {
        Rules::new(hosts.iter().map(|host| host.parse().unwrap()).collect(), Some("http://127.0.0.1:7717"))
    }

    #[test]
    fn only_what_is_listed_is_reached() {
        let rules = rules(&["example.com", "*.example.org", "db.example.net:5432", "10.1.2.3"]);
        for (host, port, verdict) in [
            ("example.com", 443, Verdict::Elsewhere),
            ("EXAMPLE.com.", 80, Verdict::Elsewhere),
            ("example.com", 22, Verdict::Refused),
            ("www.example.com", 443, Verdict::Refused),
            ("a.b.example.org", 443, Verdict::Elsewhere),
            ("example.org", 443, Verdict::Refused),
            ("evilexample.org", 443, Verdict::Refused),
            (".example.org", 443, Verdict::Refused),
            ("db.example.net", 5432, Verdict::Elsewhere),
            ("db.example.net", 443, Verdict::Refused),
            ("10.1.2.3", 443, Verdict::Anywhere),
            ("127.0.0.1", 7717, Verdict::Anywhere),
            ("127.0.0.1", 7718, Verdict::Refused),
            ("localhost", 7717, Verdict::Refused),
        ] {
            assert_eq!(rules.judge(host, port), verdict, "{host}:{port}");
        }
    }

    #[test]
    fn rules_are_hosts() {
        for good in ["example.com", "*.example.com", "example.com:8443", "10.0.0.1", "localhost:5432"] {
            assert_eq!(good.parse::<HostRule>().unwrap().to_string(), good);
        }
        for bad in ["", "*", "*.", "https://example.com", "a b", "example.com:port", "ex*mple.com", ".com"] {
            assert!(bad.parse::<HostRule>().is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(host_of("https://user@Example.com/v1"), Some(("example.com".to_owned(), 443)));
        assert_eq!(host_of("http://[::1]:7717"), Some(("::1".to_owned(), 7717)));
        assert_eq!(host_of("nonsense"), None);
        for near in ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0"] {
            assert!(is_near(near.parse().unwrap()), "{near}");
        }
        assert!(!is_near("10.0.0.1".parse().unwrap()) && !is_near("93.184.216.34".parse().unwrap()));
    }
}
