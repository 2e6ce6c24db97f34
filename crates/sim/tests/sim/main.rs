//! The simulator: seeds, their replay, and planted bugs.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod planted;
mod replay;
mod seeds;
