//! The stores of topic jobs: hot and narrow tables of their own.
//!
//! ```text
//! callers ──▶ group ──▶ round: all that waits, by kind            grouping, command
//!                         │ 1 successes, renewals   set-wise       settles
//!                         │ 2 what has to be looked at: other words, sweeps, keys
//!                         │                         domain's step  batch, admission
//!                         │ 3 moves, new jobs, claims, counts      cursor, deal
//!                         ▼ 4 commit, then answer
//! ```
//!
//! The calls of a round were made at the same time, so a round may take them in any order. A round can be run again
//! after a passing error, even when the commit's fate is unknown: enqueues, settles and renewals find their own effect. A
//! claim is simply asked again; what the lost answer gave out comes back when its lease ends.
//!
//! `memory` has none of this and is what the others are held to.

mod admission;
mod batch;
mod command;
mod cursor;
mod deal;
mod grouped;
mod memory;
mod postgres;
mod reads;
mod settles;
mod sqlite;

pub use memory::MemoryTopics;

use std::path::Path;
use std::sync::Arc;

use giga_ports::{Clock, StoreError, TopicStore};

use crate::grouping::Tuning;
use crate::postgres::ClockSource;

/// Connects, and brings the schema up to date; whoever else starts at the same time waits for it.
pub async fn topics_on_postgres(
    url: &str,
    clock: ClockSource,
    tuning: Tuning,
) -> Result<Arc<dyn TopicStore>, StoreError> {
    Ok(Arc::new(postgres::open(url, clock, tuning).await?))
}

/// Opens the file, which is created where it is missing, and brings its schema up to date.
pub async fn topics_on_sqlite(
    path: &Path,
    clock: Arc<dyn Clock>,
    tuning: Tuning,
) -> Result<Arc<dyn TopicStore>, StoreError> {
    Ok(Arc::new(sqlite::open(path, clock, tuning).await?))
}
