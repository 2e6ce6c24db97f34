//! A typed client of the coordinator's API.
//!
//! It never judges what the coordinator judges: ids, manifests and flags are sent as they were given, and the
//! answer decides. It repeats a call by itself only where a repetition cannot do anything twice.

mod artifacts;
mod budgets;
mod conversation;
mod dag;
mod effects;
mod error;
mod factories;
mod fleet;
mod follow;
mod holder;
mod jobs;
mod page;
mod people;
mod pools;
mod products;
mod profiles;
mod raw;
mod secrets;
mod sse;
mod topics;
mod transport;

use std::ops::Deref;
use std::time::Duration;

pub use effects::EffectQuery;
pub use error::ClientError;
pub use follow::{Follow, Signal};
pub use jobs::{Idempotency, JobQuery};
pub use people::AuditQuery;
pub use raw::{RawCall, RawMethod};
use reqwest::Url;
use serde_json::Value;

/// Who asks, and where.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Such as `http://127.0.0.1:7717`.
    pub url: String,
    pub token: Option<String>,
    /// Sent as `x-product-id`.
    pub product: Option<String>,
    /// Sent as `user-agent`.
    pub agent: String,
    pub trust: Trust,
}

/// What the way to a coordinator must be like before a token is sent along it. `https://` is always good, if the
/// coordinator proves itself; plain HTTP only on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Send tokens over plain HTTP to other machines too.
    pub allow_plain_http: bool,
    /// The only certificates that can vouch for the coordinator, as PEM; without them, those of the system.
    pub ca_cert: Option<Vec<u8>>,
}

impl Trust {
    /// Whether a token may go there.
    pub fn check(&self, url: &str) -> Result<(), ClientError> {
        let plain = Url::parse(url).is_ok_and(|url| url.scheme() == "http");
        if plain && !self.allow_plain_http && !is_loopback(url) {
            return Err(ClientError::PlainHttp { url: url.to_owned() });
        }
        Ok(())
    }
}

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<String>,
    product: Option<String>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the token.
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// An answer as a value, and the JSON it was read from: what is shown to programs is what the coordinator answered,
/// also where it contains more than this client knows of.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    pub value: T,
    pub json: Value,
    pub status: u16,
}

impl<T> Deref for Answer<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl Client {
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let bad = |reason: String| ClientError::BadUrl { url: options.url.clone(), reason };
        let base = Url::parse(&options.url).map_err(|error| bad(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(bad("it must begin with http:// or https:// and name a host".to_owned()));
        }
        if options.token.is_some() {
            options.trust.check(&options.url)?;
        }
        let mut http = reqwest::Client::builder();
        if let Some(pem) = &options.trust.ca_cert {
            let roots = reqwest::Certificate::from_pem_bundle(pem).ok().filter(|roots| !roots.is_empty());
            http = http.tls_certs_only(roots.ok_or(ClientError::CaCert)?);
        }
        let http = http
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(options.agent)
            // A redirect would carry the token to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|source| ClientError::unreachable(&base, source))?;
        Ok(Self { http, base, token: options.token, product: options.product })
    }

    /// The same client, asking about another product.
    #[must_use]
    pub fn for_product(&self, product: &str) -> Self {
        Self { product: Some(product.to_owned()), ..self.clone() }
    }

    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }
}

/// Scheme, host and port of an address, as the client itself understands addresses.
pub fn origin(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// Whether the address is on this machine, as the client itself understands addresses.
pub fn is_loopback(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
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

    #[test]
    fn only_this_machine_is_this_machine() {
        for local in ["http://localhost:1", "http://127.0.0.1", "https://[::1]:80/x", "http://a@127.0.0.9:1"]
        {
            assert!(is_loopback(local), "{local}");
        }
        let tricks = [
            "http://localhost.evil.com",
            "http://127.0.0.1@evil.com",
            "http://evil.com\\@127.0.0.1",
            "127.0.0.1",
            "http://[::2]",
        ];
        for remote in tricks {
            assert!(!is_loopback(remote), "{remote}");
        }
    }

    #[test]
    fn a_token_goes_over_plain_http_only_on_this_machine() {
        let client = |url: &str, token: Option<&str>, allow_plain_http| {
            let trust = Trust { allow_plain_http, ca_cert: None };
            let token = token.map(str::to_owned);
            Client::new(ClientOptions { url: url.to_owned(), token, trust, ..ClientOptions::default() })
        };
        for url in ["http://127.0.0.1:1", "http://localhost", "http://[::1]:1", "https://example.com"] {
            assert!(client(url, Some("t"), false).is_ok(), "{url}");
        }
        for url in ["http://example.com", "http://0.0.0.0:1", "http://localhost.example.com"] {
            let refused = client(url, Some("t"), false);
            assert!(matches!(refused, Err(ClientError::PlainHttp { .. })), "{url}");
            assert!(client(url, None, false).is_ok(), "nothing to lose: {url}");
            assert!(client(url, Some("t"), true).is_ok(), "told to: {url}");
        }
    }

    #[test]
    fn an_address_must_be_one() {
        let client =
            |url: &str| Client::new(ClientOptions { url: url.to_owned(), ..ClientOptions::default() });
        assert!(client("http://127.0.0.1:7717").is_ok());
        for wrong in ["", "127.0.0.1:7717", "localhost:7717", "ftp://x", "unix:/x"] {
            assert!(matches!(client(wrong), Err(ClientError::BadUrl { .. })), "{wrong}");
        }
    }
}
