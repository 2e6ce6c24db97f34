//! What the scheduler promises, seen from outside: every test goes through the public calls only.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod choice;
mod demand;
mod explain;
mod fairness;
mod model;
mod preempt;
mod properties;
mod queue;
mod routable;
mod world;
