//! Cleaning up after jobs: explicit, repeatable, and safe to run beside a working agent.
//!
//! Never deletes what a running agent holds, what belongs to a job that the coordinator does not know or that has not
//! ended, or what is not merged before its time is over. Where it cannot prove that something may go, it keeps it and
//! says why.

mod branches;
mod folders;
mod space;

pub(super) use branches::list_origin;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{JobId, Stage, Timestamp};

use super::Workspace;
use super::error::WorkspaceError;

/// The coordinator's word on jobs.
#[async_trait]
pub trait JobStates: Send + Sync {
    /// A job that is missing in the answer is unknown to the coordinator.
    async fn known(&self, jobs: &[JobId]) -> Result<Known, String>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    pub jobs: BTreeMap<JobId, JobState>,
    /// How long branches that were not merged are kept after the end of their job.
    pub unmerged_kept: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobState {
    pub stage: Stage,
    /// Of one that has ended for good.
    pub ended_at: Option<Timestamp>,
}

impl Known {
    /// How long ago the job ended.
    fn age(&self, job: JobId, now: Timestamp) -> Option<Duration> {
        self.jobs.get(&job)?.ended_at.map(|ended| now.since(ended))
    }
}

#[derive(Debug, Clone)]
pub struct GcOptions {
    /// Say what would go, and touch nothing.
    pub dry_run: bool,
    pub now: Timestamp,
    /// Below this much free space, mirrors that lie idle go as well.
    pub disk_floor_bytes: u64,
    pub mirror_idle: Duration,
    /// How long quarantined work is kept even though it is merged.
    pub quarantine_kept: Duration,
}

impl GcOptions {
    pub const fn at(now: Timestamp) -> Self {
        Self {
            dry_run: false,
            now,
            disk_floor_bytes: 0,
            mirror_idle: Duration::from_hours(24 * 7),
            quarantine_kept: Duration::from_hours(24 * 30),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GcKind {
    Worktree,
    LocalBranch,
    OriginBranch,
    Mirror,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcItem {
    pub kind: GcKind,
    pub name: String,
    /// Whose it is; mirrors are nobody's.
    pub job: Option<JobId>,
    /// Since the end of the job, where it has ended.
    pub age: Option<Duration>,
    pub why: String,
}

impl GcItem {
    fn new(kind: GcKind, name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { kind, name: name.into(), job: None, age: None, why: why.into() }
    }

    fn of(self, job: JobId, age: Option<Duration>) -> Self {
        Self { job: Some(job), age, ..self }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcReport {
    /// What went, or in a dry run would go.
    pub removed: Vec<GcItem>,
    pub kept: Vec<GcItem>,
    pub free_bytes: u64,
}

impl Workspace {
    pub async fn gc(&self, states: &dyn JobStates, options: GcOptions) -> Result<GcReport, WorkspaceError> {
        let mut report = GcReport::default();
        // Folders first: what is saved out of them goes to refs that the next step looks at.
        self.gc_folders(states, &options, &mut report).await?;
        for source in self.mirrored().collect::<Vec<_>>() {
            self.gc_branches(&source, states, &options, &mut report).await?;
        }
        self.gc_space(&options, &mut report).await?;
        report.free_bytes = self.free_bytes()?;
        Ok(report)
    }
}

/// Why a job's things stay, or `None` when it has ended for good.
fn keeps(job: Option<&JobState>) -> Option<String> {
    match job {
        None => Some("the coordinator does not know the job".to_owned()),
        Some(job) if !job.stage.is_terminal() => Some(format!("the job is {}", job.stage.label())),
        Some(_) => None,
    }
}

async fn ask(states: &dyn JobStates, jobs: Vec<JobId>) -> Result<Known, WorkspaceError> {
    if jobs.is_empty() {
        return Ok(Known::default());
    }
    let asked = states.known(&jobs).await;
    asked.map_err(|detail| WorkspaceError::Git {
        action: "asking the coordinator about jobs".to_owned(),
        detail,
    })
}
