//! The log of one run: written to a file first, shipped to the coordinator from there.
//!
//! The file is what lets the log survive an unreachable coordinator; the coordinator's offset is what keeps a repeated
//! piece from being added twice.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_api::client::Client;
use giga_domain::secret::Leaks;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::lease::{Held, is_final};

const PIECE: usize = 256 * 1024;
/// Lines that come close together travel together.
const GATHER: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub(super) struct RunLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: Mutex<std::fs::File>,
    grown: Notify,
    kept_out: OnceLock<Leaks>,
}

impl RunLog {
    pub(super) fn create(folder: &Path, held: &Held) -> std::io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{}.{}.log", held.job, held.epoch));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        Ok(Self {
            inner: Arc::new(Inner {
                path,
                file: Mutex::new(file),
                grown: Notify::new(),
                kept_out: OnceLock::new(),
            }),
        })
    }

    /// A full disk must not fail the job: the line is lost, the work goes on.
    pub(super) fn line(&self, text: &str) {
        let mut file = self.inner.file.lock();
        if let Err(error) = writeln!(file, "{text}") {
            tracing::warn!(%error, "a line of a log could not be written");
        }
        drop(file);
        self.inner.grown.notify_one();
    }

    /// From now on no note has one of these in it; what engines print comes without them.
    pub(super) fn keep_out(&self, leaks: Leaks) {
        let _ = self.inner.kept_out.set(leaks);
    }

    /// A line of the agent itself.
    pub(super) fn note(&self, text: &str) {
        let text = self.inner.kept_out.get().map_or_else(|| text.to_owned(), |leaks| leaks.redact(text));
        self.line(&format!("[giga] {text}"));
    }

    /// Sends what is written until `done`, and then the rest.
    pub(super) async fn ship(self, client: Client, held: Held, done: CancellationToken) {
        let mut sent = 0u64;
        loop {
            let finished = done.is_cancelled();
            match self.send_new(&client, &held, &mut sent).await {
                Ok(()) => {}
                Err(()) => return,
            }
            if finished {
                let _ = std::fs::remove_file(&self.inner.path);
                return;
            }
            tokio::select! {
                () = done.cancelled() => {}
                () = self.inner.grown.notified() => {
                    tokio::select! {
                        () = done.cancelled() => {}
                        () = tokio::time::sleep(GATHER) => {}
                    }
                }
            }
        }
    }

    /// Stops for good when the coordinator says that this run may not write any more.
    async fn send_new(&self, client: &Client, held: &Held, sent: &mut u64) -> Result<(), ()> {
        loop {
            let piece = match self.read(*sent) {
                Ok(piece) if piece.is_empty() => return Ok(()),
                Ok(piece) => piece,
                Err(error) => {
                    tracing::warn!(%error, "a log could not be read back");
                    return Err(());
                }
            };
            match client.append_log(&held.job, held.epoch, *sent, piece).await {
                Ok(length) => *sent = length,
                Err(error) if is_final(&error) || !error.is_passing() => {
                    tracing::debug!(%error, job = held.job, "the coordinator no longer accepts this log");
                    return Err(());
                }
                // Passing: the next line, or the end of the run, tries again.
                Err(_) => return Ok(()),
            }
        }
    }

    fn read(&self, from: u64) -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(&self.inner.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut piece = Vec::new();
        file.take(PIECE as u64).read_to_end(&mut piece)?;
        Ok(piece)
    }
}
