//! Merges a result into the owner's branch, on the coordinator's word for exactly that job and epoch: made, checked,
//! announced, pushed.
//!
//! Works on objects alone: no work tree, no hooks, no index. Never forces, and never merges the same result twice:
//! the result is the second parent of its merge, so a repeated order finds it in the history.

use std::path::{Path, PathBuf};

use giga_domain::{Epoch, JobId};

use super::Workspace;
use super::error::{WorkspaceError, tidy};
use super::mirror::{LockedMirror, OriginHead};
use super::policy::RepoSource;
use super::push::{PushReply, PushTarget};
use super::refs::{BranchKind, CommitId, OurBranch, check_target_branch, head_ref, job_branch, trailer};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pub job: JobId,
    pub epoch: Epoch,
    pub repo: RepoSource,
    pub branch: String,
    pub commit: CommitId,
    /// Where to; the origin's own HEAD branch by default.
    pub into: Option<String>,
    pub message: String,
}

/// What there is to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    Candidate(Candidate),
    /// By an earlier order, or by somebody else.
    AlreadyMerged {
        commit: CommitId,
        into: String,
    },
    Conflict {
        files: Vec<String>,
        detail: String,
    },
}

/// The result on top of a tip; not pushed to the branch yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub commit: CommitId,
    /// None in an empty repository.
    pub tip: Option<CommitId>,
    pub into: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    Merged {
        commit: CommitId,
        into: String,
    },
    /// Somebody else moved the branch: this candidate can never be pushed by anybody.
    Outrun,
}

