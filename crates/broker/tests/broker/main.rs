//! The brokers against the exported suite, and against faults.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod conformance_embedded;
mod conformance_nats;
mod conformance_postgres;
mod conformance_servicebus;
mod expired;
mod faults_nats;
mod faults_postgres;
mod faults_servicebus;
mod identity_servicebus;
mod isolation_nats;
mod latency;
