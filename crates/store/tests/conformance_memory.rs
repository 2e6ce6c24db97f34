//! The memory store against the exported suite.
#![expect(clippy::unwrap_used, reason = "a test: a panic is how it reports")]

#[path = "fixtures/memory.rs"]
mod fixture;

giga_testkit::store_conformance!(fixture::Memory);
