//! `giga top` without a terminal: frames as text, keys as values.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod docs;
mod fixture;
mod frames;
mod keys;
mod live;
mod storm;
