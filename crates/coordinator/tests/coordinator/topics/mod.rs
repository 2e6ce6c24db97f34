//! Topics on the memory store: what the hub may and may not do.

mod cluster;
mod leases;
mod operators;
mod streams;
mod wakes;
mod world;
