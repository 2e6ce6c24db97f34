//! Merges results into the owner's branch, on the coordinator's word for exactly these jobs and epochs: made, checked,
//! announced, pushed.
//!
//! Works on objects alone: no work tree, no hooks, no index. Never forces.

use std::path::{Path, PathBuf};

use giga_domain::job::MergeStrategy;
use giga_domain::{Epoch, JobId};

use super::Workspace;
use super::error::WorkspaceError;
use super::policy::{Author, RepoSource};
use super::push::{PushReply, PushTarget};
use super::refs::{BranchKind, CommitId, check_target_branch};
use super::stack::{Stacked, stack};
use super::target::{Target, check_into, is_in_use};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pub job: JobId,
    pub epoch: Epoch,
    pub repo: RepoSource,
    pub branch: String,
    pub commit: CommitId,
    /// Where the job's own commits begin. Unknown of a result of before.
    pub base: Option<CommitId>,
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
    /// The branch that has what is in already: in a folder of the owner's it may be another one.
    pub from: String,
    /// What `into` is at; none where it is not there yet.
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
    /// What the branch was at; none where it was not there yet.
    pub tip: Option<CommitId>,
    pub into: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    Merged {
        into: String,
    },
    /// Somebody else moved the branch, or works in the folder that it is checked out in: this candidate is not going to
    /// be pushed.
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
        let target = locked.target(first.into.as_deref(), &head).await?;
        let Target { start: mut onto, from, into, tip } = target;
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
        let prepared = Prepared { into, from, tip, stacked };
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
        check_into(&order.repo, &candidate.into)?;
        let Candidate { commit, tip, into } = candidate;
        let mirror = self.mirror(&order.repo);
        let locked = mirror.lock().await?;
        let merged = || Pushed::Merged { into: into.clone() };
        let is_ours = mirror.dir().is_dir() && locked.commit_at(commit.as_str()).await?.is_some();
        // Whoever made it has all that it takes, as long as the branch is where it was.
        if !is_ours || locked.ask_branch(into).await? != *tip {
            locked.refresh().await?;
            if !is_ours {
                // Under the name of whichever job was the first of its batch.
                let of_any_job =
                    format!("+refs/heads/giga/merge/*/{commit}:refs/giga/fetched/merge/*/{commit}");
                let fetched = locked.fetch_refs(&[of_any_job]).await?;
                fetched.map_err(|output| locked.unreachable(output.error()))?;
            }
            if locked.has_on_origin(commit, into).await? {
                return Ok(merged());
            }
            if locked.commit_at(&format!("refs/remotes/origin/{into}")).await? != *tip {
                return Ok(Pushed::Outrun);
            }
        }
        // The lease that it is pushed under would let it replace what it does not hold.
        if let Some(tip) = tip
            && !locked.is_ancestor(tip, commit).await?
        {
            let rule = format!("it is not made on {tip}, where {into} is");
            return Err(WorkspaceError::refused("candidate", commit.as_str(), rule));
        }
        let receive = locked.receive_option(into).await?;
        let pushed =
            locked.push(commit, PushTarget::Owners { branch: into, tip: tip.as_ref(), receive }).await;
        if let Err(WorkspaceError::PushRefused { detail, .. }) = &pushed
            && receive.is_some()
            && is_in_use(into, detail)
        {
            locked.note_in_use(into);
            return Ok(Pushed::Outrun);
        }
        match pushed? {
            PushReply::Done => Ok(merged()),
            // A look at the branch says whether it was this very commit that got there first.
            PushReply::Raced => {
                locked.refresh().await?;
                let is_in = locked.has_on_origin(commit, into).await?;
                Ok(if is_in { merged() } else { Pushed::Outrun })
            }
        }
    }

    /// What the order's branch would be at with its result, or is at without it. Nothing is pushed.
    pub async fn look_ahead(&self, order: &MergeOrder, with_result: bool) -> Result<Ahead, WorkspaceError> {
        let mirror = self.mirror(&order.repo);
        let locked = mirror.lock().await?;
        let head = locked.refresh().await?;
        let target = locked.target(order.into.as_deref(), &head).await?;
        if !with_result {
            return Ok(Ahead::At(target.start));
        }
        Ok(match stack(&locked, target.start.as_ref(), order).await? {
            Stacked::On(commit) => Ahead::At(Some(commit)),
            Stacked::AlreadyIn(_) => Ahead::At(target.start),
            conflict @ Stacked::Conflict { .. } => Ahead::Conflict(conflict),
        })
    }

    /// The candidate's files in a folder of their own, as a fresh clone would have them: at the top, or with the other
    /// repositories of the job, each in its folder.
    pub async fn candidate_tree(
        &self,
        order: &MergeOrder,
        candidate: &Candidate,
        folder: Option<&str>,
        beside: &[Beside],
    ) -> Result<CandidateTree, WorkspaceError> {
        let path = self.inner.base.join("merges").join(format!("{}-{}", order.job, candidate.commit));
        let mut tree = CandidateTree { path, objects: Vec::new() };
        tree.clear();
        let mut places = vec![(folder.unwrap_or_default(), &order.repo, &candidate.commit)];
        let others = beside.iter();
        places.extend(others.filter_map(|one| Some((one.folder.as_str(), &one.repo, one.commit.as_ref()?))));
        for (folder, repo, commit) in places {
            let (path, mirror) = (tree.path.join(folder), self.mirror(repo));
            self.open_at(&path, &mirror, commit).await?;
            let borrowed = self.fill_submodules(&path, &mirror, commit).await?;
            tree.objects.extend(mirror.objects(&borrowed));
        }
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

/// What [`Workspace::look_ahead`] sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ahead {
    /// Nothing in an empty repository.
    At(Option<CommitId>),
    Conflict(Stacked),
}

/// Another repository of a job, as its checks see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    pub folder: String,
    pub repo: RepoSource,
    /// None of an empty repository.
    pub commit: Option<CommitId>,
}

/// Gone when it is dropped.
#[derive(Debug)]
pub struct CandidateTree {
    path: PathBuf,
    objects: Vec<PathBuf>,
}

impl CandidateTree {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it borrows.
    pub(crate) fn objects(&self) -> &[PathBuf] {
        &self.objects
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
