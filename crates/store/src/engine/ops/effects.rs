//! The way of an effect: asked for, taken by whoever sends it, settled by what came of that.

use std::time::Duration;

use giga_domain::{
    Actor, Effect, EffectId, EffectOutcome, EffectReceiver, EffectState, EventKind, NewEffect, NewEvent,
    Timestamp,
};
use giga_ports::StoreError;

use super::super::{Needs, Op, Working};

pub(in crate::engine) struct AddEffect(pub(in crate::engine) NewEffect);

impl Op for AddEffect {
    type Reply = Effect;

    fn needs(&self, needs: &mut Needs) {
        needs.effects.ids.insert(self.0.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Effect, StoreError> {
        let now = working.now();
        let Ok(mut effect) = working.effects.get(&self.0.id).cloned() else {
            let effect = Effect::new(self.0.clone(), now);
            working.effects.insert(effect.clone());
            return Ok(effect);
        };
        if effect.send_again(now) {
            working.effects.update(effect.clone());
        }
        Ok(effect)
    }
}

pub(in crate::engine) struct TakeEffects {
    pub(in crate::engine) receiver: EffectReceiver,
    pub(in crate::engine) limit: usize,
    pub(in crate::engine) lease: Duration,
}

impl Op for TakeEffects {
    type Reply = Vec<Effect>;

    fn needs(&self, needs: &mut Needs) {
        // Each of several in one batch gets its own.
        let due = needs.effects.due.entry(self.receiver.clone()).or_default();
        *due = due.saturating_add(self.limit);
    }

    /// After a lost reply of the database what was taken is due again when its lease ends, as if its sender had died.
    fn decide(&self, working: &mut Working) -> Result<Vec<Effect>, StoreError> {
        let now = working.now();
        let mut taken = Vec::new();
        for id in working.effects.due(&self.receiver) {
            if taken.len() == self.limit {
                break;
            }
            let Ok(mut effect) = working.effects.get(&id).cloned() else { continue };
            if effect.take(now, self.lease) {
                working.effects.update(effect.clone());
                taken.push(effect);
            }
        }
        Ok(taken)
    }
}

pub(in crate::engine) struct SettleEffect {
    pub(in crate::engine) id: EffectId,
    pub(in crate::engine) attempt: u32,
    pub(in crate::engine) outcome: EffectOutcome,
}

impl Op for SettleEffect {
    type Reply = Effect;

    fn needs(&self, needs: &mut Needs) {
        needs.effects.ids.insert(self.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Effect, StoreError> {
        let mut effect = working.effects.get(&self.id)?.clone();
        if !effect.settle(self.attempt, &self.outcome, working.now()) {
            return Ok(effect);
        }
        // A receiver's words may be in it, and no database takes every character.
        effect.detail = effect.detail.map(|detail| detail.replace('\0', "\u{fffd}"));
        if effect.state == EffectState::Dead {
            let detail = effect.detail.as_deref().unwrap_or_default();
            let target = serde_json::to_value(&effect.target).unwrap_or_default();
            let cause = format!("given up after {} attempts: {detail}", effect.attempts);
            let event = NewEvent::new(EventKind::EffectGivenUp, cause)
                .with("effectId", effect.id.as_str())
                .with("target", target)
                .with("detail", detail);
            working.append(effect.product.clone(), None, Actor::system("deliverer"), event);
        }
        working.effects.update(effect.clone());
        Ok(effect)
    }
}

pub(in crate::engine) struct ReviveEffect {
    pub(in crate::engine) id: EffectId,
    pub(in crate::engine) actor: Actor,
}

impl Op for ReviveEffect {
    type Reply = Effect;

    fn needs(&self, needs: &mut Needs) {
        needs.effects.ids.insert(self.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Effect, StoreError> {
        let mut effect = working.effects.get(&self.id)?.clone();
        if effect.revive(working.now()) {
            let event = NewEvent::new(EventKind::EffectRevived, "given another chance")
                .with("effectId", effect.id.as_str());
            working.append(effect.product.clone(), None, self.actor.clone(), event);
            working.effects.update(effect.clone());
        }
        Ok(effect)
    }
}

pub(in crate::engine) struct RetireEffects {
    pub(in crate::engine) before: Timestamp,
    pub(in crate::engine) limit: usize,
}

impl Op for RetireEffects {
    type Reply = usize;

    fn needs(&self, needs: &mut Needs) {
        let (before, limit) = needs.effects.over.unwrap_or((self.before, 0));
        needs.effects.over = Some((before.max(self.before), limit.saturating_add(self.limit)));
    }

    fn decide(&self, working: &mut Working) -> Result<usize, StoreError> {
        let mut old = working.effects.over(self.before);
        old.truncate(self.limit);
        let count = old.len();
        for id in old {
            working.effects.remove(id);
        }
        Ok(count)
    }
}
