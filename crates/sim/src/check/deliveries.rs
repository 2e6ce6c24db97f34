//! The world outside: every event that somebody wants is in the outbox once, is sent under one id, and is not left lying.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{Effect, EffectState, EffectTarget, Event, EventKind, Webhook, WebhookId};

use super::{Evidence, Findings, Promise};
use crate::history::Record;

type Key = (WebhookId, u64);

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let mut outbox: BTreeMap<Key, Vec<&Effect>> = BTreeMap::new();
    for effect in &evidence.effects {
        match key_of(effect) {
            Some(key) => outbox.entry(key).or_default().push(effect),
            None => {
                found.add(Promise::DeliveredOnce, format!("{} tells of nothing that happened", effect.id));
            }
        }
    }
    let tries = tries(evidence);
    for webhook in &evidence.webhooks {
        for event in evidence.events.iter().filter(|event| wants(webhook, event)) {
            let key = (webhook.id, event.pos.0);
            match outbox.remove(&key).as_deref() {
                Some([effect]) => one(effect, tries.get(&key), found),
                Some(several) => {
                    let ids: Vec<String> = several.iter().map(|effect| effect.id.to_string()).collect();
                    let text = format!("event {} is in the outbox as {}", event.pos, ids.join(", "));
                    found.add(Promise::DeliveredOnce, text);
                }
                None => {
                    let text = format!("event {} ({}) is not in the outbox", event.pos, event.kind);
                    found.add(Promise::DeliveredOnce, text);
                }
            }
        }
    }
    for ((webhook, pos), effects) in outbox {
        if evidence.webhooks.iter().any(|known| known.id == webhook) {
            found.add(Promise::DeliveredOnce, format!("event {pos} is in the outbox, and nobody wants it"));
        } else if let Some(effect) = effects.iter().find(|effect| is_pending(effect)) {
            let text = format!("{} is still to be sent, to somebody who is gone", effect.id);
            found.add(Promise::DeliveredOnce, text);
        }
    }
}

fn one(effect: &Effect, tried: Option<&(BTreeSet<&str>, bool)>, found: &mut Findings) {
    if is_pending(effect) {
        found.add(Promise::DeliveredOnce, format!("{} is still to be sent", effect.id));
    }
    let (ids, taken) = tried.cloned().unwrap_or_default();
    if ids.iter().any(|id| *id != effect.id.as_str()) {
        let text = format!("{} was sent as {ids:?}", effect.id);
        found.add(Promise::DeliveredOnce, text);
    }
    if effect.state == EffectState::Delivered && !taken {
        found.add(Promise::DeliveredOnce, format!("{} counts as delivered, and nobody got it", effect.id));
    }
}

fn is_pending(effect: &Effect) -> bool {
    matches!(effect.state, EffectState::Pending { .. })
}

fn key_of(effect: &Effect) -> Option<Key> {
    let EffectTarget::Webhook(webhook) = effect.target else { return None };
    Some((webhook, effect.payload.get("pos")?.as_u64()?))
}

/// Under which ids each was sent, and whether it was ever taken.
fn tries(evidence: &Evidence) -> BTreeMap<Key, (BTreeSet<&str>, bool)> {
    let mut tries: BTreeMap<Key, (BTreeSet<&str>, bool)> = BTreeMap::new();
    for record in &evidence.records {
        let Record::Outside { id, webhook, pos, taken } = record else { continue };
        let tried = tries.entry((*webhook, *pos)).or_default();
        tried.0.insert(id);
        tried.1 |= taken;
    }
    tries
}

/// Never of effects themselves.
pub(crate) fn wants(webhook: &Webhook, event: &Event) -> bool {
    let of_effects = matches!(event.kind, EventKind::EffectGivenUp | EventKind::EffectRevived);
    event.pos > webhook.since
        && !of_effects
        && (webhook.product.is_none() || webhook.product == event.product)
        && (webhook.kinds.is_empty() || webhook.kinds.contains(&event.kind))
}
