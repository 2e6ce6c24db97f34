//! Removes terminal jobs after their time, in batches, so that hot tables stay small.

use std::sync::Arc;
use std::time::Duration;

use crate::Coordinator;

const BATCH: usize = 500;

impl Coordinator {
    pub(crate) async fn retain(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(self.options.retention_every) => {}
            }
            match self.retire_old().await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "old jobs removed"),
                Err(error) => tracing::warn!(%error, "old jobs could not be removed"),
            }
        }
    }

    /// Removes everything past its time; returns how many jobs that were.
    pub async fn retire_old(&self) -> Result<usize, giga_ports::StoreError> {
        let hours = self.flag("retention_hours").as_u64().unwrap_or(u64::MAX / 3600);
        let before = self.store.read().now().await?.minus(Duration::from_secs(hours * 3600));
        let mut count = 0;
        loop {
            let removed = self.store.retire(before, BATCH).await?;
            count += removed;
            if removed < BATCH || self.stop.is_cancelled() {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }
}
