//! What the provider says about itself (OpenID Connect Discovery), remembered for a while.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Error, Provider};

const REMEMBER: Duration = Duration::from_hours(1);

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: String,
    #[serde(default)]
    pub(crate) userinfo_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) device_authorization_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Metadata {
    /// One that is reached without TLS.
    fn plain_endpoint(&self) -> Option<&str> {
        let needed = [&self.authorization_endpoint, &self.token_endpoint, &self.jwks_uri];
        let more = [&self.userinfo_endpoint, &self.device_authorization_endpoint];
        let mut all = needed.into_iter().chain(more.into_iter().flatten());
        all.find(|endpoint| !endpoint.starts_with("https://")).map(String::as_str)
    }

    /// Whether it takes a secret in the header, which is the default of the standard.
    pub(crate) fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    metadata: Mutex<Option<(Arc<Metadata>, Instant)>>,
    keys: Mutex<Option<(Arc<Vec<Jwk>>, Instant)>>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Provider {
    pub(crate) async fn metadata(&self) -> Result<Arc<Metadata>, Error> {
        if let Some(known) = fresh(&self.known.metadata) {
            return Ok(known);
        }
        let base = self.config.issuer.trim_end_matches('/');
        let found: Metadata = self.get(&format!("{base}/.well-known/openid-configuration"), None).await?;
        // Otherwise anybody's document could speak for anybody's tokens.
        if found.issuer != self.config.issuer {
            let (theirs, ours) = (&found.issuer, &self.config.issuer);
            return Err(Error::Untrusted(format!(
                "it calls itself `{theirs}`, and the setting says `{ours}`"
            )));
        }
        // What is reached by TLS does not send us or anybody elsewhere without it.
        if self.config.issuer.starts_with("https://")
            && let Some(plain) = found.plain_endpoint()
        {
            return Err(Error::Untrusted(format!("its endpoint `{plain}` does not begin with https://")));
        }
        Ok(remember(&self.known.metadata, found))
    }

    /// Those that sign now: asked again where one was missing.
    pub(crate) async fn keys(&self, again: bool) -> Result<Arc<Vec<Jwk>>, Error> {
        if !again && let Some(known) = fresh(&self.known.keys) {
            return Ok(known);
        }
        let metadata = self.metadata().await?;
        let set: KeySet = self.get(&metadata.jwks_uri, None).await?;
        // Kinds of keys that nobody here knows are of no use, and no reason to refuse the others.
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect();
        Ok(remember(&self.known.keys, keys))
    }
}

fn fresh<T>(slot: &Mutex<Option<(Arc<T>, Instant)>>) -> Option<Arc<T>> {
    let known = slot.lock();
    known.as_ref().filter(|(_, at)| at.elapsed() < REMEMBER).map(|(value, _)| value.clone())
}

fn remember<T>(slot: &Mutex<Option<(Arc<T>, Instant)>>, value: T) -> Arc<T> {
    let value = Arc::new(value);
    *slot.lock() = Some((value.clone(), Instant::now()));
    value
}
