//! Topics on the memory store: what the hub may and may not do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod cluster;
mod leases;
mod operators;
mod streams;
mod wakes;
mod world;
