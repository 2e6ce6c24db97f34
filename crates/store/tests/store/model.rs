//! Random histories on all three stores, which must not be told apart.

use giga_testkit::model::{Contestant, Effort, compare};

use crate::fixtures::memory::Memory;
use crate::fixtures::postgres::Postgres;
use crate::fixtures::sqlite::Sqlite;

const MEMORY: Contestant = ("memory", || Box::new(Memory));
const SQLITE: Contestant = ("sqlite", || Box::new(Sqlite::new()));
const POSTGRES: Contestant = ("postgres", || Box::new(Postgres::default()));

#[test]
fn long_histories_keep_the_invariants() {
    compare(&[MEMORY], Effort { cases: 256, steps: 120 }.or_as_asked());
}

#[test]
fn memory_sqlite_and_postgres_agree() {
    compare(&[MEMORY, SQLITE, POSTGRES], Effort { cases: 64, steps: 60 }.or_as_asked());
}

#[cfg(feature = "cosmos-emulator")]
#[test]
fn memory_and_cosmos_agree() {
    use crate::fixtures::cosmos::{ByTurns, Cosmos};
    const COSMOS: Contestant = ("cosmos", || Box::new(Cosmos::default()));
    const BY_TURNS: Contestant = ("cosmos, by turns in three processes", || Box::new(ByTurns::default()));
    compare(&[MEMORY, COSMOS, BY_TURNS], Effort { cases: 64, steps: 60 }.or_as_asked());
}
