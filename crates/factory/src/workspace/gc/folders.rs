//! Work folders of jobs that have ended.
//!
//! Never removes one that is held or whose work is not on a ref: what was not saved goes to quarantine first.

use super::super::Workspace;
use super::super::error::WorkspaceError;
use super::super::record::Slot;
use super::super::refs::{head_ref, job_branch, quarantine_branch};
use super::super::snapshot::Missing;
use super::super::work_folder::WorkFolder;
use super::super::worktree::Worktree;
use super::{GcItem, GcKind, GcOptions, GcReport, JobStates, ask, keeps};

impl Workspace {
    pub(super) async fn gc_folders(
        &self,
        states: &dyn JobStates,
        options: &GcOptions,
        report: &mut GcReport,
    ) -> Result<(), WorkspaceError> {
        let slots = self.slots();
        let known = ask(states, slots.iter().map(|slot| slot.job).collect()).await?;
        for slot in slots {
            let (job, name) = (slot.job, format!("{}.{}", slot.job, slot.epoch));
            let age = known.age(job, options.now);
            let item = |why: String| GcItem::new(GcKind::Worktree, name.clone(), why).of(job, age);
            if let Some(why) = keeps(known.jobs.get(&job)) {
                report.kept.push(item(why));
                continue;
            }
            let Some(lock) = slot.try_lock()? else {
                report.kept.push(item("a running agent holds it".to_owned()));
                continue;
            };
            if slot.records().is_empty() {
                if !options.dry_run {
                    slot.clear().await?;
                    lock.remove();
                }
                report.removed.push(item("half made".to_owned()));
                continue;
            }
            let folder = self.adopt_locked(slot, lock)?;
            if options.dry_run {
                report.removed.push(item("the job has ended".to_owned()));
                continue;
            }
            match save_all(&folder).await {
                Ok(why) => {
                    folder.remove().await?;
                    report.removed.push(item(why));
                }
                Err(error) => report.kept.push(item(format!("its work cannot be saved: {error}"))),
            }
        }
        if !options.dry_run {
            self.remove_stale_locks()?;
        }
        Ok(())
    }

    /// Locks whose folders are gone; empty files, but one for each epoch of each job.
    fn remove_stale_locks(&self) -> Result<(), WorkspaceError> {
        let entries = std::fs::read_dir(self.inner.base.join("locks")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let slots = names.filter_map(|name| Slot::parse(&self.inner.base, name.strip_suffix(".work")?));
        for slot in slots {
            if let Some(lock) = slot.try_lock()?
                && !slot.folder.exists()
            {
                lock.remove();
            }
        }
        Ok(())
    }
}

async fn save_all(folder: &WorkFolder) -> Result<String, WorkspaceError> {
    let mut why = String::new();
    for tree in folder.trees() {
        why = save_first(tree).await?;
    }
    Ok(why)
}

/// Makes sure that a ref holds all that the folder does.
async fn save_first(worktree: &Worktree) -> Result<String, WorkspaceError> {
    let snapshot = worktree.snapshot(Missing::Note).await?;
    let (job, epoch) = (worktree.job(), worktree.epoch());
    let mirror = &worktree.mirror;
    let untouched = snapshot.head == worktree.started_from
        && snapshot.tree == mirror.tree_of(worktree.started_from.as_ref()).await?;
    if untouched {
        return Ok("the job has ended; the folder was as checked out".to_owned());
    }
    for branch in [job_branch(job, epoch), quarantine_branch(job, epoch)] {
        let Some(commit) = mirror.commit_at(&head_ref(&branch)).await? else { continue };
        let has_files = mirror.tree_of(Some(&commit)).await? == snapshot.tree;
        let has_commits = match &snapshot.head {
            Some(head) => mirror.is_ancestor(head, &commit).await?,
            None => true,
        };
        if has_files && has_commits {
            return Ok(format!("the job has ended; its work is on {branch}"));
        }
    }
    let branch = worktree.quarantine("the job ended before this was handed over").await?;
    tracing::info!(%job, %branch, "unsaved work of an ended job was kept");
    Ok(format!("the job has ended; unsaved work was kept on {branch}"))
}
