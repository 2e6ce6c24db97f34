//! Who is calling: tokens are looked up by hash and remembered for a moment.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use giga_domain::token::{Grant, Role, Secret, TokenHash, TokenRecord};
use giga_domain::{Actor, ProductId, Timestamp, TokenId};

use crate::{Coordinator, Error};

/// How long another coordinator's revocation may go unnoticed here. This one's own takes effect at once.
const REMEMBER: Duration = Duration::from_secs(2);
const MOST: usize = 10_000;

#[derive(Default)]
pub(crate) struct TokenCache(Mutex<HashMap<TokenHash, (TokenRecord, Timestamp)>>);

impl TokenCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<TokenHash, (TokenRecord, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }
}

impl Coordinator {
    /// The live token behind the secret, or nothing.
    pub async fn authenticate(&self, secret: &Secret) -> Result<Option<TokenRecord>, Error> {
        let hash = secret.hash();
        let now = self.clock.now();
        let known = self.tokens.lock().get(&hash).filter(|(_, at)| now.since(*at) < REMEMBER).cloned();
        let token = match known {
            Some((token, _)) => Some(token),
            None => {
                let found = self.store.read().token_by_hash(&hash).await?;
                if let Some(token) = &found {
                    let mut cache = self.tokens.lock();
                    if cache.len() >= MOST {
                        cache.clear();
                    }
                    cache.insert(hash, (token.clone(), now));
                }
                found
            }
        };
        Ok(token.filter(|token| token.is_live(now)))
    }

    pub async fn issue_token(
        &self,
        role: Role,
        products: Vec<ProductId>,
        label: String,
        actor: Actor,
    ) -> Result<(TokenRecord, Secret), Error> {
        let (token, secret) = self.new_token("user", Grant::User { role, products }, label);
        self.store.issue_token(token.clone(), actor).await?;
        Ok((token, secret))
    }

    pub async fn revoke_token(&self, id: TokenId, actor: Actor) -> Result<(), Error> {
        self.store.revoke_token(id, actor).await?;
        self.tokens.clear();
        Ok(())
    }

    /// A first admin token, where there is none yet: `None` when one is there already.
    pub async fn bootstrap_admin(&self) -> Result<Option<Secret>, Error> {
        let now = self.clock.now();
        let is_admin = |token: &TokenRecord| {
            token.is_live(now)
                && matches!(&token.grant, Grant::User { role: Role::Admin, products } if products.is_empty())
        };
        if self.store.read().tokens().await?.iter().any(is_admin) {
            return Ok(None);
        }
        self.new_admin().await.map(Some)
    }

    /// One more admin token: for a first start, or when the file with the old one is lost.
    pub async fn new_admin(&self) -> Result<Secret, Error> {
        let actor = Actor::system("bootstrap");
        let (_, secret) = self.issue_token(Role::Admin, Vec::new(), "local admin".to_owned(), actor).await?;
        Ok(secret)
    }

    pub(crate) fn new_token(&self, kind: &str, grant: Grant, label: String) -> (TokenRecord, Secret) {
        let secret = Secret::from_random(kind, self.random.bytes());
        let hash = secret.hash();
        let id = format!("tok-{}", &hash.to_hex()[..16]);
        let record = TokenRecord {
            id: id.parse().expect("`tok-` and hex digits fit the grammar of token ids"),
            hash,
            grant,
            label,
            created_at: self.clock.now(),
            expires_at: None,
            revoked_at: None,
        };
        (record, secret)
    }
}
