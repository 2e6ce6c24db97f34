//! The store: the only truth. It speaks in use cases, not in rows.
//!
//! Every write is one atomic step that is durable when it is answered, is judged by the store's own clock, and is
//! safe to repeat: the same command after a lost reply finds its own effect and is answered the same way.
//! Implementations share transactions between callers where nobody can tell.
//!
//! A read looks without touching. It sees everything that was answered before it began.
//!
//! The port is cut by nouns, a file each: the traits, the commands, the answers. To add a call is to add a line to the list
//! of its noun; see `noun.rs`.

#[macro_use]
mod noun;

mod error;
mod intercept;

mod artifacts;
mod budgets;
mod dispatch;
mod events;
mod factories;
mod graph;
mod health;
mod jobs;
mod merges;
mod outbox;
mod pools;
mod registry;
mod secrets;
mod tokens;

pub use error::StoreError;
pub use intercept::{Intercept, InterceptReads};
pub use noun::{Execute, Write};

pub use artifacts::*;
pub use budgets::*;
pub use dispatch::*;
pub use events::*;
pub use factories::*;
pub use graph::*;
pub use health::*;
pub use jobs::*;
pub use merges::*;
pub use outbox::*;
pub use pools::*;
pub use registry::*;
pub use secrets::*;
pub use tokens::*;

use giga_domain::FeedPos;
use tokio::sync::watch;

pub trait Store:
    JobStore
    + ArtifactStore
    + MergeStore
    + GraphStore
    + FactoryStore
    + TokenStore
    + DispatchStore
    + BudgetStore
    + OutboxStore
    + RegistryStore
    + SecretStore
    + PoolStore
    + EventStore
{
    /// Everything that only looks.
    fn read(&self) -> &dyn StoreReads;

    /// The newest feed position that this process committed. A hint to look, never the truth: other processes
    /// write too.
    fn head(&self) -> watch::Receiver<FeedPos>;

    fn stats(&self) -> StoreStats;
}

/// The reads of every noun.
pub trait StoreReads:
    HealthReads
    + JobReads
    + ArtifactReads
    + GraphReads
    + FactoryReads
    + TokenReads
    + DispatchReads
    + BudgetReads
    + OutboxReads
    + RegistryReads
    + SecretReads
    + PoolReads
    + EventReads
{
}

impl<T> StoreReads for T where
    T: HealthReads
        + JobReads
        + ArtifactReads
        + GraphReads
        + FactoryReads
        + TokenReads
        + DispatchReads
        + BudgetReads
        + OutboxReads
        + RegistryReads
        + SecretReads
        + PoolReads
        + EventReads
{
}

/// Counted since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Write transactions that were committed.
    pub commits: u64,
    /// Commands that they carried.
    pub commands: u64,
    /// Transactions that had to be run again.
    pub retries: u64,
}
