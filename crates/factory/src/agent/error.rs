//! Why an agent could not start or go on. What becomes of a job is never an error of the agent.

use std::path::PathBuf;

use giga_api::client::ClientError;
use giga_domain::{FactoryId, PoolName};
use thiserror::Error;

use crate::sandbox::NoSandbox;
use crate::workspace::WorkspaceError;

#[derive(Debug, Error)]
pub enum AgentError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Sandbox(#[from] NoSandbox),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("{path}: {source}", path = path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("another agent works in {path}; give this one a folder of its own", path = .0.display())]
    FolderInUse(PathBuf),
    #[error(
        "factory {0} is not enrolled here yet; give it a token that may enroll (--token-file), or its own in {1}"
    )]
    NotEnrolled(String, String),
    #[error(
        "a factory {0} is enrolled already; choose another name with --id, or take this one over with --take-over"
    )]
    NameTaken(String),
    /// In the coordinator's words.
    #[error("{0}")]
    NameInUse(String),
    /// Nothing that a second try would change.
    #[error("pool {pool} does not let factory {factory} in: {detail}")]
    PoolRefused { pool: PoolName, factory: FactoryId, detail: String },
}

impl AgentError {
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
