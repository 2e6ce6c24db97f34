//! `transition()` against the table of the specification: each cell, each gate, each repetition, and random
//! histories.

mod fixture;
mod graph;
mod holder;
mod merge;
mod money;
mod properties;
mod requests;
mod reviews;
mod table;
mod talk;
