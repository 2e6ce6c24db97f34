//! The stores against the exported suites, against each other, and against faults.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod budgets;
#[cfg(feature = "cosmos-emulator")]
mod conformance_cosmos;
mod conformance_memory;
mod conformance_postgres;
mod conformance_sqlite;
#[cfg(feature = "cosmos-emulator")]
mod cosmos;
mod effects_postgres;
mod faults_postgres;
mod fixtures;
mod locks_postgres;
mod migrations;
mod model;
mod topics;
mod topics_faults;
