//! From a store's URL to a running store. The only place where all of them are named together.

use std::path::Path;
use std::sync::Arc;

use giga_ports::{Clock, Store, StoreError, TopicStore};

use crate::engine::BatchStore;
use crate::grouping::Tuning;
use crate::{
    ClockSource, MemoryBackend, MemoryTopics, PostgresBackend, SqliteBackend, topics_on_postgres,
    topics_on_sqlite,
};

/// What a coordinator keeps: two ports on one database.
#[derive(Clone)]
pub struct Stores {
    pub jobs: Arc<dyn Store>,
    pub topics: Arc<dyn TopicStore>,
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}

/// `sqlite:PATH`, `postgres://…` (also `postgresql://…`) or `memory:`. PostgreSQL judges by its own clock, because
/// several coordinators share it; the others by the one given.
///
/// Built with the feature `cosmos`, also `cosmos://…`: see `docs/cosmos.md`.
pub async fn open(url: &str, clock: Arc<dyn Clock>, tuning: Tuning) -> Result<Stores, StoreError> {
    if url == "memory:" {
        let jobs = Arc::new(BatchStore::start(MemoryBackend::new(clock.clone()), tuning).await?);
        return Ok(Stores { jobs, topics: Arc::new(MemoryTopics::new(clock)) });
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let backend = PostgresBackend::open(url, ClockSource::Database).await?;
        let jobs = Arc::new(BatchStore::start(backend, tuning).await?);
        let topics = topics_on_postgres(url, ClockSource::Database, tuning).await?;
        return Ok(Stores { jobs, topics });
    }
    if url.starts_with("cosmos://") {
        return on_cosmos(url, clock, tuning).await;
    }
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    match path {
        Some(path) if !path.is_empty() && !path.starts_with(':') => {
            let backend = SqliteBackend::open(Path::new(path), clock.clone()).await?;
            let jobs = Arc::new(BatchStore::start(backend, tuning).await?);
            Ok(Stores { jobs, topics: topics_on_sqlite(Path::new(path), clock, tuning).await? })
        }
        // The URL is not repeated: what looks wrong here may still hold a password.
        _ => Err(StoreError::broken_because(
            "the store's URL is not one of `sqlite:PATH`, `postgres://USER@HOST/DATABASE` and `memory:`",
        )),
    }
}

#[cfg(not(feature = "cosmos"))]
#[expect(clippy::unused_async, reason = "the one that was built waits for the service")]
async fn on_cosmos(_: &str, _: Arc<dyn Clock>, _: Tuning) -> Result<Stores, StoreError> {
    Err(StoreError::broken_because(
        "this giga was built without Azure Cosmos DB; build it with `--features cosmos`",
    ))
}

/// Jobs in Cosmos DB, topic jobs where the address says.
#[cfg(feature = "cosmos")]
async fn on_cosmos(url: &str, clock: Arc<dyn Clock>, tuning: Tuning) -> Result<Stores, StoreError> {
    use crate::cosmos::{Address, Credential, TopicsAt, connect};

    let address = Address::parse(url)?;
    let credential = match &address.key_file {
        Some(path) => Credential::read(path).await?,
        None => Credential::default(),
    };
    let topics = match &address.topics {
        TopicsAt::Sqlite(path) => topics_on_sqlite(path, clock.clone(), tuning).await?,
        TopicsAt::Postgres(url) => topics_on_postgres(url, ClockSource::Database, tuning).await?,
    };
    let backend = crate::CosmosBackend::open(connect(&address, credential).await?, clock).await?;
    Ok(Stores { jobs: Arc::new(BatchStore::start(backend, tuning).await?), topics })
}

#[cfg(all(test, not(feature = "cosmos")))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_not_built_says_how_to_build_it() {
        let clock = Arc::new(giga_testkit::ManualClock::default());
        let refused = open("cosmos://acme/giga/fleet?topics=sqlite:t", clock, Tuning::default()).await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("build it with `--features cosmos`"), "{text}");
    }
}
