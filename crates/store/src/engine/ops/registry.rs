//! The commands about products, profiles, webhooks and flags, and the keys that coordinators share.

use giga_domain::{NewEvent, Product, Profile, Rev, Webhook, limits};
use giga_ports::StoreError;
use giga_ports::store::{
    AddProfile, AddWebhook, KeyRing, RemoveWebhook, RotateKey, SetFlag, SetProduct, ShareKey,
};
use serde_json::Value;

use super::super::registry::SharedKey;
use super::super::{Needs, Op, Working};

impl Op for SetProduct {
    fn needs(&self, needs: &mut Needs) {
        needs.registry.products = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Product, StoreError> {
        let Self { product: id, settings, if_rev, actor } = self;
        let known = working.registry.product(id);
        let rev = known.map_or(Rev::ZERO, |known| known.rev);
        // Also the same command again, which has moved the revision itself.
        let is_current = |given: Rev| given == rev || given.next() == rev;
        if let Some(known) =
            known.filter(|known| known.settings == *settings && if_rev.is_none_or(is_current))
        {
            return Ok(known.clone());
        }
        if let Some(given) = if_rev.filter(|given| *given != rev) {
            return Err(StoreError::RevMismatch { given, current: rev });
        }
        if let Some((repo, owner)) = working.registry.owned_elsewhere(id, &settings.repos) {
            return Err(StoreError::RepoOwned { repo, owner });
        }
        let product = Product { id: id.clone(), settings: settings.clone(), rev: rev.next() };
        working.append(Some(id.clone()), None, actor.clone(), NewEvent::product_changed(id));
        working.registry.put_product(product.clone());
        Ok(product)
    }
}

/// There is no other command about profiles: a version is never changed and never removed.
impl Op for AddProfile {
    fn needs(&self, needs: &mut Needs) {
        needs.registry.profiles.insert((self.product.clone(), self.name.clone()));
    }

    fn decide(&self, working: &mut Working) -> Result<Profile, StoreError> {
        let Self { product, name, content, actor } = self;
        let newest = working.registry.newest_profile(product, name);
        if let Some(newest) = newest.filter(|newest| newest.content == *content) {
            return Ok(newest.clone());
        }
        let profile = Profile {
            product: product.clone(),
            name: name.clone(),
            version: newest.map_or(0, |newest| newest.version) + 1,
            content: content.clone(),
            created_at: working.now(),
            created_by: actor.clone(),
        };
        working.append(Some(product.clone()), None, actor.clone(), NewEvent::profile_added(&profile));
        working.registry.add_profile(profile.clone());
        Ok(profile)
    }
}

impl Op for AddWebhook {
    fn needs(&self, needs: &mut Needs) {
        needs.effects.webhooks = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Webhook, StoreError> {
        if let Some(known) = working.effects.webhook(self.id) {
            return Ok(known.clone());
        }
        let most = limits::WEBHOOKS_PER_PRODUCT;
        if working.effects.webhooks_of(self.product.as_ref()) >= most {
            return Err(StoreError::TooManyWebhooks(most));
        }
        let Self { id, product, url, kinds, secret, actor } = self.clone();
        let since = working.effects.head();
        let webhook = Webhook { id, product, url, kinds, secret, created_at: working.now(), since };
        working.append(webhook.product.clone(), None, actor, NewEvent::webhook_added(&webhook));
        working.effects.add_webhook(webhook.clone());
        Ok(webhook)
    }
}

impl Op for RemoveWebhook {
    fn needs(&self, needs: &mut Needs) {
        needs.effects.webhooks = true;
        needs.effects.waiting_for.insert(self.id);
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let Some(webhook) = working.effects.remove_webhook(self.id) else { return Ok(()) };
        let now = working.now();
        let given_up = working.effects.give_up_for(self.id, "the webhook was removed", now);
        let event = NewEvent::webhook_removed(&webhook, given_up);
        working.append(webhook.product, None, self.actor.clone(), event);
        Ok(())
    }
}

impl Op for SetFlag {
    fn needs(&self, needs: &mut Needs) {
        needs.flags.insert(self.name.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let Self { name, value, actor } = self;
        let before = working.flag(name).cloned().unwrap_or(Value::Null);
        if before == *value {
            return Ok(());
        }
        if value.is_null() {
            working.delete_flag(name);
        } else {
            working.put_flag(name, value.clone());
        }
        working.append(None, None, actor.clone(), NewEvent::flag_changed(name, before, value.clone()));
        Ok(())
    }
}

impl Op for ShareKey {
    fn needs(&self, needs: &mut Needs) {
        needs.registry.keys.insert(self.name);
    }

    fn decide(&self, working: &mut Working) -> Result<[u8; 32], StoreError> {
        if let Some(known) = working.registry.key(self.name) {
            return Ok(known.value);
        }
        let created_at = working.now();
        working.registry.add_key(SharedKey { name: self.name.to_owned(), value: self.fresh, created_at });
        Ok(self.fresh)
    }
}

impl Op for RotateKey {
    fn needs(&self, needs: &mut Needs) {
        needs.registry.keys.extend([self.name, self.previous]);
        needs.registry.replaces_keys = true;
    }

    fn decide(&self, working: &mut Working) -> Result<KeyRing, StoreError> {
        let now = working.now();
        let fresh = SharedKey { name: self.name.to_owned(), value: self.fresh, created_at: now };
        let previous = working.registry.key(self.previous).map(|key| key.value);
        let Some(current) = working.registry.key(self.name).cloned() else {
            working.registry.put_key(fresh);
            return Ok(KeyRing { current: self.fresh, previous });
        };
        let is_repetition = current.value == self.fresh;
        if is_repetition || now.since(current.created_at) < self.older_than {
            return Ok(KeyRing { current: current.value, previous });
        }
        let previous = current.value;
        working.registry.put_key(SharedKey { name: self.previous.to_owned(), ..current });
        working.registry.put_key(fresh);
        working.append(None, None, self.actor.clone(), NewEvent::key_rotated(self.name));
        Ok(KeyRing { current: self.fresh, previous: Some(previous) })
    }
}
