//! Signing in with an identity provider: how it is set up, and what a browser carries while it is there.
//!
//! Nothing is remembered here between the way out and the way back: all of it is in a cookie that only a coordinator can have
//! sealed, so any of them can answer. The cookie is no session; it opens nothing, and it is gone when somebody is signed in.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use giga_coordinator::Coordinator;
use giga_domain::Timestamp;
use giga_domain::sign_in::GroupGrant;
use giga_domain::token::Lifetime;
use giga_oidc::{Authorization, Pkce, Provider};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

pub(crate) const LOGIN_PATH: &str = "/auth/login";
pub(crate) const CALLBACK_PATH: &str = "/auth/callback";
const COOKIE_NAME: &str = "giga_sign_in";
/// How long somebody may take to type a password.
const AT_MOST: Duration = Duration::from_mins(10);
const MOST_RETURN_CHARS: usize = 500;

/// Who may sign in, where, and what they get.
#[derive(Debug)]
pub struct SignIn {
    pub provider: Provider,
    pub grants: Vec<GroupGrant>,
    /// Of the tokens that people get.
    pub lifetime: Lifetime,
    /// How browsers reach this coordinator, such as `https://giga.example.com`.
    pub public_url: String,
}

impl SignIn {
    pub(crate) fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK_PATH}", self.public_url.trim_end_matches('/'))
    }
}

/// One attempt to sign in, from the way out to the way back.
#[derive(Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) state: String,
    nonce: String,
    random: String,
    /// The address in the page that is shown afterwards.
    pub(crate) to: String,
    until_ms: i64,
}

impl Attempt {
    pub(crate) fn begin(coordinator: &Coordinator, to: &str) -> Self {
        let fresh = || const_hex::encode(coordinator.nonce());
        let until_ms = coordinator.now().plus(AT_MOST).as_millis();
        Self { state: fresh(), nonce: fresh(), random: fresh() + &fresh(), to: to.to_owned(), until_ms }
    }

    pub(crate) fn pkce(&self) -> Result<Pkce, Problem> {
        let random = const_hex::decode_to_array(&self.random);
        random
            .map(Pkce::from_random)
            .map_err(|_| Problem::internal("a sealed attempt to sign in is malformed"))
    }

    pub(crate) fn authorization<'a>(&'a self, redirect_uri: &'a str, pkce: &'a Pkce) -> Authorization<'a> {
        Authorization { redirect_uri, state: &self.state, nonce: &self.nonce, pkce }
    }

    /// As the browser keeps it. Lax: it comes along when the provider sends the browser back, and with nothing else.
    pub(crate) async fn cookie(&self, coordinator: &Coordinator, is_https: bool) -> Result<String, Problem> {
        let text = serde_json::to_vec(self).map_err(|error| Problem::internal(&error.to_string()))?;
        let text = BASE64_URL_SAFE_NO_PAD.encode(text);
        let seal = coordinator.seal_sign_in(&text).await?;
        Ok(cookie(&format!("{text}.{seal}"), AT_MOST.as_secs(), is_https))
    }

    /// None where there is none, somebody else made it, or its time is over.
    pub(crate) async fn from_cookie(
        coordinator: &Coordinator,
        headers: &HeaderMap,
    ) -> Result<Option<Self>, Problem> {
        let Some((text, seal)) = sent(headers).and_then(|value| value.split_once('.')) else {
            return Ok(None);
        };
        if !coordinator.is_sealed_sign_in(text, seal).await? {
            return Ok(None);
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        let attempt = serde_json::from_slice::<Self>(&bytes).ok();
        Ok(attempt.filter(|attempt| Timestamp::from_millis(attempt.until_ms) > coordinator.now()))
    }

    /// Takes it away from the browser.
    pub(crate) fn no_cookie(is_https: bool) -> String {
        cookie("", 0, is_https)
    }
}

fn cookie(value: &str, seconds: u64, is_https: bool) -> String {
    let secure = if is_https { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={value}; Path=/auth; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn sent(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

/// An address of this page, and no other: whoever can choose where somebody lands after signing in can pretend to be us.
pub(crate) fn return_path(given: Option<&str>) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '#' | '"' | '<' | '>');
    let is_ours = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.starts_with("/auth")
            && !path.starts_with("/api")
            && path.len() <= MOST_RETURN_CHARS
            && path.chars().all(is_plain)
    };
    given.filter(is_ours).unwrap_or("/").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        for ours in ["/", "/jobs?stage=failed", "/jobs/01J/log", "/topics/a.b"] {
            assert_eq!(return_path(Some(ours)), ours);
        }
        let tricks = [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "evil",
            "/a\r\nset-cookie: x",
            "/#token=giga_x",
            "/auth/login",
            "/api/fleet/jobs",
            "/\t/evil.example",
            "",
        ];
        for trick in tricks {
            assert_eq!(return_path(Some(trick)), "/", "{trick:?}");
        }
        assert_eq!(return_path(None), "/");
        assert_eq!(return_path(Some(&format!("/{}", "a".repeat(500)))), "/");
    }
}
