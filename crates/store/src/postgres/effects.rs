//! Webhooks and effects in PostgreSQL.
//!
//! The one row of `fan_out` is the lock of all webhooks. Effects that are named are locked in the order of their ids;
//! only behind that are those taken that are due, and nobody waits for one of them: what somebody else has locked is
//! passed over, so racing coordinators get disjoint batches and cannot wait for each other in a circle.

use giga_domain::{EffectReceiver, FeedPos};
use giga_ports::StoreError;

use super::load::{limit, texts};
use super::persist::{delete, put};
use super::pipeline::{Answers, Pipeline, Ticket, Value};
use super::statements::Statements;
use super::{ClockSource, decode_all};
use crate::engine::{EffectNeeds, EffectWrites, EffectsLoaded};
use crate::rows::{self, EFFECT_CHANGES, EFFECTS, EFFECTS_OVER, EFFECTS_WAITING, FAN_OUT, WEBHOOKS};

/// Where the answers will be found.
pub(super) struct Asked {
    cursor: Option<Ticket>,
    head: Option<Ticket>,
    webhooks: Option<Ticket>,
    named: Option<Ticket>,
    waiting: Option<Ticket>,
    due: Vec<(EffectReceiver, Option<Ticket>)>,
    over: Option<Ticket>,
    with_webhooks: bool,
}

pub(super) async fn ask<'c>(
    pipeline: &mut Pipeline<'c>,
    statements: &'c Statements,
    needs: &EffectNeeds,
    clock: &ClockSource,
) -> Asked {
    let cursor = pipeline.send_if(needs.webhooks, &statements.lock_fan_out, Vec::new).await;
    let head = pipeline.send_if(needs.webhooks, &statements.feed_head, Vec::new).await;
    let webhooks = pipeline.send_if(needs.webhooks, &statements.webhooks, Vec::new).await;
    // One statement locks them all, in one order; only behind it are those looked at that are named.
    let waiting = pipeline
        .send_if(!needs.waiting_for.is_empty(), &statements.lock_waiting_effects, || {
            vec![texts(&needs.ids), texts(needs.waiting_for.iter().map(|id| EffectReceiver::Webhook(*id)))]
        })
        .await;
    let named =
        pipeline.send_if(!needs.ids.is_empty(), &statements.lock_effects, || vec![texts(&needs.ids)]).await;
    let mut due = Vec::new();
    for (receiver, most) in &needs.due {
        let values = || vec![Box::new(receiver.to_string()) as Value, time(clock), limit(*most)];
        let asked = pipeline.send_if(*most > 0, &statements.take_due_effects, values).await;
        due.push((receiver.clone(), asked));
    }
    let (before, most) = needs.over.unwrap_or_default();
    let over = pipeline
        .send_if(needs.over.is_some(), &statements.take_effects_over, || {
            vec![Box::new(before.as_millis()), limit(most)]
        })
        .await;
    Asked { cursor, head, webhooks, named, waiting, due, over, with_webhooks: needs.webhooks }
}

/// A test's time; the server tells its own.
fn time(clock: &ClockSource) -> Value {
    Box::new(match clock {
        ClockSource::Database => None,
        ClockSource::Injected(clock) => Some(clock.now().as_millis()),
    })
}

impl Asked {
    pub(super) fn read(self, answers: &mut Answers) -> Result<EffectsLoaded, StoreError> {
        let mut loaded = EffectsLoaded::default();
        if self.with_webhooks {
            let cursor = decode_all(&answers.take(self.cursor), &FAN_OUT, rows::cursor)?.pop();
            loaded.cursor = cursor.ok_or_else(|| StoreError::broken_because("fan_out has lost its row"))?;
            let head = decode_all(&answers.take(self.head), &FAN_OUT, rows::number)?.pop();
            loaded.head =
                head.map(FeedPos).ok_or_else(|| StoreError::broken_because("feed has lost its row"))?;
            let webhooks = decode_all(&answers.take(self.webhooks), &WEBHOOKS, rows::webhook)?;
            loaded.webhooks = webhooks.into_iter().map(|webhook| (webhook.id, webhook)).collect();
        }
        let mut found = decode_all(&answers.take(self.named), &EFFECTS, rows::effect)?;
        let waiting = decode_all(&answers.take(self.waiting), &EFFECTS_WAITING, rows::effects_waiting)?;
        loaded.waiting = waiting.into_iter().collect();
        for (receiver, asked) in self.due {
            let due = decode_all(&answers.take(asked), &EFFECTS, rows::effect)?;
            loaded.due.insert(receiver, due.iter().map(|effect| effect.id.clone()).collect());
            found.extend(due);
        }
        loaded.effects = found.into_iter().map(|effect| (effect.id.clone(), effect)).collect();
        loaded.over = decode_all(&answers.take(self.over), &EFFECTS_OVER, rows::effect_over)?;
        Ok(loaded)
    }
}

pub(super) async fn persist<'c>(out: &mut Pipeline<'c>, s: &'c Statements, writes: &EffectWrites) {
    put(out, &s.insert_webhooks, &WEBHOOKS, writes.insert_webhooks.iter().map(rows::webhook_row)).await;
    delete(out, &s.delete_webhooks, &writes.delete_webhooks).await;
    if let Some(pos) = writes.cursor {
        out.send(&s.move_fan_out, vec![Box::new(pos.0.cast_signed())]).await;
    }
    for (webhook, detail, now) in &writes.give_up {
        let receiver = EffectReceiver::Webhook(*webhook).to_string();
        out.send(&s.give_up_effects, vec![Box::new(*detail), Box::new(now.as_millis()), Box::new(receiver)])
            .await;
    }
    delete(out, &s.delete_effects, &writes.delete).await;
    put(out, &s.insert_effects, &EFFECTS, writes.insert.iter().map(rows::effect_row)).await;
    put(out, &s.update_effects, &EFFECT_CHANGES, writes.update.iter().map(rows::effect_change_row)).await;
}
