//! What only the agent of the machine can do for a job, asked for over its socket.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use giga_api::inside::{Answer, MOST_BYTES, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A checkpoint may have to push a large repository.
const PATIENCE: Duration = Duration::from_mins(5);

#[async_trait]
pub trait Agent: Send + Sync + fmt::Debug {
    async fn checkpoint(&self, note: String) -> Result<Saved, AgentError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    Saved { commit: String },
    NothingNew,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the agent of this factory does not answer: {0}")]
    Silent(String),
    #[error("{0}")]
    Refused(String),
}

/// Where the agent listens for this run.
#[derive(Debug, Clone)]
pub struct SocketAgent(pub PathBuf);

impl SocketAgent {
    async fn ask(&self, request: &Request) -> Result<Answer, AgentError> {
        let silent = |error: std::io::Error| AgentError::Silent(error.to_string());
        let asking = async {
            let mut stream = UnixStream::connect(&self.0).await.map_err(silent)?;
            let mut line = serde_json::to_vec(request).expect("a request has only string keys");
            line.push(b'\n');
            stream.write_all(&line).await.map_err(silent)?;
            let mut answer = Vec::new();
            stream.take(MOST_BYTES).read_to_end(&mut answer).await.map_err(silent)?;
            serde_json::from_slice(&answer).map_err(|error| AgentError::Silent(error.to_string()))
        };
        let late = |_| AgentError::Silent(format!("nothing came within {} s", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, asking).await.map_err(late)?
    }
}

#[async_trait]
impl Agent for SocketAgent {
    async fn checkpoint(&self, note: String) -> Result<Saved, AgentError> {
        match self.ask(&Request::Checkpoint { note }).await? {
            Answer::Saved { commit } => Ok(Saved::Saved { commit }),
            Answer::NothingNew {} => Ok(Saved::NothingNew),
            Answer::Refused { reason } => Err(AgentError::Refused(reason)),
        }
    }
}
