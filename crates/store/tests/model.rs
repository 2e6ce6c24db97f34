//! Random histories on all three stores, which must not be told apart.
#![expect(clippy::unwrap_used, reason = "a test: a panic is how it reports")]

#[path = "fixtures/memory.rs"]
mod memory;
#[path = "fixtures/postgres.rs"]
mod postgres;
#[path = "fixtures/sqlite.rs"]
mod sqlite;

use giga_testkit::model::{Contestant, Effort, compare};

const MEMORY: Contestant = ("memory", || Box::new(memory::Memory));
const SQLITE: Contestant = ("sqlite", || Box::new(sqlite::Sqlite::new()));
const POSTGRES: Contestant = ("postgres", || Box::new(postgres::Postgres::default()));

#[test]
fn long_histories_keep_the_invariants() {
    compare(&[MEMORY], Effort { cases: 256, steps: 120 }.or_as_asked());
}

#[test]
fn memory_sqlite_and_postgres_agree() {
    compare(&[MEMORY, SQLITE, POSTGRES], Effort { cases: 64, steps: 60 }.or_as_asked());
}
