//! Signing in with an OpenID provider: finds it, sends people there, takes their codes back, and judges the ID tokens that
//! it gives for them.
//!
//! It keeps nothing about people, follows no redirect, and takes an ID token from nobody but the provider itself. It knows
//! neither our tokens nor HTTP of ours: who may do what is decided elsewhere.

mod code;
mod device;
mod error;
mod id_token;
mod metadata;
mod person;
mod transport;

pub use code::{Authorization, Pkce};
pub use device::{DeviceCode, DevicePoll};
pub use error::{ConfigError, Error};
pub use person::Person;

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use tokio::sync::Semaphore;

/// Calls to the provider that are under way at once: a provider that hangs costs no more than these.
const CALLS_AT_ONCE: usize = 64;

/// What the provider knows us by.
#[derive(Clone)]
pub struct ClientSecret(pub String);

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(…)")
    }
}

#[derive(Debug, Clone)]
pub struct Config {
    /// As the provider writes it in its tokens, such as `https://login.example.com/realms/acme`.
    pub issuer: String,
    pub client_id: String,
    /// None: a public client, which PKCE alone protects.
    pub client_secret: Option<ClientSecret>,
    pub scopes: Vec<String>,
    /// Where the groups of a person are in its claims.
    pub groups_claim: String,
    /// How long the provider may take for one answer.
    pub timeout: Duration,
    /// It may be reached over plain HTTP on another machine.
    pub allow_plain_http: bool,
}

#[derive(Debug)]
pub struct Provider {
    config: Config,
    http: reqwest::Client,
    calls: Semaphore,
    known: metadata::Known,
}

impl Provider {
    /// Asks nothing of it yet: a provider that is away when a coordinator starts may be there later.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let wrong = |reason| ConfigError { issuer: config.issuer.clone(), reason };
        let issuer = Url::parse(&config.issuer).map_err(|error| wrong(error.to_string()))?;
        let is_plain = issuer.scheme() == "http";
        if !is_plain && issuer.scheme() != "https" {
            return Err(wrong("it must begin with https://".to_owned()));
        }
        if is_plain && !config.allow_plain_http && !is_loopback(&issuer) {
            let reason = "codes and tokens would travel unencrypted to another machine; use https://";
            return Err(wrong(reason.to_owned()));
        }
        if issuer.query().is_some() || issuer.fragment().is_some() || !issuer.username().is_empty() {
            return Err(wrong("it takes neither query, fragment nor user".to_owned()));
        }
        let http = transport::client(config.timeout).map_err(|error| wrong(error.to_string()))?;
        let (calls, known) = (Semaphore::new(CALLS_AT_ONCE), metadata::Known::default());
        Ok(Self { config, http, calls, known })
    }

    pub fn issuer(&self) -> &str {
        &self.config.issuer
    }

    /// For a button: the host says enough.
    pub fn display_name(&self) -> String {
        let host = Url::parse(&self.config.issuer).ok().and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| self.config.issuer.clone())
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(issuer: &str) -> Config {
        Config {
            issuer: issuer.to_owned(),
            client_id: "giga".to_owned(),
            client_secret: Some(ClientSecret("hunter2".to_owned())),
            scopes: vec!["openid".to_owned()],
            groups_claim: "groups".to_owned(),
            timeout: Duration::from_secs(1),
            allow_plain_http: false,
        }
    }

    #[test]
    fn an_issuer_is_reached_by_tls_or_on_this_machine() {
        for right in ["https://login.example.com", "https://a.example/realms/x", "http://127.0.0.1:9"] {
            assert!(Provider::new(config(right)).is_ok(), "{right}");
        }
        let wrong =
            ["", "login.example.com", "http://login.example.com", "ftp://a", "https://a/?x", "https://u@a"];
        for wrong in wrong {
            assert!(Provider::new(config(wrong)).is_err(), "{wrong}");
        }
        assert!(!format!("{:?}", config("https://a")).contains("hunter2"));
    }
}
