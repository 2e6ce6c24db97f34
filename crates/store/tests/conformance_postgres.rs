//! The PostgreSQL store against the exported suite, each case on a database of its own.

#[path = "fixtures/postgres.rs"]
mod fixture;

giga_testkit::store_conformance!(fixture::Postgres::default());
