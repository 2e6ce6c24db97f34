//! Work that is done elsewhere: what an agent on another machine starts from, and what it has pushed.
//!
//! It gets a branch of the origin for this epoch and no other, and is taken for hostile like every engine: what it pushed is
//! fetched object by object as from a stranger, must stand on what it was given, and is checked out anew, so that nothing of
//! it is run or obeyed on the way. What comes to the branch of an earlier epoch is looked at once, and only where its session is
//! gone on with: a holder that was killed may not have saved all of it.

use giga_domain::{Epoch, JobId};
use serde::{Deserialize, Serialize};

use super::Workspace;
use super::error::{WorkspaceError, tidy};
use super::gc::list_origin;
use super::policy::RepoSource;
use super::push::{PushReply, PushTarget};
use super::record::{Record, remove_folder};
use super::refs::{BranchKind, CommitId, checkpoint_trailer, pushed_ref, remote_branch};
use super::snapshot::Missing;
use super::work_folder::WorkFolder;
use super::worktree::Worktree;

/// The most that the commits of one run may hold, as git keeps them.
const LARGEST: u64 = 4 << 30;
/// How often a branch may move while it is being removed.
const TRIES: usize = 3;

/// What an agent elsewhere is given of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub repository: String,
    /// Where it starts, and the only place that its work is taken from.
    pub branch: String,
    /// What became of work that the session had pushed for an earlier epoch, where there was some.
    pub earlier: Option<String>,
}

/// What has come of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// Nobody was offered anything, or it is settled.
    NoOffer,
    /// The branch is gone from the origin.
    BranchGone,
    Nothing,
    /// The folder holds what was pushed.
    Work,
}

/// Beside the work, so that a restart finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteNote {
    offered: String,
    /// What the folder was last made from.
    taken: Option<String>,
}

impl WorkFolder {
    /// Puts the work so far where an agent elsewhere finds it, in each repository. `resumes`: its session has worked on this job
    /// before, so that what it pushed meanwhile is part of the work so far.
    pub async fn offer(&self, resumes: bool) -> Result<Vec<Offer>, WorkspaceError> {
        let mut offers = Vec::with_capacity(self.trees().len());
        for tree in self.trees() {
            offers.push(tree.offer(resumes).await?);
        }
        Ok(offers)
    }

    /// Brings what was pushed into the folder. Not to be called once a command of the job has run in it.
    pub async fn take_pushed(&self) -> Result<Taken, WorkspaceError> {
        let mut taken = Taken::NoOffer;
        for tree in self.trees() {
            taken = taken.max(tree.take_pushed().await?);
        }
        Ok(taken)
    }

