//! Pull requests, where there is something that knows them.
//!
//! Never opens a second request for the same work: every call carries a key, looks first, and looks again after a
//! lost reply. Never decides that something may be merged; that is the coordinator's word.

mod github;
mod transport;

use async_trait::async_trait;
use giga_domain::RequestId;
use thiserror::Error;

use crate::workspace::{CommitId, GitUrl};

pub use github::GitHub;
pub use transport::{GhCli, RestApi};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub repo: GitUrl,
    /// The result's branch, `giga/job/<job>/<epoch>`.
    pub head: String,
    /// The branch to merge into.
    pub base: String,
    pub title: String,
    pub body: String,
    /// Repeating a call with the same key gives the same request.
    pub key: RequestId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub url: String,
    pub number: u64,
    /// An earlier call, or a person, had opened it.
    pub existed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestMerge {
    Merged {
        commit: CommitId,
    },
    AlreadyMerged {
        commit: CommitId,
    },
    /// Conflicts, missing approvals, failing checks: in the forge's words.
    NotMergeable {
        detail: String,
    },
}

#[derive(Debug, Error)]
pub enum ForgeError {
    #[error("the forge cannot be reached: {0}")]
    Unavailable(String),
    #[error("the forge does not accept the credentials: {0}")]
    Unauthorised(String),
    #[error("the forge refused: {0}")]
    Refused(String),
    #[error("{url} is not a repository of {host}")]
    NotHere { url: String, host: String },
}

impl ForgeError {
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

#[async_trait]
pub trait Forge: std::fmt::Debug + Send + Sync {
    /// False for what has none, so that nobody has to look anything up in vain.
    fn has_requests(&self) -> bool {
        true
    }

    /// `None` when this forge has no requests: then the work is merged by `Workspace::merge`.
    async fn open_request(&self, request: &PullRequest) -> Result<Option<Opened>, ForgeError>;

    /// Merges exactly `commit`, or finds that it was merged. `None` as above.
    async fn merge_request(
        &self,
        repo: &GitUrl,
        number: u64,
        commit: &CommitId,
        message: &str,
    ) -> Result<Option<RequestMerge>, ForgeError>;

    /// Closes without merging. Closed already is as good.
    async fn close_request(&self, repo: &GitUrl, number: u64) -> Result<(), ForgeError>;
}

/// A git remote and nothing more: pushing is all that it takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainGit;

#[async_trait]
impl Forge for PlainGit {
    fn has_requests(&self) -> bool {
        false
    }

    async fn open_request(&self, _: &PullRequest) -> Result<Option<Opened>, ForgeError> {
        Ok(None)
    }

    async fn merge_request(
        &self,
        _: &GitUrl,
        _: u64,
        _: &CommitId,
        _: &str,
    ) -> Result<Option<RequestMerge>, ForgeError> {
        Ok(None)
    }

    async fn close_request(&self, _: &GitUrl, _: u64) -> Result<(), ForgeError> {
        Ok(())
    }
}
