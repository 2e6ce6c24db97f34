//! Runs an operator's program to its end: bounded output, a time limit, and nothing left behind when it is missed.
//!
//! Never a shell: words are words.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// Of each stream, from its beginning.
const STDOUT_BYTES: usize = 16 << 10;
/// Of errors the end counts.
const STDERR_BYTES: usize = 16 << 10;
/// A helper that stays behind, such as an ssh master, may keep the pipes open after the program has ended.
const PIPE_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// An error of the kind `TimedOut` means that the program and all that it started were killed.
pub(crate) async fn run(mut command: Command, stdin: Vec<u8>, limit: Duration) -> io::Result<Finished> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    // Also where nobody waits for the answer any more.
    let group = Group::of(&child);
    let stdout = tokio::spawn(first_bytes(child.stdout.take(), STDOUT_BYTES));
    let stderr = tokio::spawn(last_bytes(child.stderr.take(), STDERR_BYTES));
    let pipe = child.stdin.take();
    let feed = async move {
        if let Some(mut pipe) = pipe {
            // A program that does not read it says by its exit code what it thinks of it.
            let _ = pipe.write_all(&stdin).await;
        }
    };
    let ended = async { tokio::join!(child.wait(), feed).0 };
    let Ok(status) = tokio::time::timeout(limit, ended).await else {
        drop(group);
        let text = format!("no end within {} s", limit.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
    };
    let status = status?;
    group.disarm();
    let (stdout, stderr) = tokio::join!(text(stdout), text(stderr));
    Ok(Finished { status, stdout, stderr })
}

/// Kills the program and its helpers unless it came to its end by itself.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Gone already is as good as killed.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

async fn text(mut reading: JoinHandle<Vec<u8>>) -> String {
    let bytes = if let Ok(bytes) = tokio::time::timeout(PIPE_GRACE, &mut reading).await {
        bytes.unwrap_or_default()
    } else {
        reading.abort();
        Vec::new()
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads to the end, so that the writer never waits.
async fn first_bytes(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    read(pipe, |bytes| {
        let room = limit.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    })
    .await;
    kept
}

async fn last_bytes(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::new();
    read(pipe, |bytes| {
        kept.extend_from_slice(bytes);
        let spare = kept.len().saturating_sub(limit);
        kept.drain(..spare);
    })
    .await;
    kept
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, mut each: impl FnMut(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        each(&buffer[..count]);
    }
}
