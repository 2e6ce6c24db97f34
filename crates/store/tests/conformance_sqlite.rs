//! The SQLite store against the exported suite, each case on a file of its own.

#[path = "fixtures/sqlite.rs"]
mod fixture;

giga_testkit::store_conformance!(fixture::Sqlite::new());
