//! The authorization code flow with PKCE (RFC 6749, RFC 7636): for browsers.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use giga_domain::Timestamp;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use crate::transport::Answered;
use crate::{Error, Person, Provider};

/// What only the browser that began can show again.
#[derive(Clone)]
pub struct Pkce {
    verifier: String,
}

impl Pkce {
    pub fn from_random(random: [u8; 32]) -> Self {
        Self { verifier: BASE64_URL_SAFE_NO_PAD.encode(random) }
    }

    fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()))
    }
}

impl std::fmt::Debug for Pkce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pkce(…)")
    }
}

/// One attempt to sign in, as it was begun.
#[derive(Debug, Clone, Copy)]
pub struct Authorization<'a> {
    pub redirect_uri: &'a str,
    pub state: &'a str,
    pub nonce: &'a str,
    pub pkce: &'a Pkce,
}

impl Provider {
    /// Where to send the browser.
    pub async fn authorization_url(&self, wanted: Authorization<'_>) -> Result<String, Error> {
        let metadata = self.metadata().await?;
        let mut url = Url::parse(&metadata.authorization_endpoint)
            .map_err(|error| Error::Untrusted(format!("its authorization_endpoint is no URL: {error}")))?;
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.config.client_id),
            ("redirect_uri", wanted.redirect_uri),
            ("scope", &self.config.scopes.join(" ")),
            ("state", wanted.state),
            ("nonce", wanted.nonce),
            ("code_challenge", &wanted.pkce.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.into())
    }

    /// Who came back with this code.
    pub async fn exchange(
        &self,
        code: &str,
        begun: Authorization<'_>,
        now: Timestamp,
    ) -> Result<Person, Error> {
        let metadata = self.metadata().await?;
        let fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", begun.redirect_uri),
            ("code_verifier", &begun.pkce.verifier),
        ];
        match self.post(&metadata.token_endpoint, fields, metadata.takes_basic()).await? {
            Answered::Well(tokens) => self.person(tokens, Some(begun.nonce), now).await,
            Answered::Refused(error) => Err(Error::Refused(error.text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        assert_eq!(Pkce { verifier }.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
