//! Merges results into the owner's branch, on the coordinator's word for exactly these jobs and epochs: made, checked,
//! announced, pushed.
//!
//! Works on objects alone: no work tree, no hooks, no index. Never forces.

use std::path::{Path, PathBuf};

use giga_domain::job::MergeStrategy;
use giga_domain::{Epoch, JobId};

use super::Workspace;
use super::error::WorkspaceError;
use super::mirror::OriginHead;
use super::policy::{Author, RepoSource};
use super::push::{PushReply, PushTarget};
use super::refs::{BranchKind, CommitId, check_target_branch};
use super::stack::{Stacked, stack};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pub job: JobId,
    pub epoch: Epoch,
    pub repo: RepoSource,
    pub branch: String,
    pub commit: CommitId,
    /// Where to; the origin's own HEAD branch by default.
    pub into: Option<String>,
    pub strategy: MergeStrategy,
    pub message: String,
    /// The factory, if nobody is named.
    pub author: Option<Author>,
    pub reviewers: Vec<String>,
}

/// Results on top of each other, and of the tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    pub into: String,
    /// None in an empty repository.
    pub tip: Option<CommitId>,
    /// As many as there were orders, or those before the first that conflicts with what comes before it.
    pub stacked: Vec<Stacked>,
}

impl Prepared {
    /// What there is to push; `None` where nothing is.
    pub fn candidate(&self) -> Option<Candidate> {
        let made = self.stacked.iter().rev().find_map(|stacked| match stacked {
            Stacked::On(commit) => Some(commit.clone()),
            _ => None,
        });
        made.map(|commit| Candidate { commit, tip: self.tip.clone(), into: self.into.clone() })
    }
}

/// What the branch is to be moved to; not pushed to it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub commit: CommitId,
    /// What the branch was at; none in an empty repository.
    pub tip: Option<CommitId>,
    pub into: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    Merged {
        into: String,
    },
    /// Somebody else moved the branch: this candidate can never be pushed by anybody.
    Outrun,
}

impl Workspace {
    /// Puts the results onto the tip as it is now, one after the other, and keeps the last on the origin, where whoever
    /// takes over finds it. They are all of one repository and go into one branch.
    pub async fn prepare_merges(&self, orders: &[MergeOrder]) -> Result<Prepared, WorkspaceError> {
        let Some(first) = orders.first() else {
            return Err(WorkspaceError::refused("orders", "", "there is nothing to merge"));
        };
        if let Some(into) = &first.into {
            check_target_branch(into)?;
        }
        let mirror = self.mirror(&first.repo);
        let locked = mirror.lock().await?;
        let head = locked.refresh().await?;
        locked.note_use()?;
        let into = target(first, &head)?;
        let tip = locked.commit_at(&format!("refs/remotes/origin/{into}")).await?;
        let mut onto = tip.clone();
        let mut stacked = Vec::with_capacity(orders.len());
        for order in orders {
            let next = stack(&locked, onto.as_ref(), order).await?;
            match &next {
                Stacked::On(commit) => onto = Some(commit.clone()),
                // With what comes before it in the batch, perhaps: it is tried again without that.
                Stacked::Conflict { .. } if !stacked.is_empty() => break,
                Stacked::AlreadyIn(_) | Stacked::Conflict { .. } => {}
            }
            let is_conflict = matches!(next, Stacked::Conflict { .. });
            stacked.push(next);
            if is_conflict {
                break;
            }
        }
        let prepared = Prepared { into, tip, stacked };
        if let Some(candidate) = prepared.candidate() {
            locked.push(&candidate.commit, PushTarget::Candidate { job: first.job }).await?;
        }
        Ok(prepared)
    }

    /// Pushes what was announced: this commit and no other, onto the tip that it was made on and no other.
    pub async fn push_candidate(
        &self,
        order: &MergeOrder,
        candidate: &Candidate,
    ) -> Result<Pushed, WorkspaceError> {
        check_target_branch(&candidate.into)?;
        let Candidate { commit, tip, into } = candidate;
        let mirror = self.mirror(&order.repo);
        let locked = mirror.lock().await?;
        locked.refresh().await?;
        let now = locked.commit_at(&format!("refs/remotes/origin/{into}")).await?;
        let merged = || Pushed::Merged { into: into.clone() };
        if locked.commit_at(commit.as_str()).await?.is_none() {
            // Under the name of whichever job was the first of its batch.
            let of_any_job = format!("+refs/heads/giga/merge/*/{commit}:refs/giga/fetched/merge/*/{commit}");
            locked.fetch_refs(&[of_any_job]).await?.map_err(|output| locked.unreachable(output.error()))?;
        }
        let is_here = locked.commit_at(commit.as_str()).await?.is_some();
        if let Some(now) = &now
            && is_here
            && locked.is_ancestor(commit, now).await?
        {
            return Ok(merged());
        }
        if now != *tip {
            return Ok(Pushed::Outrun);
        }
        match locked.push(commit, PushTarget::Owners(into)).await? {
            PushReply::Done => Ok(merged()),
            // A look at the branch says whether it was this very commit that got there first.
            PushReply::Raced => {
                locked.refresh().await?;
                let now = locked.commit_at(&format!("refs/remotes/origin/{into}")).await?;
                let is_in = match &now {
                    Some(now) => locked.is_ancestor(commit, now).await?,
                    None => false,
                };
                Ok(if is_in { merged() } else { Pushed::Outrun })
            }
        }
    }

    /// The candidate's files in a folder of their own, as a fresh clone would have them.
    pub async fn candidate_tree(
        &self,
        order: &MergeOrder,
        candidate: &Candidate,
    ) -> Result<CandidateTree, WorkspaceError> {
        let path = self.inner.base.join("merges").join(format!("{}-{}", order.job, candidate.commit));
        let tree = CandidateTree { path };
        tree.clear();
        self.open_at(&tree.path, &self.mirror(&order.repo), &candidate.commit).await?;
        Ok(tree)
    }

    /// The candidate's own branch is of no use once it is in, or can never be.
    pub async fn forget_candidate(
        &self,
        order: &MergeOrder,
        candidate: &Candidate,
    ) -> Result<(), WorkspaceError> {
        let mirror = self.mirror(&order.repo);
        let branch = BranchKind::Candidate(order.job, candidate.commit.clone());
        mirror.push_deletion(&branch.into(), &candidate.commit).await.map(drop)
    }
}

/// Gone when it is dropped.
#[derive(Debug)]
pub struct CandidateTree {
    path: PathBuf,
}

impl CandidateTree {
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn clear(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a merged tree cannot be removed");
        }
    }
}

impl Drop for CandidateTree {
    fn drop(&mut self) {
        self.clear();
    }
}

pub(super) fn target(order: &MergeOrder, head: &OriginHead) -> Result<String, WorkspaceError> {
    let named = order.into.as_deref().or_else(|| head.branch());
    named.map(str::to_owned).ok_or_else(|| {
        let rule = "its HEAD is on no branch, so the order has to say where to merge";
        WorkspaceError::refused("repository", order.repo.url.as_str(), rule)
    })
}
