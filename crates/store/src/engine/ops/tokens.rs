//! The commands about tokens and flags.

use std::time::Duration;

use giga_domain::token::{Grant, TokenRecord};
use giga_domain::{Actor, EventKind, FactoryId, NewEvent, TokenId};
use giga_ports::StoreError;
use serde_json::Value;

use super::super::{Needs, Op, Working};

fn event(kind: EventKind, token: &TokenRecord, cause: String) -> NewEvent {
    let event =
        NewEvent::new(kind, cause).with("tokenId", token.id.as_str()).with("label", token.label.as_str());
    match &token.grant {
        Grant::Factory { factory, .. } => event.with("factoryId", factory.as_str()),
        Grant::User { role, .. } => event.with("role", role.as_str()),
    }
}

/// The record's `created_at` is the store's time, whatever the caller wrote.
pub(super) fn issue(working: &mut Working, token: &TokenRecord, actor: &Actor) {
    let token = TokenRecord { created_at: working.now(), ..token.clone() };
    working.append(
        None,
        None,
        actor.clone(),
        event(EventKind::TokenIssued, &token, format!("token {} issued", token.id)),
    );
    working.put_token(token);
}

fn revoke(working: &mut Working, token: &TokenRecord, actor: &Actor) {
    let now = working.now();
    if token.revoked_at.is_none() {
        working.put_token(TokenRecord { revoked_at: Some(now), ..token.clone() });
        let event = event(EventKind::TokenRevoked, token, format!("token {} revoked", token.id));
        working.append(None, None, actor.clone(), event);
    }
}

fn tokens_of(working: &Working, factory: &FactoryId) -> Vec<TokenRecord> {
    let of = |grant: &Grant| matches!(grant, Grant::Factory { factory: id, .. } if id == factory);
    let mut tokens: Vec<_> = working.loaded().tokens.values().filter(|t| of(&t.grant)).cloned().collect();
    tokens.sort_by(|a, b| a.id.cmp(&b.id));
    tokens
}

pub(super) fn revoke_all(working: &mut Working, factory: &FactoryId, actor: &Actor) {
    for token in tokens_of(working, factory) {
        revoke(working, &token, actor);
    }
}

pub(in crate::engine) struct RotateToken {
    pub(in crate::engine) factory: FactoryId,
    pub(in crate::engine) token: TokenRecord,
    pub(in crate::engine) grace: Duration,
    pub(in crate::engine) actor: Actor,
}

impl Op for RotateToken {
    type Reply = ();

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

pub(in crate::engine) struct RevokeFactoryTokens {
    pub(in crate::engine) factory: FactoryId,
    pub(in crate::engine) actor: Actor,
}

impl Op for RevokeFactoryTokens {
    type Reply = ();

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

pub(in crate::engine) struct IssueToken {
    pub(in crate::engine) token: TokenRecord,
    pub(in crate::engine) actor: Actor,
}

impl Op for IssueToken {
    type Reply = ();

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

pub(in crate::engine) struct RevokeToken {
    pub(in crate::engine) token: TokenId,
    pub(in crate::engine) actor: Actor,
}

impl Op for RevokeToken {
    type Reply = ();

    fn needs(&self, needs: &mut Needs) {
        needs.tokens.insert(self.token.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let token = working.token(&self.token)?.clone();
        revoke(working, &token, &self.actor);
        Ok(())
    }
}

pub(in crate::engine) struct SetFlag {
    pub(in crate::engine) name: String,
    pub(in crate::engine) value: Value,
    pub(in crate::engine) actor: Actor,
}

impl Op for SetFlag {
    type Reply = ();

    fn needs(&self, needs: &mut Needs) {
        needs.flags.insert(self.name.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let SetFlag { name, value, actor } = self;
        let before = working.flag(name).cloned().unwrap_or(Value::Null);
        if before == *value {
            return Ok(());
        }
        let cause = if value.is_null() {
            working.delete_flag(name);
            format!("flag {name} unset")
        } else {
            working.put_flag(name, value.clone());
            format!("flag {name} set to {value}")
        };
        let event = NewEvent::new(EventKind::FlagChanged, cause)
            .with("name", name.as_str())
            .with("from", before)
            .with("to", value.clone());
        working.append(None, None, actor.clone(), event);
        Ok(())
    }
}
