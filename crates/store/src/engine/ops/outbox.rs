//! The way of an effect: asked for, taken by whoever sends it, settled by what came of that.

use giga_domain::{Actor, Effect, EffectState, EffectTarget, NewEffect, NewEvent};
use giga_ports::StoreError;
use giga_ports::store::{AddEffect, FanOut, RetireEffects, ReviveEffect, SettleEffect, TakeEffects};

use super::super::{Needs, Op, Working};

impl Op for FanOut {
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

/// It is known, or its receiver was removed since the caller looked.
fn is_settled(working: &Working, new: &NewEffect) -> bool {
    let is_gone = match &new.target {
        EffectTarget::Webhook(id) => working.effects.webhook(*id).is_none(),
        EffectTarget::Tracker { .. } | EffectTarget::Forge { .. } => false,
    };
    is_gone || working.effects.get(&new.id).is_ok()
}

impl Op for AddEffect {
    fn needs(&self, needs: &mut Needs) {
        needs.effects.ids.insert(self.effect.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Effect, StoreError> {
        let now = working.now();
        let Ok(mut effect) = working.effects.get(&self.effect.id).cloned() else {
            let effect = Effect::new(self.effect.clone(), now);
            working.effects.insert(effect.clone());
            return Ok(effect);
        };
        if effect.send_again(now) {
            working.effects.update(effect.clone());
        }
        Ok(effect)
    }
}

impl Op for TakeEffects {
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

impl Op for SettleEffect {
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
            let event = NewEvent::effect_given_up(&effect);
            working.append(effect.product.clone(), None, Actor::system("deliverer"), event);
        }
        working.effects.update(effect.clone());
        Ok(effect)
    }
}

impl Op for ReviveEffect {
    fn needs(&self, needs: &mut Needs) {
        needs.effects.ids.insert(self.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Effect, StoreError> {
        let mut effect = working.effects.get(&self.id)?.clone();
        if effect.revive(working.now()) {
            let event = NewEvent::effect_revived(&effect);
            working.append(effect.product.clone(), None, self.actor.clone(), event);
            working.effects.update(effect.clone());
        }
        Ok(effect)
    }
}

impl Op for RetireEffects {
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