impl Workspace {
    /// Merges the result onto the tip as it is now, in objects alone, and keeps the candidate on the origin, where
    /// whoever takes over finds it.
    pub async fn prepare_merge(&self, order: &MergeOrder) -> Result<Prepared, WorkspaceError> {
        let branch = result_branch(order)?;
        if let Some(into) = &order.into {
            check_target_branch(into)?;
        }
        let mirror = self.mirror(&order.repo);
        let locked = mirror.lock().await?;
        let head = locked.refresh().await?;
        locked.note_use()?;
        let into = target(order, &head)?;
        check_result_is_here(&locked, order, &branch).await?;
        let Some(tip) = locked.commit_at(&format!("refs/remotes/origin/{into}")).await? else {
            // The first commit of an empty repository has nothing to be merged with.
            return Ok(Prepared::Candidate(Candidate { commit: order.commit.clone(), tip: None, into }));
        };
        if locked.is_ancestor(&order.commit, &tip).await? {
            let commit = find_merge(&locked, order, &tip).await?;
            return Ok(Prepared::AlreadyMerged { commit, into });
        }
        let tree = match merge_trees(&locked, &tip, &order.commit).await? {
            Ok(tree) => tree,
            Err((files, detail)) => return Ok(Prepared::Conflict { files, detail }),
        };
        let message = match order.message.trim() {
            "" => format!("Merge {}", order.branch),
            message => message.to_owned(),
        };
        let message = format!("{message}\n\n{}\n", trailer(order.job, order.epoch));
        let commit = locked.commit_tree(&tree, &[&tip, &order.commit], &message).await?;
        locked.push(&commit, PushTarget::Candidate { job: order.job }).await?;
        Ok(Prepared::Candidate(Candidate { commit, tip: Some(tip), into }))
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
        let merged = || Pushed::Merged { commit: commit.clone(), into: into.clone() };
        if locked.commit_at(commit.as_str()).await?.is_none() {
            let branch = OurBranch::from(BranchKind::Candidate(order.job, commit.clone()));
            locked.fetch_branch(&branch.name(), &branch.fetched_ref()).await?;
        }
        if let Some(now) = &now
            && locked.commit_at(commit.as_str()).await?.is_some()
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

fn target(order: &MergeOrder, head: &OriginHead) -> Result<String, WorkspaceError> {
    let named = order.into.as_deref().or_else(|| head.branch());
    named.map(str::to_owned).ok_or_else(|| {
        let rule = "its HEAD is on no branch, so the order has to say where to merge";
        WorkspaceError::refused("repository", order.repo.url.as_str(), rule)
    })
}

/// The branch of exactly this job and epoch; one that was reported by an older version has its old name.
fn result_branch(order: &MergeOrder) -> Result<OurBranch, WorkspaceError> {
    let wanted = BranchKind::Job(order.job, order.epoch);
    OurBranch::parse(&order.branch).filter(|branch| branch.kind == wanted).ok_or_else(|| {
        let rule = format!("the order is for {}", job_branch(order.job, order.epoch));
        WorkspaceError::refused("branch", &order.branch, rule)
    })
}

/// The commit of the order, from this host or from its branch on the origin, where it must still be the tip.
async fn check_result_is_here(
    locked: &LockedMirror<'_>,
    order: &MergeOrder,
    branch: &OurBranch,
) -> Result<(), WorkspaceError> {
    let local = locked.commit_at(&head_ref(&order.branch)).await?;
    if local.as_ref() == Some(&order.commit) {
        return Ok(());
    }
    let fetched = locked.fetch_branch(&order.branch, &branch.fetched_ref()).await?;
    if fetched.as_ref() == Some(&order.commit) {
        return Ok(());
    }
    // A merged branch may have been cleaned up since; then the commit is in the history already.
    if fetched.is_none() && locked.commit_at(order.commit.as_str()).await?.is_some() {
        return Ok(());
    }
    let found = fetched.map_or_else(|| "nothing".to_owned(), |commit| commit.to_string());
    let rule = format!("{} holds {found}, not that commit", order.branch);
    Err(WorkspaceError::refused("commit", order.commit.as_str(), rule))
}

/// The merge that brought the result in; the result itself when it came in another way.
async fn find_merge(
    locked: &LockedMirror<'_>,
    order: &MergeOrder,
    tip: &CommitId,
) -> Result<CommitId, WorkspaceError> {
    let range = format!("{}..{tip}", order.commit);
    let call = locked.call("finding the merge").args(["rev-list", "--first-parent", "--merges", "--parents"]);
    let output = call.args(["--reverse", "--max-count=10000", "--end-of-options", &range]).run().await?;
    let text = output.text();
    let merge = text.lines().find_map(|line| {
        let mut ids = line.split(' ');
        let merge = ids.next()?;
        ids.any(|parent| parent == order.commit.as_str()).then(|| merge.parse().ok())?
    });
    Ok(merge.unwrap_or_else(|| order.commit.clone()))
}

type Conflict = (Vec<String>, String);

async fn merge_trees(
    locked: &LockedMirror<'_>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Result<String, Conflict>, WorkspaceError> {
    let call = locked.call("merging").args(["merge-tree", "--write-tree", "-z", "--name-only", "--messages"]);
    let output = call.args(["--end-of-options", ours.as_str(), theirs.as_str()]).run_any().await?;
    match output.status.code() {
        Some(0) => {
            let tree = output.fields().next().map(|field| String::from_utf8_lossy(field).into_owned());
            tree.ok_or_else(|| output.error()).map(Ok)
        }
        Some(1) => Ok(Err(read_conflict(&output.stdout))),
        _ if output.stderr.contains("unrelated histories") => {
            Ok(Err((Vec::new(), "the result shares no history with the branch".to_owned())))
        }
        _ => Err(output.error()),
    }
}

/// `tree NUL file NUL … NUL NUL messages`, where a message is `count NUL paths… NUL kind NUL text NUL`.
fn read_conflict(stdout: &[u8]) -> Conflict {
    let mut fields = stdout.split(|b| *b == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut files: Vec<String> = fields.by_ref().skip(1).take_while(|field| !field.is_empty()).collect();
    files.sort();
    files.dedup();
    let mut texts = Vec::new();
    while let Some(count) = fields.next().and_then(|count| count.parse::<usize>().ok()) {
        let mut message = fields.by_ref().skip(count);
        let (kind, text) = (message.next(), message.next());
        if kind.is_some_and(|kind| kind.starts_with("CONFLICT")) {
            texts.extend(text.map(|text| text.trim().to_owned()));
        }
    }
    (files, tidy(&texts.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_name_their_files() {
        let stdout = b"4b825dc642cb6eb9a060e54bf8d69288fbee4904\0b.txt\0a.txt\0b.txt\0\0\
            1\0a.txt\0Auto-merging\0Auto-merging a.txt\n\0\
            1\0a.txt\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in a.txt\n\0";
        let (files, detail) = read_conflict(stdout);
        assert_eq!(files, ["a.txt", "b.txt"]);
        assert_eq!(detail, "CONFLICT (content): Merge conflict in a.txt");
    }
}
