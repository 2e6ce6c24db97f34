//! Budgets, and the ledger of what was charged.

use giga_domain::{Budget, Charge, Epoch, JobId, Rev};
use giga_ports::store::SpendBucket;

use super::Kind::{Int, Text};
use super::{Fields, Read, Row, Table, json, text};
use crate::engine::{BudgetRow, ChargeRow};

pub(crate) const BUDGETS: Table = Table {
    name: "budgets",
    key: 1,
    columns: &[
        ("product_id", Text),
        ("settings", Text),
        ("paused", Text),
        ("spent", Text),
        ("reserved_usd", Int),
        ("rev", Int),
        ("last_request", Text),
    ],
};

/// Without the number that the database gives each, in the order in which they were charged.
pub(crate) const CHARGES: Table = Table {
    name: "charges",
    key: 0,
    columns: &[
        ("product_id", Text),
        ("job_id", Text),
        ("lease_epoch", Int),
        ("at", Int),
        ("usd", Int),
        ("tokens", Int),
        ("how", Text),
        ("request_id", Text),
    ],
};

/// What a burn-down is read from.
pub(crate) const BUCKETS: Table =
    Table { name: "charges", key: 0, columns: &[("at", Int), ("usd", Int), ("tokens", Int), ("runs", Int)] };

pub(crate) fn budget_row(row: &BudgetRow) -> Row {
    let BudgetRow { budget, last_request } = row;
    vec![
        text(&budget.product),
        json(&budget.settings),
        budget.paused.as_ref().map(json).into(),
        json(&budget.spent),
        budget.reserved.into(),
        budget.rev.0.into(),
        last_request.as_ref().map(text).into(),
    ]
}

/// [`BUDGETS`].
pub(crate) fn budget(fields: &mut Fields<'_>) -> Read<BudgetRow> {
    let budget = Budget {
        product: fields.parse()?,
        settings: fields.json()?,
        paused: fields.json_or_null()?,
        spent: fields.json()?,
        reserved: fields.amount()?,
        rev: Rev(fields.count()?),
    };
    Ok(BudgetRow { budget, last_request: fields.parse_or_null()? })
}

pub(crate) fn charge_row(row: &ChargeRow) -> Row {
    let ChargeRow { charge, request } = row;
    vec![
        text(&charge.product),
        charge.run.map(|(job, _)| text(job)).into(),
        charge.run.map(|(_, epoch)| epoch.0).into(),
        charge.at.into(),
        charge.usd.into(),
        charge.tokens.into(),
        charge.how.as_str().into(),
        request.as_ref().map(text).into(),
    ]
}

/// [`CHARGES`], without the call that made it.
pub(crate) fn charge(fields: &mut Fields<'_>) -> Read<Charge> {
    let product = fields.parse()?;
    let job: Option<JobId> = fields.parse_or_null()?;
    let run = match (job, fields.int_or_null()?.map(u64::try_from)) {
        (None, None) => None,
        (Some(job), Some(Ok(epoch))) => Some((job, Epoch(epoch))),
        _ => return fields.contradiction("a charge has a job and an epoch, or neither"),
    };
    Ok(Charge {
        product,
        run,
        at: fields.time()?,
        usd: fields.usd()?,
        tokens: fields.count()?,
        how: fields.parse()?,
    })
}

/// [`BUCKETS`].
pub(crate) fn bucket(fields: &mut Fields<'_>) -> Read<SpendBucket> {
    Ok(SpendBucket {
        from: fields.time()?,
        usd: fields.usd()?,
        tokens: fields.count()?,
        runs: fields.count()?,
    })
}
