//! Asks a program a short question, such as its version or whether it is signed in.
//!
//! Bound in time and in what is kept of the answer; like a run, it leaves no process behind.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{EngineFailure, Launch, Started, spawn};
use crate::sandbox::Sandbox;

const ANSWER_BYTES: u64 = 64 * 1024;

#[derive(Debug)]
pub(in crate::engines) struct Probe {
    pub(in crate::engines) succeeded: bool,
    pub(in crate::engines) code: Option<i32>,
    pub(in crate::engines) stdout: String,
    pub(in crate::engines) stderr: String,
}

/// `Ok(None)` when it took too long.
pub(in crate::engines) async fn probe(
    launch: Launch,
    sandbox: &Sandbox,
    patience: Duration,
) -> Result<Option<Probe>, EngineFailure> {
    let Started { mut child, mut tree, guard: _guard } = spawn(launch, sandbox)?;
    let stdout = child.stdout.take().expect("standard output was piped by spawn");
    let stderr = child.stderr.take().expect("standard error was piped by spawn");
    let answer = async {
        let (stdout, stderr, status) = tokio::join!(read(stdout), read(stderr), child.wait());
        let status = status.ok();
        Probe {
            succeeded: status.is_some_and(|status| status.success()),
            code: status.and_then(|status| status.code()),
            stdout,
            stderr,
        }
    };
    let answer = tokio::time::timeout(patience, answer).await.ok();
    if child.id().is_none() {
        tree.leader_ended();
    }
    tree.kill().await;
    let _reaped = child.wait().await;
    Ok(answer)
}

async fn read(stream: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut stream = stream.take(ANSWER_BYTES);
    // A stream that breaks has nothing more to say.
    let _broken = stream.read_to_end(&mut kept).await;
    String::from_utf8_lossy(&kept).into_owned()
}
