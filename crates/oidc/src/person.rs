//! Who the provider says somebody is.

use giga_domain::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::id_token::Claims;
use crate::{Error, Provider};

/// More would not fit a page that lists them.
const MOST_GROUPS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// What the provider calls this person for ever.
    pub subject: String,
    /// What people call this person: it may change, and be another's later.
    pub name: String,
    pub groups: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Tokens {
    #[serde(default)]
    id_token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
}

impl Provider {
    pub(crate) async fn person(
        &self,
        tokens: Tokens,
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Person, Error> {
        let id_token = tokens.id_token.ok_or_else(|| {
            Error::Untrusted("it came without an ID token; the scopes must include openid".to_owned())
        })?;
        let mut claims = self.verify(&id_token, nonce, now).await?;
        if !claims.contains_key(&self.config.groups_claim) {
            self.add_userinfo(&mut claims, tokens.access_token.as_deref()).await?;
        }
        Ok(from_claims(&claims, &self.config.groups_claim))
    }

    /// Many providers put no more into the token than who it is about.
    async fn add_userinfo(&self, claims: &mut Claims, access_token: Option<&str>) -> Result<(), Error> {
        let metadata = self.metadata().await?;
        let (Some(endpoint), Some(token)) = (&metadata.userinfo_endpoint, access_token) else {
            return Ok(());
        };
        let more: Claims = self.get(endpoint, Some(token)).await?;
        if more.get("sub") != claims.get("sub") {
            return Err(Error::Untrusted("its user info is about somebody else".to_owned()));
        }
        for (name, value) in more {
            claims.entry(name).or_insert(value);
        }
        Ok(())
    }
}

fn from_claims(claims: &Claims, groups_claim: &str) -> Person {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let subject = text("sub").unwrap_or_default().to_owned();
    // An address that the provider has not checked is whatever somebody typed.
    let email = text("email").filter(|_| claims.get("email_verified") != Some(&Value::Bool(false)));
    let name = email.or_else(|| text("preferred_username")).unwrap_or(&subject).to_owned();
    let groups = match claims.get(groups_claim) {
        Some(Value::Array(groups)) => {
            groups.iter().filter_map(Value::as_str).take(MOST_GROUPS).map(str::to_owned).collect()
        }
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    };
    Person { subject, name, groups }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_is_called_by_what_the_provider_has_checked() {
        let read = |claims: Value| from_claims(claims.as_object().expect("an object"), "roles");
        let claims =
            json!({"sub": "1", "email": "a@example.com", "preferred_username": "a", "roles": ["x", 7, "y"]});
        let person = read(claims);
        assert_eq!(
            (person.name.as_str(), person.groups),
            ("a@example.com", vec!["x".to_owned(), "y".to_owned()])
        );
        let unchecked =
            json!({"sub": "1", "email": "root@example.com", "email_verified": false, "roles": "x"});
        let person = read(unchecked);
        assert_eq!((person.name.as_str(), person.groups), ("1", vec!["x".to_owned()]));
        assert_eq!(read(json!({"sub": "1", "preferred_username": "a"})).name, "a");
    }
}
