//! The library against a coordinator that answers as each test says: what is sent, when, and what becomes of the answer.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod drain;
mod enqueue;
mod leases;
mod reports;
mod streams;
mod stub;
