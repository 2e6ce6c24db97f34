//! People who sign in with an identity provider: what their groups give them becomes an ordinary token with a short life.
//!
//! Who they are was proven elsewhere; nothing here talks to a provider.

use std::net::IpAddr;
use std::time::Duration;

use giga_domain::sign_in::{GroupGrant, permission_of};
use giga_domain::token::{Lifetime, TokenRecord, TokenSecret};
use giga_domain::{Actor, NewEvent, TokenId, limits};
use giga_ports::store::{IssueToken, Note};

use crate::{Coordinator, Error};

/// Somebody whom the provider vouches for.
#[derive(Debug, Clone)]
pub struct Arrival<'a> {
    pub issuer: &'a str,
    /// What the provider calls them for ever.
    pub subject: &'a str,
    /// What people call them.
    pub name: &'a str,
    pub groups: &'a [String],
    /// `page` or `terminal`.
    pub via: &'static str,
}

impl Coordinator {
    /// May this address try to sign somebody in? If not, when again.
    pub fn may_sign_in(&self, peer: IpAddr) -> Result<(), Duration> {
        self.caches.sign_ins.knock(peer, self.core.clock.now())
    }

    /// None where none of their groups gives them anything. Nobody gets a token without an event that says who they are.
    pub async fn sign_in(
        &self,
        arrival: Arrival<'_>,
        grants: &[GroupGrant],
        lifetime: Lifetime,
    ) -> Result<Option<(TokenRecord, TokenSecret)>, Error> {
        let Some(permission) = permission_of(grants, arrival.groups) else { return Ok(None) };
        let printable = arrival.name.chars().filter(|c| !c.is_control());
        let label: String = printable.take(limits::NAME_CHARS).collect();
        let (token, secret) =
            self.new_token(TokenSecret::SIGN_IN, permission, label.trim().to_owned(), lifetime);
        let actor = Actor::Token(token.id.clone());
        self.core.store.issue_token(IssueToken { token: token.clone(), actor: actor.clone() }).await?;
        let event = NewEvent::signed_in(&token, arrival.issuer, arrival.subject, arrival.via);
        self.core.store.note(Note { event, actor }).await?;
        self.caches.tokens.forget_strangers();
        Ok(Some((token, secret)))
    }

    /// Ends the token that somebody got by signing in. Other tokens were given by somebody, who also ends them.
    pub async fn sign_out(&self, secret: &TokenSecret, id: TokenId) -> Result<bool, Error> {
        if secret.is_of_sign_in() {
            self.revoke_token(id.clone(), Actor::Token(id)).await?;
        }
        Ok(secret.is_of_sign_in())
    }

    /// What attempts to sign in go by.
    pub fn now(&self) -> giga_domain::Timestamp {
        self.core.clock.now()
    }
}