    /// From now on nothing more is taken; the branches go.
    pub async fn settle_offer(&self) -> Result<(), WorkspaceError> {
        let mut first_error = None;
        for tree in self.trees() {
            if tree.slot.read_remote().is_none() {
                continue;
            }
            tree.slot.forget_remote();
            let gone = tree.mirror.workspace().forget_remote(tree.repo(), tree.job(), tree.epoch()).await;
            first_error = first_error.or(gone.err());
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Worktree {
    async fn offer(&self, resumes: bool) -> Result<Offer, WorkspaceError> {
        let (job, epoch) = (self.job(), self.epoch());
        let snapshot = self.snapshot(Missing::Note).await?;
        let Some(head) = snapshot.head.clone() else {
            let rule = "it has no commit yet that an agent elsewhere could start from";
            return Err(WorkspaceError::refused("repository", self.repo().url.as_str(), rule));
        };
        let (pushed, earlier) =
            if resumes { self.pushed_earlier(&head, &snapshot.tree).await? } else { (None, None) };
        let commit = if let Some(pushed) = &pushed {
            self.rebuild(pushed).await?;
            pushed.clone()
        } else if self.mirror.tree_of(Some(&head)).await? == snapshot.tree {
            head
        } else {
            // Of an earlier run that was cut off before its engine committed.
            self.commit_with(&snapshot, "wip: for the next run", &checkpoint_trailer(job, epoch)).await?
        };
        if let Some(objection) = self.objection(&commit).await? {
            return Err(WorkspaceError::KeptBack(objection));
        }
        // Whoever still works on those is not waited for any more.
        if let Some(earlier) = epoch.0.checked_sub(1) {
            self.mirror.workspace().forget_remote(self.repo(), job, Epoch(earlier)).await?;
        }
        self.mirror.push_large_files(&commit, self.path()).await?;
        let taken = pushed.as_ref().map(ToString::to_string);
        self.slot.write_remote(&RemoteNote { offered: commit.to_string(), taken })?;
        let branch = remote_branch(job, epoch);
        if self.mirror.push(&commit, PushTarget::Remote { job, epoch }).await? == PushReply::Raced
            && self.mirror.ask_branch(&branch).await? != Some(commit)
        {
            let detail = "somebody else has written to it".to_owned();
            return Err(WorkspaceError::PushRefused { branch, detail });
        }
        Ok(Offer { repository: self.repo().url.as_str().to_owned(), branch, earlier })
    }

    /// What the last epoch before this one was pushed, if it goes on from `head` and holds all that was saved since; and what
    /// there is to say about it.
    async fn pushed_earlier(
        &self,
        head: &CommitId,
        saved: &str,
    ) -> Result<(Option<CommitId>, Option<String>), WorkspaceError> {
        let pattern = format!("giga/remote/{}/*", self.job());
        let found = list_origin(&self.mirror.lock().await?, &[pattern]).await?;
        let earlier = found.iter().filter_map(|(branch, _)| match branch.kind {
            BranchKind::Remote(of, epoch) if of == self.job() && epoch < self.epoch() => Some(epoch),
            _ => None,
        });
        let Some(epoch) = earlier.max() else { return Ok((None, None)) };
        let branch = remote_branch(self.job(), epoch);
        let left = |why: String| Ok((None, Some(format!("what was pushed to {branch} is not taken: {why}"))));
        let pushed = match self.fetch_pushed(epoch).await {
            Ok(Some(pushed)) if pushed == *head => return Ok((None, None)),
            Ok(Some(pushed)) => pushed,
            Ok(None) => return Ok((None, None)),
            Err(error @ WorkspaceError::Refused { .. }) => return left(error.to_string()),
            Err(error) => return Err(error),
        };
        match self.check_pushed(epoch, head, &pushed).await {
            Ok(()) => {}
            Err(error @ WorkspaceError::Refused { .. }) => return left(error.to_string()),
            Err(error) => return Err(error),
        }
        // What was saved and not committed was committed by us, for that epoch, before anything was pushed.
        if self.mirror.tree_of(Some(head)).await? != saved {
            let call = self.mirror.call("looking for what was saved");
            let call = call.args(["rev-list", "--no-commit-header", "--format=%T", "--end-of-options"]);
            let trees = call.arg(format!("{head}..{pushed}")).run().await?.text();
            if !trees.lines().any(|tree| tree == saved) {
                return left("it does not contain what was saved".to_owned());
            }
        }
        let said = format!("goes on from what was pushed to {branch} after the last checkpoint");
        Ok((Some(pushed), Some(said)))
    }

    async fn take_pushed(&self) -> Result<Taken, WorkspaceError> {
        let Some(note) = self.slot.read_remote() else { return Ok(Taken::NoOffer) };
        let Some(commit) = self.fetch_pushed(self.epoch()).await? else { return Ok(Taken::BranchGone) };
        // What it starts from may be its own work of an earlier epoch.
        if note.taken.as_deref() == Some(commit.as_str()) {
            return Ok(Taken::Work);
        }
        let offered: CommitId = note.offered.parse()?;
        if commit == offered {
            return Ok(Taken::Nothing);
        }
        self.check_pushed(self.epoch(), &offered, &commit).await?;
        self.rebuild(&commit).await?;
        self.slot.write_remote(&RemoteNote { taken: Some(commit.to_string()), ..note })?;
        Ok(Taken::Work)
    }

    async fn fetch_pushed(&self, epoch: Epoch) -> Result<Option<CommitId>, WorkspaceError> {
        let branch = remote_branch(self.job(), epoch);
        let to = pushed_ref(self.job(), epoch);
        let output = self
            .mirror
            .call("fetching what was pushed elsewhere")
            .args(["-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .args(["--no-recurse-submodules", "--no-auto-maintenance"])
            .args(["--end-of-options", self.mirror.url().as_str()])
            .arg(format!("+refs/heads/{branch}:{to}"))
            .over(self.mirror.url().protocol())
            .run_any()
            .await
            .map_err(|error| self.mirror.unreachable(error))?;
        if output.status.success() {
            return self.mirror.commit_at(&to).await;
        }
        if output.stderr.contains("couldn't find remote ref") {
            return Ok(None);
        }
        // Git names what is wrong with an object; everything else is the way there.
        if output.stderr.contains("fsck error") || output.stderr.contains("error in object") {
            return Err(WorkspaceError::refused("branch", &branch, tidy(&output.stderr)));
        }
        Err(self.mirror.unreachable(output.error()))
    }

    async fn check_pushed(
        &self,
        epoch: Epoch,
        offered: &CommitId,
        pushed: &CommitId,
    ) -> Result<(), WorkspaceError> {
        let branch = remote_branch(self.job(), epoch);
        if !self.mirror.is_ancestor(offered, pushed).await? {
            let rule = format!("{pushed} does not contain {offered}, from which the work was to start");
            return Err(WorkspaceError::refused("branch", &branch, rule));
        }
        let call = self.mirror.call("measuring what was pushed");
        let new = format!("{offered}..{pushed}");
        let call = call.args(["rev-list", "--objects", "--disk-usage", "--end-of-options"]).arg(new);
        let size = call.run().await?.text().parse::<u64>().unwrap_or(u64::MAX);
        if size > LARGEST {
            let rule = format!("its commits hold {} MiB, and at most {} may", size >> 20, LARGEST >> 20);
            return Err(WorkspaceError::refused("branch", &branch, rule));
        }
        Ok(())
    }

    /// The folder as a checkout of the commit makes it, in the place of what was there.
    async fn rebuild(&self, commit: &CommitId) -> Result<(), WorkspaceError> {
        let _turn = self.saved.lock().await;
        let incoming = self.slot.incoming();
        remove_folder(incoming.clone()).await?;
        let borrows =
            self.mirror.workspace().open_commit(&self.slot, &incoming, &self.mirror, commit).await?;
        let (tree, outgoing) = (self.slot.tree(), incoming.with_extension("old"));
        remove_folder(outgoing.clone()).await?;
        std::fs::rename(&tree, &outgoing).map_err(WorkspaceError::io(&tree))?;
        std::fs::rename(&incoming, &tree).map_err(WorkspaceError::io(&tree))?;
        if let Some(record) = self.slot.read() {
            self.slot.write(&Record { borrows, ..record })?;
        }
        remove_folder(outgoing).await
    }
}

impl Workspace {
    /// Removes the branches that agents elsewhere had for this job, up to and with this epoch.
    pub(crate) async fn forget_remote(
        &self,
        repo: &RepoSource,
        job: JobId,
        up_to: Epoch,
    ) -> Result<(), WorkspaceError> {
        let mirror = self.mirror(repo);
        let locked = mirror.lock().await?;
        for _ in 0..TRIES {
            let mut found = list_origin(&locked, &[format!("giga/remote/{job}/*")]).await?;
            found.retain(
                |(branch, _)| matches!(branch.kind, BranchKind::Remote(of, epoch) if of == job && epoch <= up_to),
            );
            if found.is_empty() {
                break;
            }
            // One that has just moved is looked at again.
            if locked.push_deletions(&found).await.is_ok() {
                break;
            }
        }
        locked.drop_ref(&pushed_ref(job, up_to)).await
    }
}
