//! The log of one run: written to a file first, shipped to the coordinator from there.
//!
//! The file is what lets the log survive an unreachable coordinator; the coordinator's offset is what keeps a repeated
//! piece from being added twice. The file has all of the log until the run is over, so whatever the coordinators lack
//! is sent again: shipping ends early only when this run may not write any more.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_api::client::{Client, ClientError};
use giga_api::wire::ProblemCode;
use giga_domain::secret::Leaks;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::lease::{Held, is_final};

const PIECE: usize = 256 * 1024;
/// Lines that come close together travel together.
const GATHER: Duration = Duration::from_millis(200);
/// Between two tries to send the end of a log.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// So often in a row a log is sent again from its beginning; after that it waits for the next line.
const REWINDS: u32 = 3;

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

    /// Sends what is written until `done`, and then the rest: at once or, while nobody answers, for as long as the caller
    /// waits.
    pub(super) async fn ship(self, client: Client, held: Held, done: CancellationToken) {
        let mut sent = 0u64;
        let mut refused_since = None;
        let mut backoff = Backoff::new();
        loop {
            let finished = done.is_cancelled();
            let shipped = self.send_new(&client, &held, &mut sent).await;
            match shipped {
                Shipped::NoMore => return,
                Shipped::All if finished => {
                    let _ = std::fs::remove_file(&self.inner.path);
                    return;
                }
                Shipped::All => {
                    refused_since = None;
                    backoff.reset();
                }
                // What is answered so for long is not going to change before the job has to go on.
                Shipped::Later { answered: true } if finished => {
                    let since: &mut Instant = refused_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > super::job::LAST_LINES {
                        tracing::warn!(job = held.job, sent, "the end of a log was not accepted");
                        let _ = std::fs::remove_file(&self.inner.path);
                        return;
                    }
                }
                Shipped::Later { .. } => {}
            }
            match shipped {
                Shipped::All => tokio::select! {
                    () = done.cancelled() => {}
                    () = self.inner.grown.notified() => {
                        tokio::select! {
                            () = done.cancelled() => {}
                            () = tokio::time::sleep(GATHER) => {}
                        }
                    }
                },
                _ if finished => tokio::time::sleep(RETRY_DELAY).await,
                // Also without another line, so that whoever reads along sees what there is.
                _ => tokio::select! {
                    () = done.cancelled() => {}
                    () = backoff.wait() => {}
                },
            }
        }
    }

    async fn send_new(&self, client: &Client, held: &Held, sent: &mut u64) -> Shipped {
        let mut rewinds = 0;
        loop {
            let piece = match self.read(*sent) {
                Ok(piece) if piece.is_empty() => return Shipped::All,
                Ok(piece) => piece,
                Err(error) => {
                    tracing::warn!(%error, "a log could not be read back");
                    return Shipped::NoMore;
                }
            };
            match client.append_log(&held.job, held.epoch, *sent, piece).await {
                Ok(length) => *sent = length,
                // Whoever answers has less of the log than was accepted before. What it has is passed over there, so from
                // the beginning is right wherever its end is.
                Err(error) if error.code() == Some(ProblemCode::LogGap) => {
                    tracing::warn!(%error, job = held.job, sent, "a log is shorter there than what was accepted; sending it again");
                    *sent = 0;
                    rewinds += 1;
                    if rewinds > REWINDS {
                        return Shipped::Later { answered: true };
                    }
                }
                Err(error) if ends_the_log(&error) => {
                    tracing::debug!(%error, job = held.job, "the coordinator no longer accepts this log");
                    return Shipped::NoMore;
                }
                Err(error) => {
                    tracing::debug!(%error, job = held.job, "a log has to wait");
                    return Shipped::Later { answered: error.code().is_some() };
                }
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

/// What a try to send came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shipped {
    All,
    /// Not now. Nobody may have answered, or somebody who said so.
    Later {
        answered: bool,
    },
    /// Never: this run may not write any more, or its log is as long as one can be.
    NoMore,
}

/// Whatever else is wrong may pass, such as a proxy whose coordinator was killed.
fn ends_the_log(error: &ClientError) -> bool {
    use ProblemCode::{InvalidRequest, PayloadTooLarge};
    is_final(error) || matches!(error.code(), Some(InvalidRequest | PayloadTooLarge))
}
