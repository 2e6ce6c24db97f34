//! Git on the worker: one mirror per repository, one work folder per job and epoch, refs that carry the epoch.
//!
//! Engines are taken for hostile. An engine gets a repository of its own that borrows the mirror's objects; nothing
//! here ever runs under that repository's configuration, follows its links, or believes its refs. Nothing here
//! decides who holds a job either: without the coordinator's word nothing is merged and nothing unmerged is deleted.

mod checkout;
mod discover;
mod error;
mod folders;
pub mod gc;
mod git;
mod keep_back;
mod lfs;
mod lock;
mod merge;
mod mirror;
mod notes;
mod policy;
mod propose;
mod push;
mod record;
mod refs;
mod result;
mod snapshot;
mod stack;
mod submodules;
mod target;
mod work_folder;
mod worktree;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_domain::{Epoch, JobId};

pub use checkout::Leftover;
pub use discover::LocalRepo;
pub use error::WorkspaceError;
pub use folders::{FoundRepo, Skipped, Survey, survey};
pub use gc::{GcOptions, GcReport, JobState, JobStates, Known};
pub use merge::{Ahead, Beside, Candidate, CandidateTree, MergeOrder, Prepared, Pushed};
pub use policy::{Author, GitPolicy, GitUrl, Identity, Protocol, RepoSource};
pub use propose::Proposed;
pub(crate) use record::remove_folder;
pub use record::{SessionNote, SpendNote, Start};
pub use refs::{CommitId, job_branch, quarantine_branch, request_branch, wip_branch};
pub use result::{ResultCommit, Saved};
pub use stack::Stacked;
pub use work_folder::{RunResult, WorkFolder};
pub use worktree::{Diff, Worktree};

use git::Git;
use lock::FileLock;
use mirror::Mirror;
use notes::Notes;
use record::Slot;

/// The base folder of a factory: `mirrors/`, `work/` and `locks/`. Cheap to clone; several processes may share one.
#[derive(Debug, Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
    notes: Notes,
}

#[derive(Debug)]
struct Inner {
    base: PathBuf,
    policy: GitPolicy,
    git: Git,
    seen: folders::Seen,
    in_use: target::InUse,
}

impl Workspace {
    pub fn open(base: PathBuf, policy: GitPolicy) -> Result<Self, WorkspaceError> {
        policy.check_prefixes()?;
        for folder in ["mirrors", "work", "locks"] {
            let folder = base.join(folder);
            private_folder(&folder).map_err(WorkspaceError::io(folder))?;
        }
        let base = base.canonicalize().map_err(WorkspaceError::io(base))?;
        // It is written into files of git's that are read line by line.
        if base.as_os_str().as_encoded_bytes().contains(&b'\n') {
            return Err(WorkspaceError::refused("folder", &base.to_string_lossy(), "without a line break"));
        }
        let git = Git::probe(&policy)?;
        let (seen, in_use) = (folders::Seen::default(), target::InUse::default());
        let inner = Inner { base, policy, git, seen, in_use };
        Ok(Self { inner: Arc::new(inner), notes: Notes::default() })
    }

    /// The same folder, for somebody who is told how far a first fetch is and what a checkout leaves out.
    #[must_use]
    pub fn noting(&self, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { inner: self.inner.clone(), notes: Notes::to(note) }
    }

    /// The branch that the origin's HEAD is on, where it is on one.
    pub async fn default_branch(&self, repo: &RepoSource) -> Result<Option<String>, WorkspaceError> {
        let mirror = self.mirror(repo);
        let locked = mirror.lock().await?;
        Ok(locked.refresh().await?.branch().map(str::to_owned))
    }

    /// What is free on the disk of the base folder.
    pub fn free_bytes(&self) -> Result<u64, WorkspaceError> {
        let stat = rustix::fs::statvfs(&self.inner.base)
            .map_err(|error| WorkspaceError::io(&self.inner.base)(error.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn git(&self) -> &Git {
        &self.inner.git
    }

    fn mirror(&self, source: &RepoSource) -> Mirror {
        Mirror::new(self.clone(), source.clone())
    }

    /// Where this epoch's work is.
    fn slot(&self, job: JobId, epoch: Epoch) -> Slot {
        let slot = Slot::of_job(&self.inner.base, job, epoch);
        if slot.worked_in_by() == Some(epoch) { slot } else { Slot::of_epoch(&self.inner.base, job, epoch) }
    }

    /// The epoch whose work lies where the next one of the job would work.
    pub fn worked_in_by(&self, job: JobId) -> Option<Epoch> {
        Slot::of_job(&self.inner.base, job, Epoch::default()).worked_in_by()
    }

    /// A place for this epoch, and its lock: the job's own, which is made free where an earlier epoch left work in it.
    /// Whoever calls this has seen to it that nothing of that epoch still runs.
    fn place(&self, job: JobId, epoch: Epoch) -> Result<(Slot, FileLock), WorkspaceError> {
        let base = &self.inner.base;
        let own = Slot::of_epoch(base, job, epoch);
        // Begun there, and gone on with there.
        if !own.folder.exists() {
            let slot = Slot::of_job(base, job, epoch);
            if let Some(lock) = slot.try_lock()? {
                match slot.worked_in_by() {
                    Some(theirs) if theirs > epoch => {
                        return Err(WorkspaceError::Superseded { job, ours: epoch, theirs });
                    }
                    Some(earlier) if earlier < epoch => slot.move_aside(base, earlier)?,
                    _ => {}
                }
                return Ok((slot, lock));
            }
            if slot.worked_in_by() == Some(epoch) {
                return Err(WorkspaceError::InUse { job, epoch });
            }
        }
        let lock = own.try_lock()?.ok_or(WorkspaceError::InUse { job, epoch })?;
        Ok((own, lock))
    }
}

/// For nobody but the owner, whatever the umask: inside, files have the modes that builds are used to.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
