//! Webhooks, and the outbox of messages to them and to trackers.

use giga_domain::{
    Effect, EffectId, EffectReceiver, EffectState, EventKind, FeedPos, ProductId, SigningKey, Timestamp,
    Webhook, WebhookId,
};
use giga_ports::store::EffectCounts;

use super::Kind::{Int, Text};
use super::{Cell, Fields, Read, Row, Table, json, text};

pub(crate) const WEBHOOKS: Table = Table {
    name: "webhooks",
    key: 1,
    columns: &[
        ("id", Text),
        ("product_id", Text),
        ("url", Text),
        ("kinds", Text),
        ("secret", Text),
        ("created_at", Int),
        ("since_pos", Int),
    ],
};

pub(crate) const EFFECTS: Table = Table {
    name: "effects",
    key: 1,
    columns: &[
        ("id", Text),
        ("product_id", Text),
        ("target", Text),
        ("job_id", Text),
        ("payload", Text),
        ("state", Text),
        ("due_at", Int),
        ("attempts", Int),
        ("detail", Text),
        ("created_at", Int),
        ("updated_at", Int),
        // Who is spoken to, from `target`.
        ("receiver", Text),
    ],
};

/// What happens to an effect; the rest of it never changes.
pub(crate) const EFFECT_CHANGES: Table = Table {
    name: "effects",
    key: 1,
    columns: &[
        ("id", Text),
        ("state", Text),
        ("due_at", Int),
        ("attempts", Int),
        ("detail", Text),
        ("updated_at", Int),
    ],
};

/// When effects were over.
pub(crate) const EFFECTS_OVER: Table =
    Table { name: "effects", key: 1, columns: &[("id", Text), ("updated_at", Int)] };

/// Not a table: what [`effect_counts`] reads.
pub(crate) const EFFECT_COUNTS: Table =
    Table { name: "effects", key: 0, columns: &[("pending", Int), ("dead", Int), ("oldest_pending", Int)] };

/// Not a table: what [`effect_receiver`] reads.
pub(crate) const EFFECT_RECEIVERS: Table =
    Table { name: "effects", key: 0, columns: &[("receiver", Text), ("due_at", Int)] };

/// Not a table: what [`effects_waiting`] reads.
pub(crate) const EFFECTS_WAITING: Table =
    Table { name: "effects", key: 0, columns: &[("receiver", Text), ("waiting", Int)] };

pub(crate) const FAN_OUT: Table = Table { name: "fan_out", key: 0, columns: &[("pos", Int)] };

pub(crate) fn webhook_row(webhook: &Webhook) -> Row {
    let kinds: Vec<&str> = webhook.kinds.iter().map(|kind| kind.as_str()).collect();
    vec![
        text(webhook.id),
        webhook.product.as_ref().map(ProductId::as_str).into(),
        webhook.url.as_str().into(),
        json(&kinds),
        const_hex::encode(webhook.secret.0).into(),
        webhook.created_at.into(),
        webhook.since.0.into(),
    ]
}

/// [`WEBHOOKS`].
pub(crate) fn webhook(fields: &mut Fields<'_>) -> Read<Webhook> {
    let (id, product, url) = (fields.parse()?, fields.parse_or_null()?, fields.text()?.to_owned());
    let names: Vec<String> = fields.json()?;
    let kinds = names.iter().map(|name| name.parse()).collect::<Result<Vec<EventKind>, _>>();
    let kinds = kinds.or_else(|why| fields.contradiction(why))?;
    let Ok(secret) = const_hex::decode_to_array(fields.text()?) else {
        return fields.contradiction("it is not 64 hexadecimal digits");
    };
    Ok(Webhook {
        id,
        product,
        url,
        kinds,
        secret: SigningKey(secret),
        created_at: fields.time()?,
        since: FeedPos(fields.count()?),
    })
}

/// [`FAN_OUT`].
pub(crate) fn cursor(fields: &mut Fields<'_>) -> Read<FeedPos> {
    Ok(FeedPos(fields.count()?))
}

fn state_cells(effect: &Effect) -> [Cell; 2] {
    let due = match effect.state {
        EffectState::Pending { due } => Some(due),
        EffectState::Delivered | EffectState::Dead => None,
    };
    [effect.state.name().as_str().into(), due.into()]
}

pub(crate) fn effect_row(effect: &Effect) -> Row {
    let [state, due] = state_cells(effect);
    vec![
        text(&effect.id),
        effect.product.as_ref().map(ProductId::as_str).into(),
        json(&effect.target),
        effect.job.map(|job| job.to_string()).into(),
        json(&effect.payload),
        state,
        due,
        u64::from(effect.attempts).into(),
        effect.detail.as_deref().into(),
        effect.created_at.into(),
        effect.updated_at.into(),
        text(effect.target.receiver()),
    ]
}

/// [`EFFECT_CHANGES`].
pub(crate) fn effect_change_row(effect: &Effect) -> Row {
    let [state, due] = state_cells(effect);
    vec![
        text(&effect.id),
        state,
        due,
        u64::from(effect.attempts).into(),
        effect.detail.as_deref().into(),
        effect.updated_at.into(),
    ]
}

/// [`EFFECTS`].
pub(crate) fn effect(fields: &mut Fields<'_>) -> Read<Effect> {
    let (id, product, target) = (fields.parse()?, fields.parse_or_null()?, fields.json()?);
    let (job, payload) = (fields.parse_or_null()?, fields.json()?);
    let (state, due) = (fields.text()?, fields.time_or_null()?);
    let state = match (state, due) {
        ("pending", Some(due)) => EffectState::Pending { due },
        ("delivered", None) => EffectState::Delivered,
        ("dead", None) => EffectState::Dead,
        (state, _) => return fields.contradiction(format!("it does not go with the state `{state}`")),
    };
    Ok(Effect {
        id,
        product,
        target,
        job,
        payload,
        state,
        attempts: fields.count()?,
        detail: fields.text_or_null()?.map(str::to_owned),
        created_at: fields.time()?,
        updated_at: fields.time()?,
    })
}

/// [`EFFECTS_OVER`].
pub(crate) fn effect_over(fields: &mut Fields<'_>) -> Read<(EffectId, Timestamp)> {
    Ok((fields.parse()?, fields.time()?))
}

/// [`EFFECT_COUNTS`].
pub(crate) fn effect_counts(fields: &mut Fields<'_>) -> Read<EffectCounts> {
    Ok(EffectCounts {
        pending: fields.count()?,
        dead: fields.count()?,
        oldest_pending: fields.time_or_null()?,
    })
}

/// [`EFFECT_RECEIVERS`].
pub(crate) fn effect_receiver(fields: &mut Fields<'_>) -> Read<(EffectReceiver, Timestamp)> {
    Ok((fields.parse()?, fields.time()?))
}

/// [`EFFECTS_WAITING`], where the receiver is a webhook.
pub(crate) fn effects_waiting(fields: &mut Fields<'_>) -> Read<(WebhookId, u64)> {
    match fields.parse()? {
        EffectReceiver::Webhook(id) => Ok((id, fields.count()?)),
        EffectReceiver::Tracker(_) | EffectReceiver::Forge(_) => fields.contradiction("it is no webhook"),
    }
}

/// As it stands in the column, to be looked up by.
pub(crate) fn target_cell(target: &giga_domain::EffectTarget) -> Cell {
    json(target)
}
