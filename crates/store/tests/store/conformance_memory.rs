//! The memory store against the exported suite.

giga_testkit::store_conformance!(crate::fixtures::memory::Memory);
