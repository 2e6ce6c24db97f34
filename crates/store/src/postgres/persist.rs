//! Writes what a batch decided: one statement per table, all of them and the commit in one round trip. When one fails,
//! the commit behind it is a rollback: nothing half-written can stay.

use std::collections::HashSet;

use giga_domain::{FactoryId, FeedPos, ProductId, TokenId};
use giga_ports::StoreError;
use tokio_postgres::Statement;

use super::pipeline::{Pipeline, Value};
use super::{Writer, decode_all, effects, graph, pools, registry, secrets};
use crate::engine::{Loaded, Writes};
use crate::rows::{self, Cell, Kind, Row, RunRows, Table};

/// What was there when the batch was decided. Anything else is inserted plainly: when another coordinator was
/// faster, the insert fails, and the batch is run again and finds what the other one made.
pub(super) struct Present {
    factories: HashSet<FactoryId>,
    tokens: HashSet<TokenId>,
    flags: HashSet<String>,
    products: HashSet<ProductId>,
}

impl Present {
    pub(super) fn of(loaded: &Loaded) -> Self {
        Self {
            factories: loaded.factories.keys().cloned().collect(),
            tokens: loaded.tokens.keys().cloned().collect(),
            flags: loaded.flags.keys().cloned().collect(),
            products: loaded.registry.products.keys().cloned().collect(),
        }
    }
}

