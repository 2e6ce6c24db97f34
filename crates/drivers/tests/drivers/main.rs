//! The drivers against what they drive: processes, programs, and an API server that takes nothing that a real one would refuse.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod command;
mod kubernetes;
mod process;
