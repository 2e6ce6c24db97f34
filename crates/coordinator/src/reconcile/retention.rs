//! Removes terminal jobs after their time, in batches, so that hot tables stay small.
//!
//! Logs and artifacts go first and the rows last: whatever cuts a sweep off, the rows that remain lead the next one to
//! the same jobs, so no bytes are ever left without a job that they could be found by.

use giga_ports::store::{Retire, RetireEffects};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::Actor;

use crate::{Coordinator, Error};

const BATCH: usize = 500;

impl Coordinator {
    pub(crate) async fn retain(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep(self.core.options.retention_every) => {}
            }
            match self.remove_expired_artifacts().await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "artifacts of ended jobs removed"),
                Err(error) => tracing::warn!(%error, "artifacts of ended jobs could not be removed"),
            }
            match self.retire_old().await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "old jobs removed"),
                Err(error) => tracing::warn!(%error, "old jobs could not be removed"),
            }
            if let Err(error) = self.retire_old_effects().await {
                tracing::warn!(%error, "old deliveries could not be removed");
            }
        }
    }

    /// Removes effects that were delivered or given up and are past their time; returns how many.
    pub async fn retire_old_effects(&self) -> Result<usize, Error> {
        let hours = self.fleet.flag("retention_hours").as_u64().unwrap_or(u64::MAX / 3600);
        let before = self.core.store.read().now().await?.minus(Duration::from_secs(hours * 3600));
        let mut count = 0;
        loop {
            let gone = self.core.store.retire_effects(RetireEffects { before, limit: BATCH }).await?;
            count += gone;
            if gone < BATCH || self.core.stop.is_cancelled() {
                return Ok(count);
            }
        }
    }

    /// Removes files of jobs that ended long enough ago; the jobs stay. Returns how many.
    pub async fn remove_expired_artifacts(&self) -> Result<usize, Error> {
        let hours = self.fleet.flag("artifact_retention_hours").as_u64().unwrap_or(0);
        if hours == 0 {
            return Ok(0);
        }
        let before = self.core.store.read().now().await?.minus(Duration::from_secs(hours * 3600));
        let mut count = 0;
        loop {
            let old = self.core.store.read().expired_artifacts(before, BATCH).await?;
            let found = old.len();
            // The row first, as whenever a file is deleted: bytes that nothing points to go with the job.
            for artifact in old {
                self.delete_artifact(artifact, Actor::system("retention")).await?;
            }
            count += found;
            if found < BATCH || self.core.stop.is_cancelled() {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }

    /// How long factories keep branches of ended jobs that were not merged.
    pub fn branch_retention_hours(&self) -> u64 {
        self.fleet.flag("branch_retention_hours").as_u64().unwrap_or(u64::MAX / 3600)
    }

    /// Removes everything past its time; returns how many jobs that were.
    pub async fn retire_old(&self) -> Result<usize, Error> {
        let hours = self.fleet.flag("retention_hours").as_u64().unwrap_or(u64::MAX / 3600);
        let before = self.core.store.read().now().await?.minus(Duration::from_secs(hours * 3600));
        let mut count = 0;
        loop {
            let old = self.core.store.read().retirable(before, BATCH).await?;
            let found = old.len();
            for job in &old {
                self.remove_bytes_of(*job).await?;
            }
            if found > 0 {
                count += self.core.store.retire(Retire { before, jobs: old }).await?.len();
            }
            if found < BATCH || self.core.stop.is_cancelled() {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }
}
