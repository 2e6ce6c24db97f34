//! The commands about tokens.

use giga_domain::token::{Permission, TokenRecord};
use giga_domain::{Actor, FactoryId, NewEvent};
use giga_ports::StoreError;
use giga_ports::store::{IssueToken, RenewToken, RevokeFactoryTokens, RevokeToken, RotateToken};

use super::super::{Needs, Op, Working};

/// The record's `created_at` is the store's time, whatever the caller wrote.
pub(super) fn issue(working: &mut Working, token: &TokenRecord, actor: &Actor) {
    let token = TokenRecord { created_at: working.now(), ..token.clone() };
    working.append(None, None, actor.clone(), NewEvent::token_issued(&token));
    working.put_token(token);
}

fn revoke(working: &mut Working, token: &TokenRecord, actor: &Actor) {
    let now = working.now();
    if token.revoked_at.is_none() {
        working.put_token(TokenRecord { revoked_at: Some(now), ..token.clone() });
        working.append(None, None, actor.clone(), NewEvent::token_revoked(token));
    }
}

/// What a factory works with; what it enrols with is another thing.
fn tokens_of(working: &Working, factory: &FactoryId) -> Vec<TokenRecord> {
    let mut tokens = all_of(working, factory);
    tokens.retain(|token| matches!(token.permission, Permission::Factory { .. }));
    tokens
}

fn all_of(working: &Working, factory: &FactoryId) -> Vec<TokenRecord> {
    let mut tokens: Vec<_> = working
        .loaded()
        .tokens
        .values()
        .filter(|t| t.permission.factory() == Some(factory))
        .cloned()
        .collect();
    tokens.sort_by(|a, b| a.id.cmp(&b.id));
    tokens
}

/// Those with which it works, and those with which it could enrol again.
pub(super) fn revoke_all(working: &mut Working, factory: &FactoryId, actor: &Actor) {
    revoke_where(working, factory, actor, |_| true);
}

/// Of a factory that came and went: nobody asks for its tokens again, and there would be more of them every day.
pub(super) fn forget_tokens(working: &mut Working, factory: &FactoryId) {
    for token in all_of(working, factory) {
        working.delete_token(&token.id);
    }
}

pub(super) fn revoke_where(
    working: &mut Working,
    factory: &FactoryId,
    actor: &Actor,
    which: impl Fn(&Permission) -> bool,
) {
    for token in all_of(working, factory).iter().filter(|token| which(&token.permission)) {
        revoke(working, token, actor);
    }
}

impl Op for RotateToken {
    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
        needs.tokens.insert(self.token.id.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        working.factory(&self.factory)?;
        if working.token(&self.token.id).is_ok() {
            return Ok(());
        }
        let ends = working.now().plus(self.grace);
        for old in tokens_of(working, &self.factory) {
            if old.is_live(working.now()) {
                let ends = old.expires_at.map_or(ends, |earlier| earlier.min(ends));
                working.put_token(TokenRecord { expires_at: Some(ends), ..old });
            }
        }
        issue(working, &self.token, &self.actor);
        Ok(())
    }
}

impl Op for RenewToken {
    fn needs(&self, needs: &mut Needs) {
        needs.tokens.insert(self.token.clone());
        needs.tokens_of.extend(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<TokenRecord, StoreError> {
        let token = working.token(&self.token)?.clone();
        let now = working.now();
        let is_newer = |other: &TokenRecord| {
            other.id != token.id && other.created_at >= token.created_at && other.is_live(now)
        };
        let is_replaced =
            self.factory.as_ref().is_some_and(|factory| tokens_of(working, factory).iter().any(is_newer));
        if token.revoked_at.is_some() || is_replaced || token.expires_at == self.expires_at {
            return Ok(token);
        }
        let renewed = TokenRecord { expires_at: self.expires_at, ..token };
        working.append(None, None, self.actor.clone(), NewEvent::token_renewed(&renewed));
        working.put_token(renewed.clone());
        Ok(renewed)
    }
}

impl Op for RevokeFactoryTokens {
    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        working.factory(&self.factory)?;
        revoke_all(working, &self.factory, &self.actor);
        Ok(())
    }
}

impl Op for IssueToken {
    fn needs(&self, needs: &mut Needs) {
        needs.tokens.insert(self.token.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        if working.token(&self.token.id).is_err() {
            issue(working, &self.token, &self.actor);
        }
        Ok(())
    }
}

impl Op for RevokeToken {
    fn needs(&self, needs: &mut Needs) {
        needs.tokens.insert(self.token.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let token = working.token(&self.token)?.clone();
        revoke(working, &token, &self.actor);
        Ok(())
    }
}
