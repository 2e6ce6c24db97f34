//! Webhooks and effects of a batch. An effect is loaded under its lock or not at all, so what a command finds here is
//! what will be written over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use giga_domain::{
    Effect, EffectId, EffectReceiver, EffectTarget, FeedPos, ProductId, Timestamp, Webhook, WebhookId,
};
use giga_ports::StoreError;

#[derive(Debug, Default)]
pub struct EffectNeeds {
    /// All webhooks, how far the feed has been put into the outbox, and the feed's head. Locked as one: who gets
    /// what changes for one batch at a time.
    pub webhooks: bool,
    pub ids: BTreeSet<EffectId>,
    /// What still waits to be sent to these webhooks is locked and counted, all of it. Needs `webhooks` too.
    pub waiting_for: BTreeSet<WebhookId>,
    /// Effects that are due for each, longest due first, at most so many. One that somebody else has locked is passed over.
    pub due: BTreeMap<EffectReceiver, usize>,
    /// Effects that were over before this time, oldest first, at most so many. Passed over as above.
    pub over: Option<(Timestamp, usize)>,
}

#[derive(Debug, Default)]
pub struct EffectsLoaded {
    pub webhooks: BTreeMap<WebhookId, Webhook>,
    pub cursor: FeedPos,
    /// At least what was committed before the lock; events of others may have come since.
    pub head: FeedPos,
    /// Every effect named by `ids` and `due` that exists, locked.
    pub effects: HashMap<EffectId, Effect>,
    /// How much waits for each of `waiting_for`; nothing where one is left out.
    pub waiting: BTreeMap<WebhookId, u64>,
    pub due: BTreeMap<EffectReceiver, Vec<EffectId>>,
    /// With the time when it was over.
    pub over: Vec<(EffectId, Timestamp)>,
}

#[derive(Debug, Default)]
pub struct EffectWrites {
    pub insert_webhooks: Vec<Webhook>,
    pub delete_webhooks: Vec<WebhookId>,
    pub cursor: Option<FeedPos>,
    /// Whatever waits for these webhooks is given up with these words at this time. Before all that follows.
    pub give_up: Vec<(WebhookId, &'static str, Timestamp)>,
    /// Before the inserts: one that was removed may be asked for again.
    pub delete: Vec<EffectId>,
    pub insert: Vec<Effect>,
    /// Target and payload never change.
    pub update: Vec<Effect>,
}

impl EffectWrites {
    pub fn is_empty(&self) -> bool {
        self.insert_webhooks.is_empty()
            && self.delete_webhooks.is_empty()
            && self.cursor.is_none()
            && self.give_up.is_empty()
            && self.delete.is_empty()
            && self.insert.is_empty()
            && self.update.is_empty()
    }
}

fn waits_for(effect: &Effect, webhook: WebhookId) -> bool {
    effect.target == EffectTarget::Webhook(webhook) && !effect.is_over()
}

/// The rows while the commands of a batch are decided.
#[derive(Debug, Default)]
pub(super) struct Effects {
    loaded: EffectsLoaded,
    new: BTreeSet<EffectId>,
    dirty: BTreeSet<EffectId>,
    gone: BTreeSet<EffectId>,
    writes: EffectWrites,
}

impl Effects {
    pub(super) fn new(mut loaded: EffectsLoaded) -> Self {
        // From here on only those are in the count that are not here to be looked at.
        for (webhook, count) in &mut loaded.waiting {
            let here = loaded.effects.values().filter(|effect| waits_for(effect, *webhook)).count();
            *count = count.saturating_sub(here as u64);
        }
        Self { loaded, ..Self::default() }
    }

    pub(super) fn webhook(&self, id: WebhookId) -> Option<&Webhook> {
        self.loaded.webhooks.get(&id)
    }

    /// How many there are for the product, or for the whole fleet.
    pub(super) fn webhooks_of(&self, product: Option<&ProductId>) -> usize {
        self.loaded.webhooks.values().filter(|webhook| webhook.product.as_ref() == product).count()
    }

    pub(super) fn head(&self) -> FeedPos {
        self.loaded.head
    }

    pub(super) fn cursor(&self) -> FeedPos {
        self.loaded.cursor
    }

    pub(super) fn move_cursor(&mut self, to: FeedPos) {
        if self.loaded.cursor != to {
            self.loaded.cursor = to;
            self.writes.cursor = Some(to);
        }
    }

    pub(super) fn add_webhook(&mut self, webhook: Webhook) {
        self.loaded.webhooks.insert(webhook.id, webhook.clone());
        self.writes.insert_webhooks.push(webhook);
    }

    pub(super) fn remove_webhook(&mut self, id: WebhookId) -> Option<Webhook> {
        let removed = self.loaded.webhooks.remove(&id)?;
        let before = self.writes.insert_webhooks.len();
        self.writes.insert_webhooks.retain(|new| new.id != id);
        if self.writes.insert_webhooks.len() == before {
            self.writes.delete_webhooks.push(id);
        }
        Some(removed)
    }

    /// What waits to be sent to the webhook is given up; says how much that was.
    pub(super) fn give_up_for(&mut self, id: WebhookId, detail: &'static str, now: Timestamp) -> u64 {
        let mut given_up = self.loaded.waiting.remove(&id).unwrap_or_default();
        for effect in self.loaded.effects.values_mut().filter(|effect| waits_for(effect, id)) {
            effect.give_up(detail, now);
            self.dirty.insert(effect.id.clone());
            given_up += 1;
        }
        self.writes.give_up.push((id, detail, now));
        given_up
    }

    pub(super) fn get(&self, id: &EffectId) -> Result<&Effect, StoreError> {
        self.loaded.effects.get(id).ok_or_else(|| StoreError::NoSuchEffect(id.clone()))
    }

    pub(super) fn due(&self, receiver: &EffectReceiver) -> Vec<EffectId> {
        self.loaded.due.get(receiver).cloned().unwrap_or_default()
    }

    /// Those that this batch has neither removed nor brought back.
    pub(super) fn over(&self, before: Timestamp) -> Vec<EffectId> {
        let still = |id: &EffectId| {
            !self.gone.contains(id)
                && self.loaded.effects.get(id).is_none_or(|e| e.is_over() && e.updated_at < before)
        };
        let over = self.loaded.over.iter().filter(|(id, at)| *at < before && still(id));
        over.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn insert(&mut self, effect: Effect) {
        self.new.insert(effect.id.clone());
        self.loaded.effects.insert(effect.id.clone(), effect);
    }

    pub(super) fn update(&mut self, effect: Effect) {
        self.dirty.insert(effect.id.clone());
        self.loaded.effects.insert(effect.id.clone(), effect);
    }

    /// One that was there before the batch.
    pub(super) fn remove(&mut self, id: EffectId) {
        self.loaded.effects.remove(&id);
        self.dirty.remove(&id);
        self.gone.insert(id);
    }

    pub(super) fn into_writes(self) -> EffectWrites {
        let Self { mut loaded, new, dirty, gone, mut writes } = self;
        for id in &new {
            writes.insert.extend(loaded.effects.remove(id));
        }
        for id in dirty.difference(&new) {
            writes.update.extend(loaded.effects.remove(id));
        }
        writes.delete = gone.into_iter().collect();
        writes
    }
}
