//! The factory from outside: real git, real processes, a real coordinator. Nothing here reaches a network.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod agent;
mod engines;
mod escape;
mod folder;
mod workspace;