/// The last feed position, where events were appended.
pub(super) async fn persist(
    writer: &Writer,
    present: &Present,
    mut writes: Writes,
) -> Result<Option<FeedPos>, StoreError> {
    let s = &writer.statements;
    let mut pipeline = writer.pipeline();
    let out = &mut pipeline;

    // Before the inserts: a new job may take over the idempotency key of one that goes.
    let retired = &writes.retire_jobs;
    let of_jobs = [&s.retire_events, &s.retire_artifacts, &s.retire_runs, &s.retire_deps, &s.retire_texts];
    for statement in of_jobs.into_iter().chain([&s.withdraw_offers, &s.retire_jobs]) {
        delete(out, statement, retired).await;
    }

    // Two coordinators that insert the same keys wait for each other in one order.
    writes.insert_jobs.sort_by(|a, b| {
        let by = |job: &giga_domain::Job| (job.product.clone(), job.spec.idempotency_key.clone(), job.id);
        by(&a.job).cmp(&by(&b.job))
    });
    let new_jobs = &writes.insert_jobs;
    put(out, &s.insert_jobs, &rows::JOBS, new_jobs.iter().map(|new| rows::job_row(&new.job))).await;
    put(out, &s.insert_texts, &rows::JOB_TEXTS, new_jobs.iter().map(rows::text_row)).await;
    let deps = new_jobs.iter().flat_map(|new| rows::dep_rows(&new.job));
    put(out, &s.insert_deps, &rows::DEPS, deps).await;
    let changed = writes.update_jobs.iter().map(rows::job_change_row);
    put(out, &s.update_jobs, &rows::JOB_CHANGES, changed).await;

    put(out, &s.put_leases, &rows::LEASES, writes.put_leases.iter().map(rows::lease_row)).await;
    delete(out, &s.delete_leases, &writes.delete_leases).await;
    let runs = RunRows::fold(writes.runs);
    put(out, &s.insert_runs, &rows::RUNS, runs.opened).await;
    put(out, &s.update_runs, &rows::RUN_CHANGES, runs.changed).await;
    put(out, &s.update_budgets, &rows::BUDGETS, writes.put_budgets.iter().map(rows::budget_row)).await;
    let charges = writes.insert_charges.iter().map(rows::charge_row);
    put(out, &s.insert_charges, &rows::CHARGES, charges).await;

    delete(out, &s.delete_artifacts, &writes.delete_artifacts).await;
    let files = writes.insert_artifacts.iter().map(rows::artifact_row);
    put(out, &s.insert_artifacts, &rows::ARTIFACTS, files).await;

    let (known, new): (Vec<_>, Vec<_>) =
        writes.put_factories.iter().partition(|factory| present.factories.contains(&factory.id));
    put(out, &s.insert_factories, &rows::FACTORIES, new.into_iter().map(rows::factory_row)).await;
    put(out, &s.update_factories, &rows::FACTORIES, known.into_iter().map(rows::factory_row)).await;
    delete(out, &s.delete_factories, &writes.delete_factories).await;
    let seen = writes.seen_factories.iter().map(|(id, at)| rows::sighting_row(id, *at));
    put(out, &s.see_factories, &rows::SIGHTINGS, seen).await;
    let (known, new): (Vec<_>, Vec<_>) =
        writes.put_tokens.iter().partition(|token| present.tokens.contains(&token.id));
    put(out, &s.insert_tokens, &rows::TOKENS, new.into_iter().map(rows::token_row)).await;
    put(out, &s.update_tokens, &rows::TOKENS, known.into_iter().map(rows::token_row)).await;
    delete(out, &s.delete_tokens, &writes.delete_tokens).await;
    let (known, new): (Vec<_>, Vec<_>) =
        writes.put_flags.iter().partition(|(name, _)| present.flags.contains(name));
    let flag_row = |(name, value): &(String, serde_json::Value)| rows::flag_row(name, value);
    put(out, &s.insert_flags, &rows::FLAGS, new.into_iter().map(flag_row)).await;
    put(out, &s.update_flags, &rows::FLAGS, known.into_iter().map(flag_row)).await;
    delete(out, &s.delete_flags, &writes.delete_flags).await;
    put(out, &s.put_leader, &rows::LEADER, writes.put_leader.iter().map(rows::leader_row)).await;

    delete(out, &s.withdraw_offers, &writes.withdraw_offers).await;
    if !writes.delete_offers.is_empty() {
        let (ids, seqs): (Vec<String>, Vec<i64>) =
            writes.delete_offers.iter().map(|(id, seq)| (id.to_string(), seq.0.cast_signed())).unzip();
        out.send(&s.delete_offers, vec![Box::new(ids), Box::new(seqs)]).await;
    }
    put(out, &s.put_offers, &rows::OFFERS, writes.put_offers.iter().map(rows::offer_row)).await;

    registry::persist(out, s, &present.products, &writes.registry).await;
    secrets::persist(out, s, &writes.secrets).await;
    pools::persist(out, s, &writes.pools).await;
    effects::persist(out, s, &writes.effects).await;
    graph::persist(out, s, &writes.graph).await;

    let queue = writes.queue.iter().map(rows::queue_count_row);
    put(out, &s.add_queue, &rows::QUEUE_COUNTS, queue).await;
    // The feed's lock: taken last, released by the commit that is already on its way behind it.
    let events: Vec<Row> = writes.events.iter().map(rows::event_row).collect();
    let head = if events.is_empty() {
        None
    } else {
        let mut values: Vec<Value> = vec![Box::new(events.len() as i64)];
        values.extend(columns(events, &rows::EVENTS.columns[1..]));
        out.send(&s.append_events, values).await
    };
    out.send_plain("COMMIT").await;
    let appended = head.is_some();
    let head = decode_all(&pipeline.finish().await?.take(head), &rows::EVENTS, rows::number::<u64>)?.pop();
    match head {
        None if appended => Err(StoreError::broken_because("feed has lost its row")),
        head => Ok(head.map(FeedPos)),
    }
}

pub(super) async fn put<'c>(
    pipeline: &mut Pipeline<'c>,
    statement: &'c Statement,
    table: &Table,
    rows: impl IntoIterator<Item = Row>,
) {
    let rows: Vec<Row> = rows.into_iter().collect();
    if !rows.is_empty() {
        pipeline.send(statement, columns(rows, table.columns)).await;
    }
}

/// Also for any other statement that takes a list of ids.
pub(super) async fn delete<'c, T: ToString>(
    pipeline: &mut Pipeline<'c>,
    statement: &'c Statement,
    ids: &[T],
) {
    if !ids.is_empty() {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        pipeline.send(statement, vec![Box::new(ids)]).await;
    }
}

/// From rows to one array per column.
fn columns(rows: Vec<Row>, kinds: &[(&str, Kind)]) -> Vec<Value> {
    let mut columns: Vec<Vec<Cell>> = kinds.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.push(cell);
        }
    }
    columns.into_iter().map(|column| Box::new(column) as Value).collect()
}
