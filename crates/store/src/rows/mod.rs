//! Between domain types and column values: the one place that knows which column holds what.
//!
//! Nothing here talks to a database, and nothing here trusts one: a value that cannot be read becomes an error
//! that names table, column and row, never a panic and never a default.

mod artifact;
mod budget;
mod dispatch;
mod effects;
mod filter;
mod fleet;
mod history;
mod job;
mod pools;
mod products;
mod secret;
mod topic;

pub(crate) use artifact::{ARTIFACT_BYTES, ARTIFACTS, artifact, artifact_bytes, artifact_row};
pub(crate) use budget::{BUCKETS, BUDGETS, CHARGES, bucket, budget, budget_row, charge, charge_row};
pub(crate) use dispatch::{LEADER, OFFERS, leader, leader_row, offer_row, waiting};
pub(crate) use effects::{
    EFFECT_CHANGES, EFFECT_COUNTS, EFFECT_RECEIVERS, EFFECTS, EFFECTS_OVER, EFFECTS_WAITING, FAN_OUT,
    WEBHOOKS, cursor, effect, effect_change_row, effect_counts, effect_over, effect_receiver, effect_row,
    effects_waiting, target_cell, webhook, webhook_row,
};
pub(crate) use filter::{effects_query, list_query};
pub(crate) use fleet::{
    FACTORIES, FLAGS, QUEUE_COUNTS, SIGHTINGS, TOKENS, factory, factory_row, flag, flag_row, queue_count,
    queue_count_row, queue_states, sighting_row, token, token_row,
};
pub(crate) use history::{EVENTS, RUN_CHANGES, RUNS, RunRows, event, event_row, run};
pub(crate) use job::{
    DEPS, JOB_CHANGES, JOB_READ, JOB_TEXTS, JOBS, LEASE_READ, LEASES, dep_rows, job, job_change_row, job_row,
    job_text, lease, lease_row, lease_units, leased_job, text_row,
};
pub(crate) use pools::{MEMBERS, POOLS, member, member_row, pool, pool_row};
pub(crate) use products::{
    PRODUCTS, PROFILES, SECRETS, product, product_row, profile, profile_row, shared_key, shared_key_row,
};
pub(crate) use secret::{JOB_SECRET_LABELS, JOB_SECRETS, sealed_secret, sealed_secret_row, secret};
pub(crate) use topic::{
    TOPIC_COUNTS, TOPIC_GATES, TOPIC_JOBS, TOPIC_OWNERS, TOPIC_PLACES, TopicPlace, TopicRow, topic_counts,
    topic_job, topic_owner, topic_pause, topic_place, topic_row,
};

use std::fmt::Display;
use std::str::FromStr;

use giga_domain::{Timestamp, Usd};
use giga_ports::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Bytes,
}

/// Columns of a table that are written or read together. The first `key` of them name the row.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) key: usize,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

impl Table {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// `a, b, c`
    pub(crate) fn list(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// `table.a, table.b, table.c`
    pub(crate) fn qualified_list(&self) -> String {
        self.names().map(|name| format!("{}.{name}", self.name)).collect::<Vec<_>>().join(", ")
    }
}

/// A value on its way into a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
}

pub(crate) type Row = Vec<Cell>;

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Timestamp> for Cell {
    fn from(at: Timestamp) -> Self {
        Self::Int(at.as_millis())
    }
}

