//! The memory store against the exported suite.

#[path = "fixtures/memory.rs"]
mod fixture;

giga_testkit::store_conformance!(fixture::Memory);
