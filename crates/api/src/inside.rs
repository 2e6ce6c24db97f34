//! What travels between a job and the agent that runs it, over a socket of the run: one line of JSON each way.
//!
//! For what only the agent can do. Everything else a job asks the coordinator for, with its token. The agent believes
//! nothing of what comes in: it is what runs inside the job that writes it.

use serde::{Deserialize, Serialize};

/// The environment variable that says where the socket is.
pub const SOCKET_VARIABLE: &str = "GIGA_JOB_SOCKET";
/// The environment variable that says where the `giga` program is.
pub const PROGRAM_VARIABLE: &str = "GIGA_PROGRAM";

/// The most that a line may have.
pub const MOST_BYTES: u64 = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Request {
    /// Save the work so far.
    Checkpoint {
        #[serde(default)]
        note: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Saved {
        commit: String,
    },
    /// There is nothing that the last checkpoint does not have.
    NothingNew {},
    Refused {
        reason: String,
    },
}
