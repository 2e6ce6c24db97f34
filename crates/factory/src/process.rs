//! Runs a short command to its end: bounded output, a time limit, and nothing left behind when it is missed.
//!
//! Never a shell, and never standard input from a terminal. Engines, which stream and run for hours, have a runner of
//! their own.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

const STDERR_BYTES: usize = 256 << 10;
/// A helper that stays behind, such as an ssh master, may keep the pipes open after the command has ended.
const PIPE_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// More came than was asked for; the rest was dropped.
    pub(crate) truncated: bool,
    pub(crate) stderr: String,
}

/// Sees the error output as it is written.
pub(crate) type Watch = Box<dyn FnMut(&[u8]) + Send>;

/// An error of the kind `TimedOut` means that the command and all that it started were killed. The time of a command that says
/// how far it is begins anew while it does.
pub(crate) async fn run_watched(
    mut command: Command,
    stdin: Option<Vec<u8>>,
    stdout_limit: usize,
    limit: Duration,
    watch: Option<Watch>,
) -> io::Result<Finished> {
    let mut child = command
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group::of(&child);
    let stdout = Collector::start(child.stdout.take(), stdout_limit, None);
    let is_watched = watch.is_some();
    let stderr = Collector::start(child.stderr.take(), STDERR_BYTES, watch);
    let pipe = child.stdin.take();
    let feed = async move {
        if let Some(mut pipe) = pipe {
            // A command that stops reading says why by its exit code.
            let _ = pipe.write_all(&stdin.unwrap_or_default()).await;
        }
    };
    let ended = async { tokio::join!(child.wait(), feed).0 };
    let too_late = async {
        let mut deadline = tokio::time::Instant::now() + limit;
        loop {
            tokio::time::sleep_until(deadline).await;
            let last = stderr.last_written().filter(|_| is_watched);
            match last.map(|last| last + limit).filter(|later| *later > deadline) {
                Some(later) => deadline = later,
                None => return,
            }
        }
    };
    let status = tokio::select! {
        biased;
        status = ended => status,
        () = too_late => {
            drop(group);
            let text = format!("no end within {} s", limit.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
    };
    group.disarm();
    let ((stdout, truncated), (stderr, _)) = tokio::join!(stdout.finish(), stderr.finish());
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Ok(Finished { status: status?, stdout, truncated, stderr })
}

/// Kills the command and its helpers unless it came to its end by itself.
struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Gone already is as good as killed.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    truncated: bool,
    last_written: Option<tokio::time::Instant>,
}

/// Reads a pipe to its end, keeps the first bytes and drops the rest, so that the writer never blocks.
struct Collector {
    kept: Arc<Mutex<Kept>>,
    task: tokio::task::JoinHandle<()>,
}

impl Collector {
    fn start(
        pipe: Option<impl AsyncRead + Unpin + Send + 'static>,
        limit: usize,
        mut watch: Option<Watch>,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let into = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            let Some(mut pipe) = pipe else { return };
            let mut buffer = vec![0; 64 << 10];
            while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
                if let Some(watch) = &mut watch {
                    watch(&buffer[..n]);
                }
                let mut kept = into.lock();
                let room = limit.saturating_sub(kept.bytes.len()).min(n);
                kept.bytes.extend_from_slice(&buffer[..room]);
                kept.truncated |= room < n;
                kept.last_written = Some(tokio::time::Instant::now());
            }
        });
        Self { kept, task }
    }

    fn last_written(&self) -> Option<tokio::time::Instant> {
        self.kept.lock().last_written
    }

    async fn finish(mut self) -> (Vec<u8>, bool) {
        if tokio::time::timeout(PIPE_GRACE, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let Kept { bytes, truncated, .. } = std::mem::take(&mut *self.kept.lock());
        (bytes, truncated)
    }
}
