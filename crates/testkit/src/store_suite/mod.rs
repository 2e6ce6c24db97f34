//! The conformance suite of the store port. Every implementation passes it, the memory store included.
//!
//! A case is an async function over a [`World`]: a fresh, empty store with a clock that the case moves. The macro
//! [`store_conformance!`](crate::store_conformance) makes a test of each, so that a failure has the case's name.

pub mod artifacts;
pub mod batches;
pub mod budgets;
pub mod charges;
pub mod claim;
pub mod dispatch;
pub mod effect_batches;
pub mod effects;
pub mod events;
pub mod evictions;
pub mod factories;
pub mod fence;
pub mod graphs;
pub mod hold;
pub mod leading;
pub mod merges;
pub mod pools;
pub mod products;
pub mod profiles;
pub mod races;
pub mod reads;
pub mod secrets;
pub mod steer;
pub mod submit;
pub mod sweeps;
pub mod talks;
pub mod tokens;
pub mod webhooks;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::Store;

use crate::ManualClock;
pub use world::{Snapshot, World};

/// A name for one call of an operator or a reviewer.
pub fn steer_request() -> giga_domain::RequestId {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let call = CALLS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    format!("steer-{call}").parse().unwrap()
}

/// Where a case gets its store from. One value is one set of data; a test makes its own.
#[async_trait]
pub trait StoreFixture: Send + Sync {
    /// The first handle, on empty data.
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store>;

    /// A further handle on the same data, as another process would have. `None` where the store lives in one
    /// process only.
    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn Store>>;
}

include!(concat!(env!("OUT_DIR"), "/store.rs"));
