//! Webhooks and effects in SQLite.

use giga_domain::{EffectReceiver, FeedPos, Timestamp};
use giga_ports::StoreError;
use rusqlite::Connection;

use super::persist::{insert, replace, update, write};
use super::read;
use crate::engine::{EffectNeeds, EffectWrites, EffectsLoaded};
use crate::rows::{self, EFFECT_CHANGES, EFFECTS, EFFECTS_OVER, EFFECTS_WAITING, FAN_OUT, WEBHOOKS, text};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn load(connection: &Connection, needs: &EffectNeeds, now: Timestamp) -> Result<EffectsLoaded> {
    let mut loaded = EffectsLoaded::default();
    if needs.webhooks {
        let cursor = read(connection, &sql::select(&FAN_OUT, ""), Vec::new(), &FAN_OUT, rows::cursor)?.pop();
        loaded.cursor = cursor.ok_or_else(|| StoreError::broken_because("fan_out has lost its row"))?;
        let head = read(connection, "SELECT last_pos FROM feed", Vec::new(), &FAN_OUT, rows::number)?.pop();
        loaded.head = head.map(FeedPos).ok_or_else(|| StoreError::broken_because("feed has lost its row"))?;
        let all = read(connection, &sql::select(&WEBHOOKS, ""), Vec::new(), &WEBHOOKS, rows::webhook)?;
        loaded.webhooks = all.into_iter().map(|webhook| (webhook.id, webhook)).collect();
    }
    let mut found = Vec::new();
    let by_id = sql::select(&EFFECTS, "WHERE id = $1");
    for id in &needs.ids {
        found.extend(read(connection, &by_id, vec![text(id)], &EFFECTS, rows::effect)?);
    }
    let to_it =
        "SELECT receiver, count(*) FROM effects WHERE receiver = $1 AND due_at IS NOT NULL GROUP BY 1";
    for webhook in &needs.waiting_for {
        let receiver = vec![text(EffectReceiver::Webhook(*webhook))];
        loaded.waiting.extend(read(connection, to_it, receiver, &EFFECTS_WAITING, rows::effects_waiting)?);
    }
    let due_to = sql::select(&EFFECTS, "WHERE receiver = $1 AND due_at <= $2 ORDER BY due_at, id LIMIT $3");
    for (receiver, most) in &needs.due {
        let values = vec![text(receiver), now.into(), (*most).into()];
        let due = read(connection, &due_to, values, &EFFECTS, rows::effect)?;
        loaded.due.insert(receiver.clone(), due.iter().map(|effect| effect.id.clone()).collect());
        found.extend(due);
    }
    loaded.effects = found.into_iter().map(|effect| (effect.id.clone(), effect)).collect();
    if let Some((before, limit)) = needs.over {
        let sql = sql::select(&EFFECTS_OVER, sql::EFFECTS_OVER_TAIL);
        let values = vec![before.into(), limit.into()];
        loaded.over = read(connection, &sql, values, &EFFECTS_OVER, rows::effect_over)?;
    }
    Ok(loaded)
}

pub(super) fn persist(connection: &Connection, writes: &EffectWrites) -> Result<()> {
    write(connection, &insert(&WEBHOOKS), writes.insert_webhooks.iter().map(rows::webhook_row))?;
    let gone = writes.delete_webhooks.iter().map(|id| vec![text(id)]);
    write(connection, "DELETE FROM webhooks WHERE id = $1", gone)?;
    write(connection, "UPDATE fan_out SET pos = $1", writes.cursor.iter().map(|pos| vec![pos.0.into()]))?;
    let given_up = writes.give_up.iter().map(|(webhook, detail, now)| {
        vec![(*detail).into(), (*now).into(), text(EffectReceiver::Webhook(*webhook))]
    });
    write(connection, sql::GIVE_UP_EFFECTS, given_up)?;
    let gone = writes.delete.iter().map(|id| vec![text(id)]);
    write(connection, "DELETE FROM effects WHERE id = $1", gone)?;
    write(connection, &insert(&EFFECTS), writes.insert.iter().map(rows::effect_row))?;
    write(connection, &update(&EFFECT_CHANGES, replace), writes.update.iter().map(rows::effect_change_row))
}
