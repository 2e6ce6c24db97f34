//! Puts a result onto the branch of its job's pull request. The request itself is the coordinator's affair.
//!
//! The branch is moved on by every result of the job in turn, never back, and never past what somebody else put there.

use super::Workspace;
use super::error::WorkspaceError;
use super::merge::MergeOrder;
use super::mirror::OriginHead;
use super::push::{PushReply, PushTarget};
use super::refs::{BranchKind, CommitId, OurBranch, check_target_branch, request_branch};
use super::stack::{check_result_is_here, find_merge, result_branch};

/// How often the branch may move under the push.
const TRIES: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposed {
    On {
        branch: String,
        into: String,
    },
    /// There is nothing left to propose.
    AlreadyIn {
        commit: CommitId,
        into: String,
    },
}

impl Workspace {
    pub async fn propose(&self, order: &MergeOrder) -> Result<Proposed, WorkspaceError> {
        if let Some(into) = &order.into {
            check_target_branch(into)?;
        }
        let mirror = self.mirror(&order.repo);
        let locked = mirror.lock().await?;
        let head = locked.refresh().await?;
        locked.note_use()?;
        let into = target(order, &head)?;
        check_result_is_here(&locked, order, &result_branch(order)?).await?;
        if let Some(tip) = locked.commit_at(&format!("refs/remotes/origin/{into}")).await?
            && locked.is_ancestor(&order.commit, &tip).await?
        {
            let commit = find_merge(&locked, order, &tip).await?;
            return Ok(Proposed::AlreadyIn { commit, into });
        }
        let ours = OurBranch::from(BranchKind::Request(order.job));
        let branch = request_branch(order.job);
        for _ in 0..TRIES {
            let seen = locked.fetch_branch(&branch, &ours.fetched_ref()).await?;
            if seen.as_ref() == Some(&order.commit) {
                return Ok(Proposed::On { branch, into });
            }
            if let Some(theirs) = &seen {
                locked.check_epoch(&branch, (order.job, order.epoch), theirs).await?;
            }
            let to = PushTarget::Request { job: order.job, seen: seen.as_ref() };
            if locked.push(&order.commit, to).await? == PushReply::Done {
                return Ok(Proposed::On { branch, into });
            }
        }
        let detail = "the branch kept changing under this push".to_owned();
        Err(WorkspaceError::PushRefused { branch, detail })
    }
}

/// A request is merged on the host, so its branch is one of the origin's own.
fn target(order: &MergeOrder, head: &OriginHead) -> Result<String, WorkspaceError> {
    let named = order.into.as_deref().or_else(|| head.branch());
    named.map(str::to_owned).ok_or_else(|| {
        let rule = "its HEAD is on no branch, so the order has to say where to merge";
        WorkspaceError::refused("repository", order.repo.url.as_str(), rule)
    })
}
