//! The second composition root: coordinators, factories, people and workers in one thread and in virtual time, with faults
//! that a seed decides.
//!
//! Everything but the world around it is the product's own code. Nothing here may depend on real time, on the operating
//! system's randomness or on a hash map's order: a seed replays exactly. The checkers know the history at the store's
//! boundary and what is left in the end, nothing of the code that they judge.

mod actors;
mod bug;
pub mod check;
mod clock;
mod history;
mod ports;
mod prng;
mod run;
mod scenario;
mod trace;
mod turnstile;
mod world;

pub use bug::Bug;
pub use check::{Promise, Violation};
pub use run::{Outcome, Tally, report, run, run_many};
pub use trace::fingerprint;
