//! `transition()` against the table of the specification: each cell, each gate, each repetition, and random
//! histories.

mod fixture;
mod holder;
mod merge;
mod properties;
mod table;
