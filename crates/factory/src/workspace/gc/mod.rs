//! Cleaning up after jobs: explicit, repeatable, and safe to run beside a working agent.
//!
//! Never deletes what is not merged, what a running agent holds, or what belongs to a job that the coordinator does
//! not know or has not ended. Where it cannot prove that something may go, it keeps it and says why.

mod branches;
mod folders;
mod space;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{JobId, Stage, Timestamp};

use super::Workspace;
use super::error::WorkspaceError;

/// The coordinator's word on jobs.
#[async_trait]
pub trait JobStates: Send + Sync {
    /// The stage of each job that the coordinator knows; a job that is missing in the answer is unknown to it.
    async fn stages(&self, jobs: &[JobId]) -> Result<BTreeMap<JobId, Stage>, String>;
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
    pub why: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcReport {
    /// What went, or in a dry run would go.
    pub removed: Vec<GcItem>,
    pub kept: Vec<GcItem>,
    pub free_bytes: u64,
}

impl GcReport {
    fn removed(&mut self, kind: GcKind, name: impl Into<String>, why: impl Into<String>) {
        self.removed.push(GcItem { kind, name: name.into(), why: why.into() });
    }

    fn kept(&mut self, kind: GcKind, name: impl Into<String>, why: impl Into<String>) {
        self.kept.push(GcItem { kind, name: name.into(), why: why.into() });
    }
}

impl Workspace {
    pub async fn gc(&self, known: &dyn JobStates, options: GcOptions) -> Result<GcReport, WorkspaceError> {
        let mut report = GcReport::default();
        // Folders first: what is saved out of them goes to refs that the next step looks at.
        self.gc_folders(known, &options, &mut report).await?;
        for source in self.mirrored().collect::<Vec<_>>() {
            self.gc_branches(&source, known, &options, &mut report).await?;
        }
        self.gc_space(&options, &mut report).await?;
        report.free_bytes = self.free_bytes()?;
        Ok(report)
    }
}

/// Why a job's things stay, or `None` when it has ended for good.
fn keeps(stage: Option<&Stage>) -> Option<String> {
    match stage {
        None => Some("the coordinator does not know the job".to_owned()),
        Some(stage) if !stage.is_terminal() => Some(format!("the job is {stage}")),
        Some(_) => None,
    }
}

async fn ask(known: &dyn JobStates, jobs: Vec<JobId>) -> Result<BTreeMap<JobId, Stage>, WorkspaceError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let asked = known.stages(&jobs).await;
    asked.map_err(|detail| WorkspaceError::Git {
        action: "asking the coordinator about jobs".to_owned(),
        detail,
    })
}
