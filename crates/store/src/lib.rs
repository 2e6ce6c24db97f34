//! The only crate that knows SQL: the stores behind one batch engine.
//!
//! `engine` decides, purely, what a batch of commands changes; a backend only loads what the batch needs, locks it
//! and writes the result in one transaction. No rule of the domain is ever written in SQL a second time.

#[cfg(feature = "cosmos")]
pub mod cosmos;
pub mod engine;
mod grouping;
pub mod memory;
mod migrations;
mod open;
mod postgres;
mod rows;
mod sql;
mod sqlite;
mod topics;

pub use engine::BatchStore;
pub use grouping::Tuning;
pub use memory::MemoryBackend;
pub use open::{Stores, open};
pub use postgres::{ClockSource, PostgresBackend};
pub use sqlite::SqliteBackend;
pub use topics::{MemoryTopics, topics_on_postgres, topics_on_sqlite};

#[cfg(feature = "cosmos")]
pub use cosmos::CosmosBackend;

/// The reference model: plain maps behind the same engine.
pub type MemoryStore = BatchStore<MemoryBackend>;
/// One file, in this process.
pub type SqliteStore = BatchStore<SqliteBackend>;
/// Shared by several coordinators.
pub type PostgresStore = BatchStore<PostgresBackend>;
