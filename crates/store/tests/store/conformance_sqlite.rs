//! The SQLite store against the exported suite, each case on a file of its own.

giga_testkit::store_conformance!(crate::fixtures::sqlite::Sqlite::new());
