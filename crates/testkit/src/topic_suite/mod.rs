//! The conformance suite of the topic store port. Every implementation passes it, the memory store included.
//!
//! A case is an async function over a [`TopicWorld`]: a fresh, empty store with a clock that the case moves. The macro
//! [`topic_conformance!`](crate::topic_conformance) makes a test of each, so that a failure has the case's name.

pub mod batches;
pub mod claim;
pub mod enqueue;
pub mod races;
pub mod reads;
pub mod settle;
pub mod sweeps;
pub mod walk;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::TopicStore;

use crate::ManualClock;
pub use world::TopicWorld;

/// Where a case gets its store from. One value is one set of data; a test makes its own.
#[async_trait]
pub trait TopicFixture: Send + Sync {
    /// The first handle, on empty data.
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn TopicStore>;

    /// A further handle on the same data, as another process would have. `None` where the store lives in one
    /// process only.
    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn TopicStore>>;
}

include!(concat!(env!("OUT_DIR"), "/topic.rs"));
