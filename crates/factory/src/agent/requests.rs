//! Pull requests, where a forge is configured and the repository is one of its.
//!
//! A request shows the work to people; it decides nothing. It is merged on the coordinator's order like any other result.

use giga_domain::{Epoch, JobId};

use super::Shared;
use crate::forge::{ForgeError, Opened, PullRequest, RequestMerge};
use crate::workspace::{CommitId, MergeOrder, RepoSource, WorkspaceError};

/// The request for a result, opened or found. `None` where there is no forge for it.
pub(super) async fn open(
    shared: &Shared,
    (job, epoch): (JobId, Epoch),
    repo: &RepoSource,
    branch: &str,
    title: &str,
    body: &str,
) -> Result<Option<Opened>, WorkspaceError> {
    if !shared.forge.has_requests() {
        return Ok(None);
    }
    let Some(base) = shared.workspace.default_branch(repo).await? else { return Ok(None) };
    let request = PullRequest {
        repo: repo.url.clone(),
        head: branch.to_owned(),
        base,
        title: title.to_owned(),
        body: body.to_owned(),
        key: format!("{job}.{epoch}").parse().expect("a job id and a number fit the grammar of request ids"),
    };
    match shared.forge.open_request(&request).await {
        Ok(opened) => Ok(opened),
        // Of another host: a plain remote.
        Err(ForgeError::NotHere { .. }) => Ok(None),
        Err(error) => Err(unreachable(repo, &error)),
    }
}

/// What the forge made of an order.
pub(super) enum RequestOutcome {
    Merged { commit: CommitId, into: String },
    Not { detail: String },
}

/// Merges through the forge. `None` where the order is the workspace's own to carry out.
pub(super) async fn merge(
    shared: &Shared,
    order: &MergeOrder,
) -> Result<Option<RequestOutcome>, WorkspaceError> {
    let holder = (order.job, order.epoch);
    let Some(opened) = open(shared, holder, &order.repo, &order.branch, &order.message, "").await? else {
        return Ok(None);
    };
    let merged =
        shared.forge.merge_request(&order.repo.url, opened.number, &order.commit, &order.message).await;
    let into = shared.workspace.default_branch(&order.repo).await?.unwrap_or_default();
    Ok(match merged.map_err(|error| unreachable(&order.repo, &error))? {
        Some(RequestMerge::Merged { commit } | RequestMerge::AlreadyMerged { commit }) => {
            Some(RequestOutcome::Merged { commit, into })
        }
        Some(RequestMerge::NotMergeable { detail }) => {
            let detail = format!("{}: {detail}", opened.url);
            Some(RequestOutcome::Not { detail })
        }
        None => None,
    })
}

fn unreachable(repo: &RepoSource, error: &ForgeError) -> WorkspaceError {
    WorkspaceError::Unreachable { url: repo.url.as_str().to_owned(), detail: error.to_string() }
}
