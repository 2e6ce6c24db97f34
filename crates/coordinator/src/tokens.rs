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
pub(crate) struct TokenCache(Mutex<Known>);

#[derive(Default)]
struct Known {
    tokens: HashMap<TokenHash, (TokenRecord, Timestamp)>,
    /// Raised by every clearing, so that a look-up that began before it cannot bring a revoked token back.
    generation: u64,
}

impl TokenCache {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clear(&self) {
        let mut known = self.lock();
        known.tokens.clear();
        known.generation += 1;
    }
}

impl Coordinator {
    /// The live token behind the secret, or nothing.
    pub async fn authenticate(&self, secret: &Secret) -> Result<Option<TokenRecord>, Error> {
        let hash = secret.hash();
        let now = self.clock.now();
        let known = self.tokens.lock().tokens.get(&hash).filter(|(_, at)| now.since(*at) < REMEMBER).cloned();
        let token = match known {
            Some((token, _)) => Some(token),
            None => self.look_up(hash, now).await?,
        };
        Ok(token.filter(|token| token.is_live(now)))
    }

    async fn look_up(&self, hash: TokenHash, now: Timestamp) -> Result<Option<TokenRecord>, Error> {
        let generation = self.tokens.lock().generation;
        let found = self.store.read().token_by_hash(&hash).await?;
        if let Some(token) = &found {
            let mut known = self.tokens.lock();
            if known.tokens.len() >= MOST {
                known.tokens.clear();
            }
            if known.generation == generation {
                known.tokens.insert(hash, (token.clone(), now));
            }
        }
        Ok(found)
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

    /// Names one call of this process.
    pub(crate) fn new_request(&self) -> giga_domain::RequestId {
        let id = self.random.job_id(self.clock.now()).to_string();
        id.parse().expect("26 letters and digits fit the grammar of request ids")
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
