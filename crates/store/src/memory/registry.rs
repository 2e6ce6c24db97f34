//! Products, profiles, shared keys, webhooks and effects: plain maps.

use std::collections::{BTreeMap, HashMap};

use giga_domain::{
    Effect, EffectId, EffectReceiver, EffectState, EffectTarget, FeedPos, Product, ProductId, Profile,
    Timestamp, Webhook, WebhookId,
};
use giga_ports::store::{EffectCounts, EffectFilter};

use crate::engine::{
    EffectNeeds, EffectWrites, EffectsLoaded, RegistryLoaded, RegistryNeeds, RegistryWrites, SharedKey,
};

#[derive(Default)]
pub(super) struct RegistryTables {
    pub(super) products: BTreeMap<ProductId, Product>,
    pub(super) profiles: BTreeMap<(ProductId, String, u32), Profile>,
    pub(super) keys: HashMap<String, SharedKey>,
}

impl RegistryTables {
    pub(super) fn load(&self, needs: &RegistryNeeds) -> RegistryLoaded {
        let newest = |(product, name): &(ProductId, String)| {
            let profile = self.newest(product, name)?;
            Some(((product.clone(), name.clone()), profile.clone()))
        };
        RegistryLoaded {
            products: self.products.clone(),
            profiles: needs.profiles.iter().filter_map(newest).collect(),
            keys: self.keys.clone(),
        }
    }

    pub(super) fn newest(&self, product: &ProductId, name: &str) -> Option<&Profile> {
        self.profiles.values().rfind(|profile| profile.product == *product && profile.name == name)
    }

    /// Of each name the newest, by name.
    pub(super) fn newest_of(&self, product: &ProductId) -> Vec<Profile> {
        let of_product = self.profiles.values().filter(|profile| profile.product == *product);
        let newest: BTreeMap<&str, &Profile> = of_product.map(|profile| (&*profile.name, profile)).collect();
        newest.into_values().cloned().collect()
    }

    pub(super) fn persist(&mut self, writes: RegistryWrites) {
        for product in writes.put_products {
            self.products.insert(product.id.clone(), product);
        }
        for profile in writes.insert_profiles {
            let key = (profile.product.clone(), profile.name.clone(), profile.version);
            self.profiles.insert(key, profile);
        }
        for key in writes.insert_keys.into_iter().chain(writes.put_keys) {
            self.keys.insert(key.name.clone(), key);
        }
    }
}

#[derive(Default)]
pub(super) struct EffectTables {
    pub(super) webhooks: BTreeMap<WebhookId, Webhook>,
    pub(super) cursor: FeedPos,
    pub(super) effects: BTreeMap<EffectId, Effect>,
}

impl EffectTables {
    pub(super) fn load(&self, needs: &EffectNeeds, head: FeedPos, now: Timestamp) -> EffectsLoaded {
        let due = needs.due.iter().map(|(receiver, most)| (receiver.clone(), self.due(receiver, *most, now)));
        let due: BTreeMap<_, Vec<EffectId>> = due.collect();
        let is_due = |effect: &Effect| due.values().any(|due| due.contains(&effect.id));

        let (before, limit) = needs.over.unwrap_or_default();
        let old = self.effects.values().filter(|effect| effect.is_over() && effect.updated_at < before);
        let mut over: Vec<_> = old.map(|effect| (effect.updated_at, effect.id.clone())).collect();
        over.sort_unstable();
        over.truncate(limit);

        let mut waiting = BTreeMap::new();
        for effect in self.effects.values().filter(|effect| !effect.is_over()) {
            if let EffectTarget::Webhook(id) = effect.target
                && needs.waiting_for.contains(&id)
            {
                *waiting.entry(id).or_default() += 1;
            }
        }
        let wanted = |effect: &&Effect| needs.ids.contains(&effect.id) || is_due(effect);
        EffectsLoaded {
            webhooks: self.webhooks.clone(),
            cursor: self.cursor,
            head,
            effects: self.effects.values().filter(wanted).map(|e| (e.id.clone(), e.clone())).collect(),
            waiting,
            due,
            over: over.into_iter().map(|(at, id)| (id, at)).collect(),
        }
    }

    fn due(&self, receiver: &EffectReceiver, most: usize, now: Timestamp) -> Vec<EffectId> {
        let due_since = |effect: &Effect| match effect.state {
            EffectState::Pending { due } if due <= now && effect.target.receiver() == *receiver => {
                Some((due, effect.id.clone()))
            }
            _ => None,
        };
        let mut due: Vec<_> = self.effects.values().filter_map(due_since).collect();
        due.sort_unstable();
        due.into_iter().take(most).map(|(_, id)| id).collect()
    }

    pub(super) fn persist(&mut self, writes: EffectWrites) {
        for webhook in writes.insert_webhooks {
            self.webhooks.insert(webhook.id, webhook);
        }
        for id in writes.delete_webhooks {
            self.webhooks.remove(&id);
        }
        self.cursor = writes.cursor.unwrap_or(self.cursor);
        for (webhook, detail, now) in writes.give_up {
            let target = EffectTarget::Webhook(webhook);
            for effect in self.effects.values_mut().filter(|effect| effect.target == target) {
                effect.give_up(detail, now);
            }
        }
        for id in writes.delete {
            self.effects.remove(&id);
        }
        for effect in writes.insert.into_iter().chain(writes.update) {
            self.effects.insert(effect.id.clone(), effect);
        }
    }

    pub(super) fn list(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Vec<Effect> {
        let matches = |effect: &&Effect| {
            (filter.products.is_empty()
                || effect.product.as_ref().is_some_and(|id| filter.products.contains(id)))
                && filter.state.is_none_or(|state| state == effect.state.name())
                && filter.target.as_ref().is_none_or(|target| *target == effect.target)
                && filter.job.is_none_or(|job| effect.job == Some(job))
        };
        let place = |effect: &Effect| (effect.created_at, effect.id.clone());
        let mut found: Vec<_> = self.effects.values().filter(matches).collect();
        found.retain(|effect| before.as_ref().is_none_or(|before| place(effect) < *before));
        found.sort_by_key(|effect| std::cmp::Reverse(place(effect)));
        found.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn receivers(&self) -> Vec<(EffectReceiver, Timestamp)> {
        let mut first: BTreeMap<EffectReceiver, Timestamp> = BTreeMap::new();
        for effect in self.effects.values() {
            if let EffectState::Pending { due } = effect.state {
                let known = first.entry(effect.target.receiver()).or_insert(due);
                *known = due.min(*known);
            }
        }
        let mut waiting: Vec<_> = first.into_iter().collect();
        waiting.sort_by_key(|(receiver, due)| (*due, receiver.to_string()));
        waiting
    }

    pub(super) fn counts(&self) -> EffectCounts {
        let mut counts = EffectCounts::default();
        for effect in self.effects.values() {
            match effect.state {
                EffectState::Pending { .. } => {
                    let made = effect.created_at;
                    counts.pending += 1;
                    counts.oldest_pending = Some(counts.oldest_pending.map_or(made, |known| known.min(made)));
                }
                EffectState::Dead => counts.dead += 1,
                EffectState::Delivered => {}
            }
        }
        counts
    }
}
