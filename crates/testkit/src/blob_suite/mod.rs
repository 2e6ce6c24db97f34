//! The conformance suite of the ports for bytes. Every place that can hold artifacts and logs passes it.
//!
//! A case is an async function over a world that is a [`BlobFixture`]: an empty place, and handles on it as several coordinators would
//! have. The macro [`blob_conformance!`](crate::blob_conformance) makes a test of each.

pub mod artifacts;
pub mod logs;

use std::sync::Arc;

use giga_ports::{Artifacts, Logs};

/// One value is one place; a test makes its own.
pub trait BlobFixture: Send + Sync {
    /// As one process of many would have them.
    fn open(&self) -> (Arc<dyn Artifacts>, Arc<dyn Logs>);
}

include!(concat!(env!("OUT_DIR"), "/blob.rs"));
