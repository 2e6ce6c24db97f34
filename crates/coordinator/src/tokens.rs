//! Who is calling: tokens are looked up by hash and remembered for a moment.

use giga_ports::store::{IssueToken, RenewToken, RevokeToken};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use giga_domain::token::{Lifetime, Permission, Role, TokenHash, TokenRecord, TokenSecret};
use giga_domain::{Actor, ProductId, Timestamp, TokenId};
use tokio::sync::watch;

use crate::core::Core;
use crate::strangers::Strangers;
use crate::{Coordinator, Error, FieldProblem};

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

    /// A token was issued, which may be one of those that were unknown until now.
    pub(crate) fn forget_strangers(&self) {
        self.strangers.forget_unknown();
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

    /// When a token that was valid came to its end, for whoever still has it and was just refused.
    pub fn ended(&self, secret: &TokenSecret) -> Option<(TokenId, Timestamp)> {
        let known = self.caches.tokens.lock();
        let (token, _) = known.get(&secret.hash())?;
        let now = self.core.clock.now();
        let end = token.expires_at.filter(|end| *end <= now && token.revoked_at.is_none())?;
        Some((token.id.clone(), end))
    }

    pub async fn issue_token(
        &self,
        role: Role,
        products: Vec<ProductId>,
        label: String,
        actor: Actor,
    ) -> Result<(TokenRecord, TokenSecret), Error> {
        self.issue_token_for(Lifetime::USER, role, products, label, actor).await
    }

    pub async fn issue_token_for(
        &self,
        lifetime: Lifetime,
        role: Role,
        products: Vec<ProductId>,
        label: String,
        actor: Actor,
    ) -> Result<(TokenRecord, TokenSecret), Error> {
        let (token, secret) = self.new_token("user", Permission::User { role, products }, label, lifetime);
        self.core.store.issue_token(IssueToken { token: token.clone(), actor }).await?;
        self.caches.tokens.forget_strangers();
        Ok((token, secret))
    }

    /// The token lives on for so long from now, also where its end has come.
    pub async fn renew_token(
        &self,
        token: &TokenRecord,
        lifetime: Lifetime,
        actor: Actor,
    ) -> Result<TokenRecord, Error> {
        let factory = match &token.permission {
            Permission::Factory { factory, .. } => Some(factory.clone()),
            Permission::User { .. } | Permission::Pool { .. } | Permission::Scaler { .. } => None,
        };
        let expires_at = lifetime.ends(self.core.clock.now());
        let id = token.id.clone();
        let renewed =
            self.core.store.renew_token(RenewToken { token: id, factory, expires_at, actor }).await?;
        self.caches.tokens.clear();
        if renewed.revoked_at.is_some() {
            let message = format!("{} was revoked; create another with `giga token create`", renewed.id);
            return Err(FieldProblem::new("id", message).into());
        }
        if renewed.expires_at != expires_at {
            let message = format!("{} was replaced by a newer token of its factory", renewed.id);
            return Err(FieldProblem::new("id", message).into());
        }
        Ok(renewed)
    }

    /// For a bearer that shows it is alive: its token gets a new end when half of its life is over. One that does not end, or
    /// that a newer one has replaced, stays as it is.
    pub async fn keep_alive(&self, secret: &TokenSecret, actor: Actor) -> Result<(), Error> {
        let Some(token) = self.authenticate(secret).await? else { return Ok(()) };
        let Lifetime::For(life) = Lifetime::RENEWED else { return Ok(()) };
        if self.rest_of(&token).is_none_or(|rest| rest > life / 2) {
            return Ok(());
        }
        match self.renew_token(&token, Lifetime::RENEWED, actor).await {
            Err(Error::Invalid(_)) => Ok(()),
            renewed => renewed.map(|_| ()),
        }
    }

    pub async fn revoke_token(&self, id: TokenId, actor: Actor) -> Result<(), Error> {
        self.core.store.revoke_token(RevokeToken { token: id, actor }).await?;
        self.caches.tokens.clear();
        Ok(())
    }

    /// The admin token of one place, such as a data folder: whatever the place had before ends with it, so that a place that
    /// loses its file again and again does not leave an admin behind each time.
    /// Says also whether there was an admin before.
    pub async fn replace_local_admin(&self, place: &str) -> Result<(TokenSecret, bool), Error> {
        let label = format!("local admin of {place}");
        let actor = Actor::system("bootstrap");
        let earlier: Vec<_> = self.core.store.read().tokens().await?;
        let (_, secret) = self
            .issue_token_for(Lifetime::RENEWED, Role::Admin, Vec::new(), label.clone(), actor.clone())
            .await?;
        let mut was_there = false;
        for token in earlier.into_iter().filter(|token| token.revoked_at.is_none() && is_admin(token)) {
            was_there = true;
            if token.label == label {
                self.revoke_token(token.id, actor.clone()).await?;
            }
        }
        Ok((secret, was_there))
    }

    /// Whether this is an admin's token that was not revoked; if so it has half of its life before it when this returns, also
    /// where its end had come: whoever holds the store and the file needs no leave.
    pub async fn revive_local_admin(&self, secret: &TokenSecret) -> Result<bool, Error> {
        let known = self.core.store.read().token_by_hash(&secret.hash()).await?;
        let Some(token) = known.filter(|token| token.revoked_at.is_none() && is_admin(token)) else {
            return Ok(false);
        };
        let actor = Actor::system("bootstrap");
        if token.is_live(self.core.clock.now()) {
            self.keep_alive(secret, actor).await?;
        } else {
            self.renew_token(&token, Lifetime::RENEWED, actor).await?;
        }
        Ok(true)
    }

    /// An admin token of no place in particular.
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
        lifetime: Lifetime,
    ) -> (TokenRecord, TokenSecret) {
        new_token(&self.core, kind, permission, label, lifetime)
    }
}

/// A token that nobody has kept yet.
pub(crate) fn new_token(
    core: &Core,
    kind: &str,
    permission: Permission,
    label: String,
    lifetime: Lifetime,
) -> (TokenRecord, TokenSecret) {
    let secret = TokenSecret::from_random(kind, core.random.bytes());
    let hash = secret.hash();
    let record = TokenRecord {
        id: hash.token_id(),
        hash,
        permission,
        label,
        created_at: core.clock.now(),
        expires_at: lifetime.ends(core.clock.now()),
        revoked_at: None,
    };
    (record, secret)
}

/// Of everything.
fn is_admin(token: &TokenRecord) -> bool {
    matches!(&token.permission, Permission::User { role: Role::Admin, products } if products.is_empty())
}
