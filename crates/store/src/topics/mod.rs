//! The stores of topic jobs: hot and narrow tables of their own.

mod admission;
mod command;
mod cursor;
mod deal;
mod desk;
mod grouped;
mod memory;
mod postgres;
mod reads;
mod settles;

pub use memory::MemoryTopics;

use std::sync::Arc;

use giga_ports::{StoreError, TopicStore};

use crate::grouping::Tuning;
use crate::postgres::StoreClock;

/// Connects, and brings the schema up to date; whoever else starts at the same time waits for it.
pub async fn topics_on_postgres(
    url: &str,
    clock: StoreClock,
    tuning: Tuning,
) -> Result<Arc<dyn TopicStore>, StoreError> {
    Ok(Arc::new(postgres::open(url, clock, tuning).await?))
}
