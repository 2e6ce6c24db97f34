//! Pools and their members.

use giga_domain::{Member, Pool, Rev};

use super::Kind::{Int, Text};
use super::{Fields, Read, Row, Table, json, text};

pub(crate) const POOLS: Table = Table {
    name: "pools",
    key: 1,
    columns: &[("name", Text), ("settings", Text), ("record", Text), ("rev", Int)],
};

pub(crate) const MEMBERS: Table = Table {
    name: "pool_members",
    key: 1,
    columns: &[
        ("factory_id", Text),
        ("pool", Text),
        ("state", Text),
        ("since", Int),
        ("ordered_at", Int),
        ("enrolled_at", Int),
        ("handle", Text),
        ("reason", Text),
        ("charged_until", Int),
    ],
};

pub(crate) fn pool_row(pool: &Pool) -> Row {
    vec![text(&pool.name), json(&pool.settings), json(&pool.record), pool.rev.0.into()]
}

/// [`POOLS`].
pub(crate) fn pool(fields: &mut Fields<'_>) -> Read<Pool> {
    Ok(Pool {
        name: fields.parse()?,
        settings: fields.json()?,
        record: fields.json()?,
        rev: Rev(fields.count()?),
    })
}

pub(crate) fn member_row(member: &Member) -> Row {
    vec![
        text(&member.factory),
        text(&member.pool),
        member.state.as_str().into(),
        member.since.into(),
        member.ordered_at.into(),
        member.enrolled_at.into(),
        member.handle.as_deref().into(),
        member.reason.as_deref().into(),
        member.charged_until.into(),
    ]
}

/// [`MEMBERS`].
pub(crate) fn member(fields: &mut Fields<'_>) -> Read<Member> {
    Ok(Member {
        factory: fields.parse()?,
        pool: fields.parse()?,
        state: fields.parse()?,
        since: fields.time()?,
        ordered_at: fields.time()?,
        enrolled_at: fields.time_or_null()?,
        handle: fields.text_or_null()?.map(str::to_owned),
        reason: fields.text_or_null()?.map(str::to_owned),
        charged_until: fields.time()?,
    })
}
