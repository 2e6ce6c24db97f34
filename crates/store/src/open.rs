//! From a store's URL to a running store. The only place where all three are named together.

use std::path::Path;
use std::sync::Arc;

use giga_ports::{Clock, Store, StoreError};

use crate::engine::{BatchStore, Tuning};
use crate::{MemoryBackend, PostgresBackend, SqliteBackend, StoreClock};

/// `sqlite:PATH`, `postgres://…` (also `postgresql://…`) or `memory:`. PostgreSQL judges by its own clock, because
/// several coordinators share it; the others by the one given.
pub async fn open(url: &str, clock: Arc<dyn Clock>, tuning: Tuning) -> Result<Arc<dyn Store>, StoreError> {
    if url == "memory:" {
        return Ok(Arc::new(BatchStore::start(MemoryBackend::new(clock), tuning).await?));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let backend = PostgresBackend::open(url, StoreClock::Database).await?;
        return Ok(Arc::new(BatchStore::start(backend, tuning).await?));
    }
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    match path {
        Some(path) if !path.is_empty() && !path.starts_with(':') => {
            let backend = SqliteBackend::open(Path::new(path), clock).await?;
            Ok(Arc::new(BatchStore::start(backend, tuning).await?))
        }
        // The URL is not repeated: what looks wrong here may still hold a password.
        _ => Err(StoreError::broken_because(
            "the store's URL is not one of `sqlite:PATH`, `postgres://USER@HOST/DATABASE` and `memory:`",
        )),
    }
}
