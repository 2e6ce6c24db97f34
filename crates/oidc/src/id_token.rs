//! Is this ID token the provider's, for us, for this attempt, and of now (OpenID Connect Core, 3.1.3.7)?

use giga_domain::Timestamp;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

use crate::{Error, Provider};

/// How far the provider's clock may be from ours.
const LEEWAY_S: i64 = 60;

/// Signatures that need the provider's private key. Neither `none` nor one with a secret is among them: a key that everybody
/// can read must not be taken for a secret.
const SIGNED: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

pub(crate) type Claims = Map<String, Value>;

impl Provider {
    /// What it claims, after everything was checked.
    pub(crate) async fn verify(
        &self,
        token: &str,
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Claims, Error> {
        let untrusted = |reason: &str| Error::Untrusted(format!("its ID token {reason}"));
        let header = decode_header(token).map_err(|_| untrusted("is malformed, or not signed"))?;
        if !SIGNED.contains(&header.alg) {
            return Err(untrusted("is not signed with a private key"));
        }
        let kid = header.kid.as_deref();
        let mut claims = signed_by(token, header.alg, kid, &self.keys(false).await?);
        if claims.is_none() {
            // The provider may have changed its keys since. It gave the token itself, so nobody else can make us ask.
            claims = signed_by(token, header.alg, kid, &self.keys(true).await?);
        }
        let claims = claims.ok_or_else(|| untrusted("has a signature that none of its keys made"))?;
        self.judge(&claims, nonce, now).map_err(|reason| untrusted(&reason))?;
        Ok(claims)
    }

    fn judge(&self, claims: &Claims, nonce: Option<&str>, now: Timestamp) -> Result<(), String> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(&self.config.issuer) {
            return Err("was issued by somebody else".to_owned());
        }
        let ours = self.config.client_id.as_str();
        let (is_for_us, is_for_others) = match claims.get("aud") {
            Some(Value::String(one)) => (one == ours, false),
            Some(Value::Array(all)) => (all.iter().any(|one| one == ours), all.len() > 1),
            _ => (false, false),
        };
        let party = claims.get("azp").map(|party| party == ours);
        if !is_for_us || party == Some(false) || (is_for_others && party.is_none()) {
            return Err(format!("is for another client than `{ours}`"));
        }
        let seconds = |name: &str| claims.get(name).and_then(Value::as_i64);
        let now = now.as_millis() / 1_000;
        match seconds("exp") {
            Some(end) if end > now - LEEWAY_S => {}
            Some(_) => return Err("has expired; is the clock of this machine right?".to_owned()),
            None => return Err("does not say when it expires".to_owned()),
        }
        let starts = ["iat", "nbf"].iter().filter_map(|name| seconds(name)).max();
        if starts.is_some_and(|start| start > now + LEEWAY_S) {
            return Err("is from the future; is the clock of this machine right?".to_owned());
        }
        if let Some(nonce) = nonce
            && text("nonce") != Some(nonce)
        {
            return Err("is of another attempt to sign in".to_owned());
        }
        if text("sub").is_none_or(str::is_empty) {
            return Err("does not say who it is about".to_owned());
        }
        Ok(())
    }
}

fn signed_by(token: &str, algorithm: Algorithm, kid: Option<&str>, keys: &[Jwk]) -> Option<Claims> {
    let mut validation = Validation::new(algorithm);
    // Judged by us, with a clock that we were given.
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    let is_meant = |key: &&Jwk| {
        let named = key.common.key_id.as_deref();
        let signs = !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption));
        signs && (kid.is_none() || named.is_none() || kid == named)
    };
    let keys = keys.iter().filter(is_meant).filter_map(|key| DecodingKey::from_jwk(key).ok());
    let mut decoded = keys.filter_map(|key| decode::<Claims>(token, &key, &validation).ok());
    decoded.next().map(|token| token.claims)
}
