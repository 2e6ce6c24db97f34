//! What runs inside a job can ask the agent for, over a socket of the run: to save the work so far.
//!
//! Whoever writes to it is the job, so nothing of it is believed: a line of a bounded length, a few at a time, each answered
//! once. The job names neither a folder nor an epoch; what is saved is the work of the run whose socket this is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_api::inside::{Answer, MOST_BYTES, Request};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Callers at once.
const MOST_CONNECTIONS: usize = 8;
/// How long one may take to say what it wants.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// A checkpoint that somebody waits for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) note: String,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Of what comes beyond a request, thrown away.
const MOST_UNREAD: u64 = 1 << 20;

/// Of all runs, in the factory's own folder.
pub(super) const SOCKETS: &str = "sockets";
/// What is left of the 108 bytes that the system has for a socket's path.
const LONGEST_FOLDER: usize = 80;

/// Listens for one run, and ends with it.
#[derive(Debug)]
pub(super) struct JobSocket {
    folder: TempDir,
    socket: PathBuf,
    _listening: AbortOnDropHandle<()>,
}

impl JobSocket {
    /// Below `base`, whose owner clears it after a crash. A socket's path must be short: where it would not be, in the
    /// system's folder for temporary files.
    pub(super) fn open(base: &Path) -> io::Result<(Self, mpsc::Receiver<Wanted>)> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("giga-job-");
        let own = base.join(SOCKETS);
        let folder = if own.as_os_str().len() <= LONGEST_FOLDER {
            std::fs::create_dir_all(&own)?;
            folder.tempdir_in(own)?
        } else {
            folder.tempdir()?
        };
        let socket = folder.path().join("agent");
        let listener = UnixListener::bind(&socket)?;
        let (sender, wanted) = mpsc::channel(MOST_CONNECTIONS);
        let listening = AbortOnDropHandle::new(tokio::spawn(listen(listener, sender)));
        Ok((Self { folder, socket, _listening: listening }, wanted))
    }

    pub(super) fn path(&self) -> &Path {
        &self.socket
    }

    /// What has to be shown for the job to find it.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// What a killed agent left. Nobody else is at work in this folder.
pub(super) fn clear(base: &Path) {
    let sockets = base.join(SOCKETS);
    match std::fs::remove_dir_all(&sockets) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, folder = %sockets.display(), "old sockets could not be removed");
        }
        _ => {}
    }
}

async fn listen(listener: UnixListener, wanted: mpsc::Sender<Wanted>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open; some will be closed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let wanted = wanted.clone();
        connections.spawn(async move {
            // Whoever goes away needs no answer.
            let _ = serve(stream, &wanted).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: UnixStream, wanted: &mpsc::Sender<Wanted>) -> io::Result<()> {
    let mut line = Vec::new();
    let mut reader = BufReader::new((&mut stream).take(MOST_BYTES));
    let read = tokio::time::timeout(ASK_WITHIN, reader.read_until(b'\n', &mut line)).await;
    let answer = match read {
        Ok(Ok(_)) => answer(&line, wanted).await,
        Ok(Err(error)) => return Err(error),
        Err(_) => refused("the request did not come in time: send one line of JSON"),
    };
    let answer = serde_json::to_vec(&answer).map_err(io::Error::other)?;
    stream.write_all(&answer).await?;
    stream.shutdown().await?;
    // Closing while something is unread would take the answer back.
    let rest = async { tokio::io::copy(&mut stream.take(MOST_UNREAD), &mut tokio::io::sink()).await };
    let _in_time = tokio::time::timeout(ASK_WITHIN, rest).await;
    Ok(())
}

async fn answer(line: &[u8], wanted: &mpsc::Sender<Wanted>) -> Answer {
    let note = match serde_json::from_slice(line) {
        Ok(Request::Checkpoint { note }) => note,
        Err(error) => {
            let reason = format!(
                "the request is not understood ({error}): send one line such as {{\"checkpoint\":{{\"note\":\"…\"}}}}"
            );
            return refused(&reason);
        }
    };
    let (sender, receiver) = oneshot::channel();
    let over = "the run is coming to its end; its work is saved by itself";
    if wanted.send(Wanted { note, answer: sender }).await.is_err() {
        return refused(over);
    }
    receiver.await.unwrap_or_else(|_| refused(over))
}

pub(super) fn refused(reason: &str) -> Answer {
    Answer::Refused { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(socket: &Path, bytes: &[u8]) -> Answer {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        // It may be refused before it is read.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    #[tokio::test]
    async fn what_is_no_request_is_refused_and_reaches_nobody() {
        let base = tempfile::tempdir().unwrap();
        let (socket, mut wanted) = JobSocket::open(base.path()).unwrap();
        let long = format!("{{\"checkpoint\":{{\"note\":\"{}\"}}}}\n", "x".repeat(20_000));
        let hostile: [&[u8]; 7] = [
            b"",
            b"\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"{\"checkpoint\":{\"note\":1}}\n",
            b"{\"checkpoint\":{\"note\":\"a\",\"epoch\":9}}\n",
            b"\xff\xfe\n",
            long.as_bytes(),
        ];
        for request in hostile {
            let answer = ask(socket.path(), request).await;
            assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
        }
        assert!(wanted.try_recv().is_err());
    }

    #[tokio::test]
    async fn one_that_is_wanted_is_answered_by_whoever_saves() {
        let base = tempfile::tempdir().unwrap();
        let (socket, mut wanted) = JobSocket::open(base.path()).unwrap();
        let saving = async {
            let Wanted { note, answer } = wanted.recv().await.unwrap();
            assert_eq!(note, "half of it");
            answer.send(Answer::Saved { commit: "abc".to_owned() }).unwrap();
        };
        let asking = ask(socket.path(), b"{\"checkpoint\":{\"note\":\"half of it\"}}\n");
        let (answer, ()) = tokio::join!(asking, saving);
        assert_eq!(answer, Answer::Saved { commit: "abc".to_owned() });
        drop(wanted);
        let late = ask(socket.path(), b"{\"checkpoint\":{}}\n").await;
        assert!(matches!(late, Answer::Refused { reason } if reason.contains("its end")));
    }
}
