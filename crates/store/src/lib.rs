//! The only crate that knows SQL: three stores behind one batch engine.
//!
//! `engine` decides, purely, what a batch of commands changes; a backend only loads what the batch needs, locks it
//! and writes the result in one transaction. No rule of the domain is ever written in SQL a second time.

pub mod engine;
pub mod memory;

pub use engine::{BatchStore, Tuning};
pub use memory::MemoryBackend;

/// The reference model: plain maps behind the same engine.
pub type MemoryStore = BatchStore<MemoryBackend>;
