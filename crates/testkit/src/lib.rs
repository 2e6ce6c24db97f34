//! What tests of several crates share: the conformance suites, the model test of the store, a clock and a
//! randomness that tests decide, and real servers.
//!
//! Nothing here knows an implementation: a store crate hands its stores in as a [`store_suite::StoreFixture`].
#![expect(clippy::unwrap_used, reason = "a library of test code: a panic is how it reports")]

pub mod azurite;
pub mod binary;
pub mod blob_suite;
pub mod broker_suite;
pub mod certificates;
pub mod clock;
pub mod driver_suite;
pub mod effects;
pub mod model;
pub mod nats;
pub mod oidc;
pub mod postgres;
pub mod secret_keys;
pub mod servicebus;
pub mod store_suite;
mod supervisor;
pub mod topic_suite;

pub use clock::{ManualClock, SeededRandomness};
