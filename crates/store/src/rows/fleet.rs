//! Factories, tokens, flags and the counts per product.

use giga_domain::token::{Grant, TokenHash, TokenRecord};
use giga_domain::{Factory, FactoryId, ProductId, Stage, Timestamp};
use giga_ports::store::QueueState;
use serde_json::Value;

use super::Kind::{Int, Text};
use super::{Cell, Fields, Read, Row, Table, json, text};
use crate::engine::QueueDelta;

pub(crate) const FACTORIES: Table = Table {
    name: "factories",
    key: 1,
    columns: &[
        ("id", Text),
        ("state", Text),
        ("scope", Text),
        ("advertised", Text),
        ("enrolled_at", Int),
        ("last_seen_at", Int),
    ],
};

/// Signs of life alone.
pub(crate) const SIGHTINGS: Table =
    Table { name: "factories", key: 1, columns: &[("id", Text), ("last_seen_at", Int)] };

pub(crate) const TOKENS: Table = Table {
    name: "tokens",
    key: 1,
    columns: &[
        ("id", Text),
        ("hash", Text),
        ("factory_id", Text),
        ("allows", Text),
        ("label", Text),
        ("created_at", Int),
        ("expires_at", Int),
        ("revoked_at", Int),
    ],
};

pub(crate) const FLAGS: Table = Table { name: "flags", key: 1, columns: &[("name", Text), ("value", Text)] };

/// One column per stage, named like it and in the order of [`Stage::ALL`].
pub(crate) const QUEUE_STATE: Table = Table {
    name: "queue_state",
    key: 1,
    columns: &[
        ("product_id", Text),
        ("version", Int),
        ("queued", Int),
        ("blocked", Int),
        ("assigned", Int),
        ("building", Int),
        ("review", Int),
        ("testing", Int),
        ("shipped", Int),
        ("failed", Int),
        ("dead_letter", Int),
        ("cancelled", Int),
    ],
};

pub(crate) fn factory_row(factory: &Factory) -> Row {
    vec![
        text(&factory.id),
        factory.state.as_str().into(),
        json(&factory.scope),
        json(&factory.advertised),
        factory.enrolled_at.into(),
        factory.last_seen_at.into(),
    ]
}

/// [`FACTORIES`].
pub(crate) fn factory(fields: &mut Fields<'_>) -> Read<Factory> {
    Ok(Factory {
        id: fields.parse()?,
        state: fields.parse()?,
        scope: fields.json()?,
        advertised: fields.json()?,
        enrolled_at: fields.time()?,
        last_seen_at: fields.time_or_null()?,
    })
}

pub(crate) fn sighting_row(id: &FactoryId, at: Timestamp) -> Row {
    vec![text(id), at.into()]
}

pub(crate) fn token_row(token: &TokenRecord) -> Row {
    let factory = match &token.grant {
        Grant::Factory { factory, .. } => text(factory),
        Grant::User { .. } => Cell::Null,
    };
    vec![
        text(&token.id),
        token.hash.to_hex().into(),
        factory,
        json(&token.grant),
        token.label.as_str().into(),
        token.created_at.into(),
        token.expires_at.into(),
        token.revoked_at.into(),
    ]
}

/// [`TOKENS`].
pub(crate) fn token(fields: &mut Fields<'_>) -> Read<TokenRecord> {
    let id = fields.parse()?;
    let Some(hash) = TokenHash::from_hex(fields.text()?) else {
        return fields.contradiction("it is not 64 hexadecimal digits");
    };
    // `factory_id` only repeats what the grant says, to be looked up by.
    fields.text_or_null()?;
    Ok(TokenRecord {
        id,
        hash,
        grant: fields.json()?,
        label: fields.text()?.to_owned(),
        created_at: fields.time()?,
        expires_at: fields.time_or_null()?,
        revoked_at: fields.time_or_null()?,
    })
}

pub(crate) fn flag_row(name: &str, value: &Value) -> Row {
    vec![name.into(), text(value)]
}

/// [`FLAGS`].
pub(crate) fn flag(fields: &mut Fields<'_>) -> Read<(String, Value)> {
    Ok((fields.text()?.to_owned(), fields.json()?))
}

/// What is to be added to the product's row.
pub(crate) fn queue_row(product: &ProductId, delta: &QueueDelta) -> Row {
    let mut row = vec![text(product), delta.changes.into()];
    row.extend(delta.by_stage.iter().map(|change| Cell::Int(*change)));
    row
}

/// [`QUEUE_STATE`].
pub(crate) fn queue_state(fields: &mut Fields<'_>) -> Read<(ProductId, QueueState)> {
    let product = fields.parse()?;
    let mut state = QueueState { version: fields.count()?, ..QueueState::default() };
    for stage in Stage::ALL {
        state.by_stage[stage as usize] = fields.count()?;
    }
    Ok((product, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_column_in_its_place() {
        let columns: Vec<_> = QUEUE_STATE.names().skip(2).collect();
        assert_eq!(columns, Stage::ALL.map(Stage::as_str));
        assert!(Stage::ALL.iter().enumerate().all(|(place, stage)| *stage as usize == place));
    }
}
