//! Who leads, and the offers that wait for the broker.

use giga_domain::{Leadership, Term};
use giga_ports::store::Waiting;

use super::Kind::{Int, Text};
use super::{Cell, Fields, Read, Row, Table, json, text};

pub(crate) const LEADER: Table = Table {
    name: "leader",
    key: 1,
    columns: &[("one", Int), ("node_id", Text), ("term", Int), ("expires_at", Int)],
};

pub(crate) const OFFERS: Table = Table {
    name: "outbox",
    key: 2,
    columns: &[
        ("job_id", Text),
        ("dispatch_seq", Int),
        ("product_id", Text),
        ("offer", Text),
        ("since", Int),
    ],
};

pub(crate) fn leader_row(leader: &Leadership) -> Row {
    vec![Cell::Int(1), text(&leader.node), leader.term.0.into(), leader.expires_at.into()]
}

/// [`LEADER`]. `None` while nobody has led.
pub(crate) fn leader(fields: &mut Fields<'_>) -> Read<Option<Leadership>> {
    fields.int()?;
    let Some(node) = fields.parse_or_null()? else { return Ok(None) };
    Ok(Some(Leadership { node, term: Term(fields.count()?), expires_at: fields.time()? }))
}

pub(crate) fn offer_row(waiting: &Waiting) -> Row {
    let offer = &waiting.offer;
    vec![
        text(offer.job_id),
        offer.dispatch_seq.0.into(),
        text(&offer.product_id),
        json(offer),
        waiting.since.into(),
    ]
}

/// [`OFFERS`].
pub(crate) fn waiting(fields: &mut Fields<'_>) -> Read<Waiting> {
    // The first three only repeat what the offer says, to be looked up by.
    fields.text()?;
    fields.int()?;
    fields.text()?;
    Ok(Waiting { offer: fields.json()?, since: fields.time()? })
}
