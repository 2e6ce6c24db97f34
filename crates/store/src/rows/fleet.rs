//! Factories, tokens, flags and the counts per product.

use giga_domain::token::{TokenHash, TokenRecord};
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

/// A row per product and stage, so that a stage more is no change here.
pub(crate) const QUEUE_COUNTS: Table = Table {
    name: "queue_counts",
    key: 2,
    columns: &[("product_id", Text), ("stage", Text), ("version", Int), ("jobs", Int)],
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
    let factory = token.permission.factory().map_or(Cell::Null, text);
    vec![
        text(&token.id),
        token.hash.to_hex().into(),
        factory,
        json(&token.permission),
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
    // `factory_id` only repeats what the permission says, to be looked up by.
    fields.text_or_null()?;
    Ok(TokenRecord {
        id,
        hash,
        permission: fields.json()?,
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

/// What is to be added to the row of a product's stage.
pub(crate) fn queue_count_row(((product, stage), delta): (&(ProductId, Stage), &QueueDelta)) -> Row {
    vec![text(product), text(stage), delta.changes.into(), Cell::Int(delta.jobs)]
}

/// [`QUEUE_COUNTS`]: product, stage, the stage's part of the version, jobs.
pub(crate) fn queue_count(fields: &mut Fields<'_>) -> Read<(ProductId, Stage, u64, u64)> {
    Ok((fields.parse()?, fields.parse()?, fields.count()?, fields.count()?))
}

/// Puts the rows of each product together, which follow each other.
pub(crate) fn queue_states(rows: Vec<(ProductId, Stage, u64, u64)>) -> Vec<(ProductId, QueueState)> {
    let mut states: Vec<(ProductId, QueueState)> = Vec::new();
    for (product, stage, version, jobs) in rows {
        if states.last().is_none_or(|(last, _)| *last != product) {
            states.push((product, QueueState::default()));
        }
        if let Some((_, state)) = states.last_mut() {
            state.version += version;
            state.by_stage[stage] = jobs;
        }
    }
    states
}