impl From<Usd> for Cell {
    fn from(usd: Usd) -> Self {
        Self::Int(usd.micros())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        // Counters that start at zero and rise by one do not get there; a caller's cursor can, and is past the end.
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    /// For limits, where more than the database can count means all.
    fn from(limit: usize) -> Self {
        Self::Int(i64::try_from(limit).unwrap_or(i64::MAX))
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

pub(crate) fn text(value: impl Display) -> Cell {
    Cell::Text(value.to_string())
}

fn json(value: &impl Serialize) -> Cell {
    let text = serde_json::to_string(value).expect("domain types have string keys only, so they are JSON");
    Cell::Text(text)
}

/// A row on its way out, by the position of its columns.
pub(crate) trait Source {
    fn text(&self, column: usize) -> Result<Option<&str>, String>;
    fn int(&self, column: usize) -> Result<Option<i64>, String>;
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, String>;
}

/// Reads the columns of a row one after the other, in the order of its [`Table`].
pub(crate) struct Fields<'r> {
    source: &'r dyn Source,
    table: &'static Table,
    start: usize,
    next: usize,
}

type Read<T> = Result<T, StoreError>;

impl<'r> Fields<'r> {
    pub(crate) fn new(source: &'r dyn Source, table: &'static Table) -> Self {
        Self { source, table, start: 0, next: 0 }
    }

    /// The columns that follow are those of another table: the right side of a join.
    fn then(&mut self, table: &'static Table) {
        self.table = table;
        self.start = self.next;
    }

    fn fail<T>(&self, column: usize, why: impl Display) -> Read<T> {
        let row = match (self.source.text(0), self.source.int(0)) {
            (Ok(Some(id)), _) => id.to_owned(),
            (_, Ok(Some(id))) => id.to_string(),
            _ => "?".to_owned(),
        };
        let name = self.table.columns.get(column - self.start).map_or("?", |(name, _)| name);
        Err(StoreError::broken_because(format!(
            "{}.{name} of row {row} cannot be read: {why}",
            self.table.name
        )))
    }

    fn step(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn required<T>(&self, column: usize, value: Option<T>) -> Read<T> {
        value.map_or_else(|| self.fail(column, "it is empty"), Ok)
    }

    fn text_or_null(&mut self) -> Read<Option<&'r str>> {
        let column = self.step();
        self.source.text(column).or_else(|why| self.fail(column, why))
    }

    pub(crate) fn text(&mut self) -> Read<&'r str> {
        let value = self.text_or_null()?;
        self.required(self.next - 1, value)
    }

    fn int_or_null(&mut self) -> Read<Option<i64>> {
        let column = self.step();
        self.source.int(column).or_else(|why| self.fail(column, why))
    }

    pub(crate) fn int(&mut self) -> Read<i64> {
        let value = self.int_or_null()?;
        self.required(self.next - 1, value)
    }

    fn utf8(&mut self) -> Read<String> {
        let column = self.step();
        let bytes = self.source.bytes(column).or_else(|why| self.fail(column, why))?;
        let bytes = self.required(column, bytes)?.to_vec();
        String::from_utf8(bytes).or_else(|why| self.fail(column, why))
    }

    pub(crate) fn parse<T: FromStr<Err: Display>>(&mut self) -> Read<T> {
        let value = self.text()?;
        value.parse().or_else(|why| self.fail(self.next - 1, why))
    }

    pub(crate) fn parse_or_null<T: FromStr<Err: Display>>(&mut self) -> Read<Option<T>> {
        let value = self.text_or_null()?;
        value.map(str::parse).transpose().or_else(|why| self.fail(self.next - 1, why))
    }

    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> Read<T> {
        let value = self.text()?;
        serde_json::from_str(value).or_else(|why| self.fail(self.next - 1, why))
    }

    fn json_or_null<T: DeserializeOwned>(&mut self) -> Read<Option<T>> {
        let value = self.text_or_null()?;
        value.map(serde_json::from_str).transpose().or_else(|why| self.fail(self.next - 1, why))
    }

    pub(crate) fn time(&mut self) -> Read<Timestamp> {
        Ok(Timestamp::from_millis(self.int()?))
    }

    fn time_or_null(&mut self) -> Read<Option<Timestamp>> {
        Ok(self.int_or_null()?.map(Timestamp::from_millis))
    }

    /// A number that cannot be negative.
    pub(crate) fn count<T: TryFrom<i64, Error: Display>>(&mut self) -> Read<T> {
        let value = self.int()?;
        T::try_from(value).or_else(|why| self.fail(self.next - 1, format!("{value}: {why}")))
    }

    pub(crate) fn usd(&mut self) -> Read<Usd> {
        self.int().map(Usd::from_micros)
    }

    /// The same where it is never negative.
    pub(crate) fn amount(&mut self) -> Read<Usd> {
        let usd = self.usd()?;
        if usd.is_negative() { self.fail(self.next - 1, format!("{usd} is negative")) } else { Ok(usd) }
    }

    /// What was read is well-formed but contradicts the rest of the row.
    fn contradiction<T>(&self, why: impl Display) -> Read<T> {
        self.fail(self.next - 1, why)
    }
}

/// A row of one column: an id.
pub(crate) fn id<T: FromStr<Err: Display>>(fields: &mut Fields<'_>) -> Read<T> {
    fields.parse()
}

/// A row of one column: a time.
pub(crate) fn time(fields: &mut Fields<'_>) -> Read<Timestamp> {
    fields.time()
}

/// A row of one column: a number that cannot be negative.
pub(crate) fn number<T: TryFrom<i64, Error: Display>>(fields: &mut Fields<'_>) -> Read<T> {
    fields.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Cells(Vec<Cell>);

    impl Source for Cells {
        fn text(&self, column: usize) -> Result<Option<&str>, String> {
            match &self.0[column] {
                Cell::Text(text) => Ok(Some(text)),
                Cell::Null => Ok(None),
                other => Err(format!("{other:?} is not text")),
            }
        }
        fn int(&self, column: usize) -> Result<Option<i64>, String> {
            match &self.0[column] {
                Cell::Int(number) => Ok(Some(*number)),
                Cell::Null => Ok(None),
                other => Err(format!("{other:?} is not a number")),
            }
        }
        fn bytes(&self, column: usize) -> Result<Option<&[u8]>, String> {
            match &self.0[column] {
                Cell::Bytes(bytes) => Ok(Some(bytes)),
                Cell::Null => Ok(None),
                other => Err(format!("{other:?} is not bytes")),
            }
        }
    }

    fn refusal<T: std::fmt::Debug>(
        table: &'static Table,
        row: Row,
        read: fn(&mut Fields<'_>) -> Read<T>,
    ) -> String {
        read(&mut Fields::new(&Cells(row), table)).unwrap_err().to_string()
    }

    #[test]
    fn an_unreadable_value_is_named_by_table_column_and_row() {
        let flag_text = refusal(&FLAGS, vec!["strict".into(), "{".into()], flag);
        assert!(flag_text.contains("flags.value of row strict cannot be read"), "{flag_text}");
        let missing = refusal(&FLAGS, vec!["strict".into(), Cell::Null], flag);
        assert!(missing.contains("flags.value of row strict cannot be read: it is empty"), "{missing}");
        let wrong_type = refusal(&FLAGS, vec!["strict".into(), Cell::Int(1)], flag);
        assert!(wrong_type.contains("flags.value of row strict"), "{wrong_type}");
        let counts = vec!["demo".into(), "assigned".into(), Cell::Int(1), Cell::Int(-1)];
        let negative = refusal(&QUEUE_COUNTS, counts, queue_count);
        assert!(negative.contains("queue_counts.jobs of row demo"), "{negative}");
        assert!(negative.contains("cannot be read: -1"), "{negative}");
    }
}
