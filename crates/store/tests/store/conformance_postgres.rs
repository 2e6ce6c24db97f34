//! The PostgreSQL store against the exported suite, each case on a database of its own.

giga_testkit::store_conformance!(crate::fixtures::postgres::Postgres::default());
