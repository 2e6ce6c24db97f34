//! Who is told what happens, and how far the feed has been put into the outbox for them.

use giga_domain::{
    Actor, Effect, EffectTarget, EventKind, FeedPos, NewEffect, NewEvent, Webhook, WebhookId, limits,
};
use giga_ports::StoreError;
use giga_ports::store::NewWebhook;

use super::super::{Needs, Op, Working};

/// Never with the secret, and only with so much of the address as is none: what follows the host may be one.
fn event(kind: EventKind, webhook: &Webhook, cause: &str) -> NewEvent {
    NewEvent::new(kind, format!("webhook {} {cause}", webhook.id))
        .with("webhookId", webhook.id.to_string())
        .with("url", origin(&webhook.url))
}

/// Scheme and host.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

pub(in crate::engine) struct AddWebhook {
    pub(in crate::engine) new: NewWebhook,
    pub(in crate::engine) actor: Actor,
}

impl Op for AddWebhook {
    type Reply = Webhook;

    fn needs(&self, needs: &mut Needs) {
        needs.effects.webhooks = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Webhook, StoreError> {
        if let Some(known) = working.effects.webhook(self.new.id) {
            return Ok(known.clone());
        }
        let most = limits::WEBHOOKS_PER_PRODUCT;
        if working.effects.webhooks_of(self.new.product.as_ref()) >= most {
            return Err(StoreError::TooManyWebhooks(most));
        }
        let NewWebhook { id, product, url, kinds, secret } = self.new.clone();
        let since = working.effects.head();
        let webhook = Webhook { id, product, url, kinds, secret, created_at: working.now(), since };
        let event = event(EventKind::WebhookAdded, &webhook, "was added");
        working.append(webhook.product.clone(), None, self.actor.clone(), event);
        working.effects.add_webhook(webhook.clone());
        Ok(webhook)
    }
}

pub(in crate::engine) struct RemoveWebhook {
    pub(in crate::engine) id: WebhookId,
    pub(in crate::engine) actor: Actor,
}

impl Op for RemoveWebhook {
    type Reply = ();

    fn needs(&self, needs: &mut Needs) {
        needs.effects.webhooks = true;
        needs.effects.waiting_for.insert(self.id);
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let Some(webhook) = working.effects.remove_webhook(self.id) else { return Ok(()) };
        let now = working.now();
        let given_up = working.effects.give_up_for(self.id, "the webhook was removed", now);
        let event = event(EventKind::WebhookRemoved, &webhook, "was removed").with("givenUp", given_up);
        working.append(webhook.product, None, self.actor.clone(), event);
        Ok(())
    }
}

pub(in crate::engine) struct FanOut {
    pub(in crate::engine) from: FeedPos,
    pub(in crate::engine) to: FeedPos,
    pub(in crate::engine) effects: Vec<NewEffect>,
}

impl Op for FanOut {
    type Reply = bool;

    fn needs(&self, needs: &mut Needs) {
        needs.effects.webhooks = true;
        needs.effects.ids.extend(self.effects.iter().map(|new| new.id.clone()));
    }

    fn decide(&self, working: &mut Working) -> Result<bool, StoreError> {
        let cursor = working.effects.cursor();
        if cursor != self.from || self.to < self.from {
            // The same call after a lost reply: all of it is there.
            return Ok(cursor == self.to && self.effects.iter().all(|new| is_settled(working, new)));
        }
        let now = working.now();
        for new in &self.effects {
            if !is_settled(working, new) {
                working.effects.insert(Effect::new(new.clone(), now));
            }
        }
        working.effects.move_cursor(self.to);
        Ok(true)
    }
}

/// It is known, or whoever was to be told has gone since the caller looked.
fn is_settled(working: &Working, new: &NewEffect) -> bool {
    let is_gone = match &new.target {
        EffectTarget::Webhook(id) => working.effects.webhook(*id).is_none(),
        EffectTarget::Tracker { .. } => false,
    };
    is_gone || working.effects.get(&new.id).is_ok()
}
