//! The SQLite store against the exported suite, each case on a file of its own.
#![expect(clippy::unwrap_used, reason = "a test: a panic is how it reports")]

#[path = "fixtures/sqlite.rs"]
mod fixture;

giga_testkit::store_conformance!(fixture::Sqlite::new());
