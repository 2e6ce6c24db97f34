//! What leaves the house: webhooks and trackers.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod common;
mod forges;
mod github;
mod receiver;
mod trackers;
