//! The use cases on the memory store, with a clock that the test moves.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod accounts;
mod budgets;
mod capabilities;
mod claims;
mod common;
mod credentials;
mod dispatch_idle;
mod dispatch_modes;
mod dispatch_outage;
mod dispatch_streams;
mod dispatch_traps;
mod effects;
mod fair_shares;
mod graph;
mod life;
mod pools;
mod preemption;
mod repeats;
mod talk;
mod topics;
