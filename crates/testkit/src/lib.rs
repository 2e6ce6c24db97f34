//! What tests of several crates share: the conformance suite and model test of the store, a clock and a
//! randomness that tests decide, and real servers.
//!
//! Nothing here knows an implementation: a store crate hands its stores in as a [`store_suite::StoreFixture`].
#![expect(clippy::unwrap_used, reason = "a library of test code: a panic is how it reports")]

pub mod clock;
pub mod model;
pub mod postgres;
pub mod store_suite;

pub use clock::{ManualClock, SeededRandomness};
