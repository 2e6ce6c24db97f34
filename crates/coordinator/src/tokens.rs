//! Who is calling: tokens are looked up by hash and remembered for a moment.

use giga_ports::store::{IssueToken, RevokeToken};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use giga_domain::token::{Permission, Role, TokenHash, TokenRecord, TokenSecret};
use giga_domain::{Actor, ProductId, Timestamp, TokenId};
use tokio::sync::watch;

use crate::strangers::Strangers;
use crate::{Coordinator, Error};

/// How long another coordinator's revocation may go unnoticed here. This one's own takes effect at once.
const REMEMBER: Duration = Duration::from_secs(2);
const MOST: usize = 10_000;

/// Whom a token stands for, as far as a caller is told.
#[derive(Debug)]
pub enum Identified {
    Known(TokenRecord),
    Unknown,
    /// This address has sent so many unknown tokens that the next one is not even looked up.
    TooMany {
        retry_after: Duration,
    },
}

#[derive(Default)]
pub(crate) struct TokenCache {
    known: Mutex<Known>,
    strangers: Strangers,
    /// Raised by every clearing, so that a look-up that began before it cannot bring a revoked token back, and open
    /// streams know when to ask again.
    generation: watch::Sender<u64>,
}

type Known = HashMap<TokenHash, (TokenRecord, Timestamp)>;

impl TokenCache {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    pub(crate) fn clear(&self) {
        let mut known = self.lock();
        known.clear();
        self.strangers.forget_unknown();
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Coordinator {
    /// The live token behind the secret, or nothing.
    pub async fn authenticate(&self, secret: &TokenSecret) -> Result<Option<TokenRecord>, Error> {
        let hash = secret.hash();
        let now = self.core.clock.now();
        let known = self.caches.tokens.lock().get(&hash).filter(|(_, at)| now.since(*at) < REMEMBER).cloned();
        let token = match known {
            Some((token, _)) => Some(token),
            None => self.look_up(hash, now).await?,
        };
        Ok(token.filter(|token| token.is_live(now)))
    }

    /// The same for a call from this address, which may be an address that guesses. A live token is never held up, with
    /// one exception: where its address has been sending unknown ones, a token that was issued in the last moments and
    /// by another coordinator.
    pub async fn identify(&self, secret: &TokenSecret, peer: IpAddr) -> Result<Identified, Error> {
        let (hash, now) = (secret.hash(), self.core.clock.now());
        let tokens = &self.caches.tokens;
        if !tokens.lock().contains_key(&hash) {
            let asked = tokens.strangers.ask(hash, peer, now);
            if let Err(retry_after) = asked
                && !tokens.strangers.is_listed(hash, now, || self.live_hashes(now)).await?
            {
                return Ok(Identified::TooMany { retry_after });
            }
            let found = self.authenticate(secret).await?;
            if found.is_some() && asked.is_ok() {
                tokens.strangers.was_known(peer);
            }
            return Ok(found.map_or(Identified::Unknown, Identified::Known));
        }
        Ok(self.authenticate(secret).await?.map_or(Identified::Unknown, Identified::Known))
    }

    async fn live_hashes(&self, now: Timestamp) -> Result<Vec<TokenHash>, Error> {
        let tokens = self.core.store.read().tokens().await?;
        Ok(tokens.iter().filter(|token| token.is_live(now)).map(|token| token.hash).collect())
    }

    async fn look_up(&self, hash: TokenHash, now: Timestamp) -> Result<Option<TokenRecord>, Error> {
        let strangers = &self.caches.tokens.strangers;
        if strangers.is_unknown(&hash, now) {
            return Ok(None);
        }
        let generation = *self.caches.tokens.generation.borrow();
        let found = self.core.store.read().token_by_hash(&hash).await?;
        if found.is_none() {
            let _known = self.caches.tokens.lock();
            if *self.caches.tokens.generation.borrow() == generation {
                strangers.remember_unknown(hash, now);
            }
        }
        if let Some(token) = &found {
            let mut known = self.caches.tokens.lock();
            if known.len() >= MOST {
                known.clear();
            }
            if *self.caches.tokens.generation.borrow() == generation {
                known.insert(hash, (token.clone(), now));
            }
        }
        Ok(found)
    }

    /// Changes when a token may have come to its end before its time, as far as this process knows.
    pub fn tokens_changed(&self) -> watch::Receiver<u64> {
        self.caches.tokens.generation.subscribe()
    }

    /// How long the token still works unless it is revoked; `None` where nothing else ends it.
    pub fn rest_of(&self, token: &TokenRecord) -> Option<Duration> {
        token.expires_at.map(|end| end.since(self.core.clock.now()))
    }

    pub async fn issue_token(
        &self,
        role: Role,
        products: Vec<ProductId>,
        label: String,
        actor: Actor,
    ) -> Result<(TokenRecord, TokenSecret), Error> {
        let (token, secret) = self.new_token("user", Permission::User { role, products }, label);
        self.core.store.issue_token(IssueToken { token: token.clone(), actor }).await?;
        self.caches.tokens.strangers.forget_unknown();
        Ok((token, secret))
    }

    pub async fn revoke_token(&self, id: TokenId, actor: Actor) -> Result<(), Error> {
        self.core.store.revoke_token(RevokeToken { token: id, actor }).await?;
        self.caches.tokens.clear();
        Ok(())
    }

    /// A first admin token, where there is none yet: `None` when one is there already.
    pub async fn bootstrap_admin(&self) -> Result<Option<TokenSecret>, Error> {
        let now = self.core.clock.now();
        let is_admin = |token: &TokenRecord| {
            token.is_live(now)
                && matches!(&token.permission, Permission::User { role: Role::Admin, products } if products.is_empty())
        };
        if self.core.store.read().tokens().await?.iter().any(is_admin) {
            return Ok(None);
        }
        self.new_admin().await.map(Some)
    }

    /// One more admin token: for a first start, or when the file with the old one is lost.
    pub async fn new_admin(&self) -> Result<TokenSecret, Error> {
        let actor = Actor::system("bootstrap");
        let (_, secret) = self.issue_token(Role::Admin, Vec::new(), "local admin".to_owned(), actor).await?;
        Ok(secret)
    }

    pub(crate) fn new_token(
        &self,
        kind: &str,
        permission: Permission,
        label: String,
    ) -> (TokenRecord, TokenSecret) {
        let secret = TokenSecret::from_random(kind, self.core.random.bytes());
        let hash = secret.hash();
        let id = format!("tok-{}", &hash.to_hex()[..16]);
        let record = TokenRecord {
            id: id.parse().expect("`tok-` and hex digits fit the grammar of token ids"),
            hash,
            permission,
            label,
            created_at: self.core.clock.now(),
            expires_at: None,
            revoked_at: None,
        };
        (record, secret)
    }
}
