//! The Cosmos DB store against the exported suite, each case on an account of its own in the emulator.

giga_testkit::store_conformance!(crate::fixtures::cosmos::Cosmos::default());
