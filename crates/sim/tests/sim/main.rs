//! The simulator: seeds, their replay, and planted bugs.

mod planted;
mod replay;
mod seeds;
