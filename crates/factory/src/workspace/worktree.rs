//! A job's work folder while this process holds it.
//!
//! Never shared: its lock is held for as long as the value lives, so neither another agent nor the garbage
//! collector touches it. What is saved and handed over is in `result`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use giga_domain::{Epoch, JobId};

use super::error::WorkspaceError;
use super::keep_back::KeptBack;
use super::lock::FileLock;
use super::mirror::Mirror;
use super::policy::RepoSource;
use super::record::{Record, Slot, Start};
use super::refs::{CommitId, engine_ref};
use super::snapshot::{Missing, Snapshot, Snapshotter};

#[derive(Debug)]
pub struct Worktree {
    pub(crate) slot: Slot,
    pub(crate) mirror: Mirror,
    path: PathBuf,
    base: Option<CommitId>,
    pub(crate) started_from: Option<CommitId>,
    start: Start,
    quarantined: AtomicBool,
    pub(crate) kept_back: KeptBack,
    /// One snapshot at a time; what the last one saved.
    pub(crate) saved: tokio::sync::Mutex<LastSaved>,
    /// What the engine left, once it is done: what checks leave behind later is nobody's work.
    left_by_engine: parking_lot::Mutex<Option<Snapshot>>,
    /// Of one of several repositories the whole folder's holder has it.
    lock: Option<FileLock>,
}

/// What is known of the last checkpoint, so that an unchanged folder costs neither a commit nor a push.
#[derive(Debug, Default)]
pub(crate) struct LastSaved {
    pub(crate) head: Option<CommitId>,
    pub(crate) tree: Option<String>,
    pub(crate) commit: Option<CommitId>,
    /// What the origin's WIP branch was when we last looked.
    pub(crate) on_origin: Option<CommitId>,
}

/// Text of a diff, cut at the limit that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    pub text: String,
    pub truncated: bool,
}

impl Worktree {
    pub(crate) fn new(
        slot: Slot,
        mirror: Mirror,
        record: &Record,
        saved: LastSaved,
        lock: Option<FileLock>,
    ) -> Result<Self, WorkspaceError> {
        Ok(Self {
            path: slot.tree(),
            slot,
            mirror,
            base: Record::commit(record.base.as_ref())?,
            started_from: Record::commit(record.started_from.as_ref())?,
            start: record.start,
            quarantined: AtomicBool::new(record.quarantined),
            kept_back: KeptBack::default(),
            saved: tokio::sync::Mutex::new(saved),
            left_by_engine: parking_lot::Mutex::default(),
            lock,
        })
    }

    pub const fn job(&self) -> JobId {
        self.slot.job
    }

    pub const fn epoch(&self) -> Epoch {
        self.slot.epoch
    }

    /// Where the engine works.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the folder borrows: it is of no use where these cannot be read.
    pub(crate) fn borrowed_objects(&self) -> Vec<PathBuf> {
        self.mirror.objects(&self.slot.read().map(|record| record.borrows).unwrap_or_default())
    }

    pub const fn repo(&self) -> &RepoSource {
        self.mirror.source()
    }

    /// Where the job's changes begin: the commit that it shares with the origin. `None` for an empty origin.
    pub const fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }

    /// Where HEAD was at the start: at the base, or where the engine of a resumed job had left it. What that had not
    /// committed yet is there too, and is not committed.
    pub const fn started_from(&self) -> Option<&CommitId> {
        self.started_from.as_ref()
    }

    pub const fn start(&self) -> Start {
        self.start
    }

    /// Everything that the commit changes since the base; `folder` is where the files are shown, such as `app/`.
    pub async fn diff(
        &self,
        commit: &CommitId,
        folder: &str,
        limit_bytes: usize,
    ) -> Result<Diff, WorkspaceError> {
        let base = self.mirror.tree_of(self.base()).await?;
        let output = self
            .mirror
            .call("comparing trees")
            .args(["diff-tree", "-p", "-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"])
            .args([format!("--src-prefix=a/{folder}"), format!("--dst-prefix=b/{folder}")])
            .args(["--end-of-options", &base, commit.as_str()])
            .at_most(limit_bytes)
            .run_any()
            .await?;
        if !output.status.success() && !output.truncated {
            return Err(output.error());
        }
        Ok(Diff { text: String::from_utf8_lossy(&output.stdout).into_owned(), truncated: output.truncated })
    }

    /// Removes the folder for good. Whoever calls this has saved what is worth keeping: as a checkpoint, a
    /// result or in quarantine.
    pub async fn remove(self) -> Result<(), WorkspaceError> {
        self.slot.clear().await?;
        self.mirror.lock().await?.drop_ref(&engine_ref(self.job(), self.epoch())).await?;
        if let Some(lock) = self.lock {
            lock.remove();
        }
        Ok(())
    }

    /// From now on the work is what is there now, whatever else is written to the folder: checkpoints and the result are made
    /// of it.
    pub async fn engine_is_done(&self) -> Result<(), WorkspaceError> {
        let _turn = self.saved.lock().await;
        let snapshot = self.snapshot(Missing::Fail).await?;
        *self.left_by_engine.lock() = Some(snapshot);
        Ok(())
    }

    pub(crate) async fn snapshot(&self, missing: Missing) -> Result<Snapshot, WorkspaceError> {
        let left = self.left_by_engine.lock().clone();
        if let Some(left) = left {
            return Ok(left);
        }
        let started_from = self.started_from.as_ref();
        Snapshotter { mirror: &self.mirror, slot: &self.slot, started_from }.take(missing).await
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantined.load(Ordering::SeqCst)
    }

    /// Noted on disk, so that a restart does not forget it.
    pub(crate) fn mark_quarantined(&self) -> Result<(), WorkspaceError> {
        self.quarantined.store(true, Ordering::SeqCst);
        match self.slot.read() {
            Some(record) => self.slot.write(&Record { quarantined: true, ..record }),
            None => Ok(()),
        }
    }
}
