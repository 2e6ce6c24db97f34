//! Cleans up every hour. The coordinator decides which jobs have ended, whoever ran them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use giga_api::client::Client;
use giga_domain::{JobId, Timestamp, limits};
use tokio_util::sync::CancellationToken;

use super::{Shared, work::SESSIONS};
use crate::workspace::{GcOptions, JobState, JobStates, Known};

/// With less than this free, mirrors that lie idle go as well.
pub const DISK_FLOOR_BYTES: u64 = 2 * 1024 * 1024 * 1024;

const EVERY: Duration = Duration::from_hours(1);

/// How long the sessions of a job are kept after an engine first ran it here.
const SESSIONS_KEPT: Duration = Duration::from_hours(14 * 24);

/// What the coordinator knows of jobs. No answer is an error, never "unknown".
#[derive(Debug, Clone)]
pub struct CoordinatorStages(pub Client);

#[async_trait]
impl JobStates for CoordinatorStages {
    async fn known(&self, jobs: &[JobId]) -> Result<Known, String> {
        let mut known = Known::default();
        for some in jobs.chunks(limits::LISTED_IDS) {
            let ids: Vec<String> = some.iter().map(ToString::to_string).collect();
            let answer = self.0.stages(&ids).await.map_err(|error| error.to_string())?.value;
            known.unmerged_kept = Duration::from_hours(answer.branch_retention_hours);
            for job in answer.jobs {
                let id: JobId = job.id.parse().map_err(|_| format!("`{}` is no job", job.id))?;
                let ended_at = job.ended_at.map(|text| text.parse::<Timestamp>()).transpose();
                let ended_at = ended_at.map_err(|error| format!("when {id} ended: {error}"))?;
                known.jobs.insert(id, JobState { stage: job.stage.into(), ended_at });
            }
        }
        Ok(known)
    }
}

pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let stages = CoordinatorStages(shared.client.clone());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        forget_sessions(&shared.base.join(SESSIONS), SystemTime::now());
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

/// Of jobs that began long ago. One that comes back begins a new session.
fn forget_sessions(folder: &Path, now: SystemTime) {
    for job in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let used = job.metadata().and_then(|meta| meta.modified());
        let is_old = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|since| since > SESSIONS_KEPT));
        if is_old && let Err(error) = std::fs::remove_dir_all(job.path()) {
            tracing::debug!(folder = %job.path().display(), %error, "old sessions stay for now");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_sessions_go() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("job/claude/.claude/projects")).unwrap();
        let now = SystemTime::now();
        forget_sessions(folder.path(), now);
        assert!(folder.path().join("job/claude").is_dir());
        forget_sessions(folder.path(), now + SESSIONS_KEPT + Duration::from_secs(1));
        assert!(!folder.path().join("job").exists());
    }
}
