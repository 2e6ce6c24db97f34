//! The conformance suite of the broker port. Every implementation passes it, the embedded one included.
//!
//! A case is an async function over a [`BrokerWorld`]: a broker that holds nothing, and handles on it as several
//! coordinators would have. The macro [`broker_conformance!`](crate::broker_conformance) makes a test of each. That
//! something does not come is shown by what comes instead, never by waiting for a while.

pub mod dead_letters;
pub mod hints;
pub mod losses;
pub mod offers;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::Broker;

pub use world::{BrokerWorld, a_dropped_broker_ends_its_readers, in_time, offer, persistently};

/// Where a case gets its broker from. One value is one broker; a test makes its own.
#[async_trait]
pub trait BrokerFixture: Send + Sync {
    /// A handle, as one process of many would have.
    async fn open(&self) -> Arc<dyn Broker>;

    /// The broker loses every offer, and whatever else it holds. It may be gone for a moment.
    async fn wipe(&self);
}

include!(concat!(env!("OUT_DIR"), "/broker.rs"));
