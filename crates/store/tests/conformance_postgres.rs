//! The PostgreSQL store against the exported suite, each case on a database of its own.
#![expect(clippy::unwrap_used, reason = "a test: a panic is how it reports")]

#[path = "fixtures/postgres.rs"]
mod fixture;

giga_testkit::store_conformance!(fixture::Postgres::default());
