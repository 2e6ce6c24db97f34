//! Writes what a batch decided, row by row: in one process a statement costs less than building a bigger one.

use giga_domain::{FeedPos, JobId};
use giga_ports::StoreError;
use rusqlite::{Connection, params_from_iter};

use super::connection::failure;
use super::{effects, graph, pools, read, registry, secrets};
use crate::engine::Writes;
use crate::rows::{self, Cell, Row, RunRows, Table, text};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

/// The last feed position, where events were appended.
pub(super) fn persist(connection: &Connection, writes: Writes) -> Result<Option<FeedPos>> {
    // Before the inserts: a new job may take over the idempotency key of one that goes.
    retire(connection, &writes.retire_jobs)?;

    let new_jobs = &writes.insert_jobs;
    write(connection, &insert(&rows::JOBS), new_jobs.iter().map(|new| rows::job_row(&new.job)))?;
    write(connection, &insert(&rows::JOB_TEXTS), new_jobs.iter().map(rows::text_row))?;
    write(connection, &insert(&rows::DEPS), new_jobs.iter().flat_map(|new| rows::dep_rows(&new.job)))?;
    write(
        connection,
        &update(&rows::JOB_CHANGES, replace),
        writes.update_jobs.iter().map(rows::job_change_row),
    )?;

    write(
        connection,
        &upsert(&rows::LEASES, sql::replace_excluded),
        writes.put_leases.iter().map(rows::lease_row),
    )?;
    write(
        connection,
        "DELETE FROM leases WHERE job_id = $1",
        writes.delete_leases.iter().map(|id| vec![text(id)]),
    )?;
    let runs = RunRows::fold(writes.runs);
    write(connection, &insert(&rows::RUNS), runs.opened)?;
    write(connection, &update(&rows::RUN_CHANGES, keep_when_empty), runs.changed)?;
    write(
        connection,
        &upsert(&rows::BUDGETS, sql::replace_excluded),
        writes.put_budgets.iter().map(rows::budget_row),
    )?;
    write(connection, &insert(&rows::CHARGES), writes.insert_charges.iter().map(rows::charge_row))?;

    write(
        connection,
        "DELETE FROM artifacts WHERE id = $1",
        writes.delete_artifacts.iter().map(|id| vec![text(id)]),
    )?;
    write(connection, &insert(&rows::ARTIFACTS), writes.insert_artifacts.iter().map(rows::artifact_row))?;

    write(
        connection,
        &upsert(&rows::FACTORIES, sql::replace_excluded),
        writes.put_factories.iter().map(rows::factory_row),
    )?;
    write(
        connection,
        "DELETE FROM factories WHERE id = $1",
        writes.delete_factories.iter().map(|id| vec![text(id)]),
    )?;
    let seen = writes.seen_factories.iter().map(|(id, at)| rows::sighting_row(id, *at));
    write(connection, &update(&rows::SIGHTINGS, later), seen)?;
    write(
        connection,
        &upsert(&rows::TOKENS, sql::replace_excluded),
        writes.put_tokens.iter().map(rows::token_row),
    )?;
    let gone = writes.delete_tokens.iter().map(|id| vec![text(id)]);
    write(connection, "DELETE FROM tokens WHERE id = $1", gone)?;
    let flags = writes.put_flags.iter().map(|(name, value)| rows::flag_row(name, value));
    write(connection, &upsert(&rows::FLAGS, sql::replace_excluded), flags)?;
    write(
        connection,
        "DELETE FROM flags WHERE name = $1",
        writes.delete_flags.iter().map(|name| vec![text(name)]),
    )?;
    let leader = writes.put_leader.iter().map(rows::leader_row);
    write(connection, &upsert(&rows::LEADER, sql::replace_excluded), leader)?;

    write(
        connection,
        "DELETE FROM outbox WHERE job_id = $1",
        writes.withdraw_offers.iter().map(|id| vec![text(id)]),
    )?;
    write(
        connection,
        "DELETE FROM outbox WHERE job_id = $1 AND dispatch_seq = $2",
        writes.delete_offers.iter().map(|(id, seq)| vec![text(id), seq.0.into()]),
    )?;
    write(
        connection,
        &upsert(&rows::OFFERS, sql::replace_excluded),
        writes.put_offers.iter().map(rows::offer_row),
    )?;

    registry::persist(connection, &writes.registry)?;
    secrets::persist(connection, &writes.secrets)?;
    pools::persist(connection, &writes.pools)?;
    effects::persist(connection, &writes.effects)?;
    graph::persist(connection, &writes.graph)?;

    let queue = writes.queue.iter().map(rows::queue_count_row);
    write(connection, &upsert(&rows::QUEUE_COUNTS, sql::add_excluded), queue)?;
    append(connection, writes.events.iter().map(rows::event_row))
}

fn retire(connection: &Connection, ids: &[JobId]) -> Result<()> {
    for table in ["events", "artifacts", "outbox", "runs", "deps", "job_texts"] {
        let sql = format!("DELETE FROM {table} WHERE job_id = $1");
        write(connection, &sql, ids.iter().map(|id| vec![text(id)]))?;
    }
    write(connection, "DELETE FROM jobs WHERE id = $1", ids.iter().map(|id| vec![text(id)]))
}

fn append(connection: &Connection, events: impl ExactSizeIterator<Item = Row>) -> Result<Option<FeedPos>> {
    let count = events.len() as u64;
    if count == 0 {
        return Ok(None);
    }
    let sql = "UPDATE feed SET last_pos = last_pos + $1 RETURNING last_pos";
    let moved = read(connection, sql, vec![count.into()], &rows::EVENTS, rows::number::<u64>)?;
    let Some(head) = moved.first().copied() else {
        return Err(StoreError::broken_because("feed has lost its row"));
    };
    let placed = events.zip(head - count + 1..).map(|(mut row, pos)| {
        row.insert(0, Cell::from(pos));
        row
    });
    write(connection, &insert(&rows::EVENTS), placed)?;
    Ok(Some(FeedPos(head)))
}

pub(super) fn write(connection: &Connection, sql: &str, rows: impl IntoIterator<Item = Row>) -> Result<()> {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(sql).map_err(failure)?;
    for row in rows {
        statement.execute(params_from_iter(row)).map_err(failure)?;
    }
    Ok(())
}

pub(super) fn insert(table: &Table) -> String {
    let places: Vec<_> = (1..=table.columns.len()).map(|n| format!("${n}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", table.name, table.list(), places.join(", "))
}

pub(super) fn upsert(table: &Table, set: fn(&Table, &str) -> String) -> String {
    insert(table) + &sql::on_conflict(table, set)
}

pub(super) fn update(table: &Table, set: fn(&str, usize) -> String) -> String {
    let assign = |(place, column): (usize, &'static str)| set(column, place + 1);
    let same = |(place, column): (usize, &'static str)| format!("{column} = ?{}", place + 1);
    let sets: Vec<_> = table.names().enumerate().skip(table.key).map(assign).collect();
    let key: Vec<_> = table.names().enumerate().take(table.key).map(same).collect();
    // `?1` and not `$1`: the key comes first among the values but last in the text.
    format!("UPDATE {} SET {} WHERE {}", table.name, sets.join(", "), key.join(" AND "))
}

pub(super) fn replace(column: &str, place: usize) -> String {
    format!("{column} = ?{place}")
}

fn keep_when_empty(column: &str, place: usize) -> String {
    format!("{column} = COALESCE(?{place}, {column})")
}

fn later(column: &str, place: usize) -> String {
    format!("{column} = max(COALESCE({column}, ?{place}), ?{place})")
}
