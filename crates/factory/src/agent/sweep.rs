//! Cleans up every hour. The coordinator decides which jobs have ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use giga_api::client::Client;
use giga_api::wire::ProblemCode;
use giga_domain::{JobId, Stage, Timestamp};
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::workspace::{GcOptions, JobStates};

/// With less than this free, mirrors that lie idle go as well.
pub const DISK_FLOOR_BYTES: u64 = 2 * 1024 * 1024 * 1024;

const EVERY: Duration = Duration::from_hours(1);
/// Jobs that are asked about at the same time.
const CONCURRENCY: usize = 8;

/// What the coordinator knows of jobs. No answer is an error, never "unknown".
#[derive(Debug, Clone)]
pub struct CoordinatorStages(pub Client);

#[async_trait]
impl JobStates for CoordinatorStages {
    async fn stages(&self, jobs: &[JobId]) -> Result<BTreeMap<JobId, Stage>, String> {
        let asked = jobs.iter().copied().map(|job| self.stage(job));
        let known: Vec<_> = futures::stream::iter(asked).buffered(CONCURRENCY).try_collect().await?;
        Ok(known.into_iter().flatten().collect())
    }
}

impl CoordinatorStages {
    async fn stage(&self, job: JobId) -> Result<Option<(JobId, Stage)>, String> {
        match self.0.job(&job.to_string()).await {
            Ok(answer) => Ok(Some((job, answer.stage.into()))),
            Err(error) if error.code() == Some(ProblemCode::NotFound) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let stages = CoordinatorStages(shared.client.clone());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let options =
            GcOptions { disk_floor_bytes: DISK_FLOOR_BYTES, ..GcOptions::at(Timestamp::ZERO.plus(now)) };
        let swept = tokio::select! {
            // It can be cut off anywhere: what it had not done yet, the next one does.
            () = stop.cancelled() => return,
            swept = shared.workspace.gc(&stages, options) => swept,
        };
        match swept {
            Ok(report) if report.removed.is_empty() => tracing::debug!("nothing to clean up"),
            Ok(report) => tracing::info!(
                removed = report.removed.len(),
                kept = report.kept.len(),
                "cleaned up after ended jobs"
            ),
            Err(error) => tracing::warn!(%error, "cleanup failed; it runs again in an hour"),
        }
    }
}
