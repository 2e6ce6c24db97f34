//! The ports of one coordinator, each behind the gate: what they do is the product's own code on the shared memory
//! stores, what may go wrong on the way is here. Planted bugs live here too and nowhere else.

mod backend;
mod blobs;
mod broker;
mod store;
mod topics;

pub use backend::NodeBackend;
pub use blobs::NoBlobs;
pub use broker::{NodeBroker, SeenJobs};
pub use store::NodeStore;
pub use topics::NodeTopics;

use giga_ports::StoreError;

fn cut_off(what: &str) -> StoreError {
    StoreError::Unavailable { reason: format!("simulated: {what} was cut off"), source: None }
}
