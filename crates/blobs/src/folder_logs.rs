//! Logs as plain files, one per run: `<folder>/<job>/<epoch>.log`. Readable with any tool while the run goes on.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use giga_domain::{Epoch, JobId, limits};
use giga_ports::blobs::LogSlice;
use giga_ports::{BlobError, Logs};

#[derive(Debug, Clone)]
pub struct FolderLogs {
    folder: PathBuf,
}

impl FolderLogs {
    /// The folder is made when the first log is written.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, job: JobId, epoch: Epoch) -> PathBuf {
        self.folder.join(job.to_string()).join(format!("{epoch}.log"))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work).await.map_err(BlobError::unavailable)?
}

#[async_trait]
impl Logs for FolderLogs {
    async fn append(&self, job: JobId, epoch: Epoch, offset: u64, bytes: &[u8]) -> Result<u64, BlobError> {
        let (path, bytes) = (self.path(job, epoch), bytes.to_vec());
        blocking(move || append(&path, offset, &bytes)).await
    }

    async fn read(&self, job: JobId, epoch: Epoch, offset: u64, limit: usize) -> Result<LogSlice, BlobError> {
        let path = self.path(job, epoch);
        blocking(move || read(&path, offset, limit)).await
    }

    async fn cut(&self, job: JobId, epoch: Epoch, from: u64) -> Result<(), BlobError> {
        let path = self.path(job, epoch);
        blocking(move || cut(&path, from)).await
    }

    async fn remove(&self, job: JobId) -> Result<(), BlobError> {
        let folder = self.folder.join(job.to_string());
        blocking(move || match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(BlobError::unavailable(error)),
            _ => Ok(()),
        })
        .await
    }

    fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.folder)
    }
}

/// On the disk of the folder, or of the nearest one above it that is there.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = folder.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn append(path: &Path, offset: u64, bytes: &[u8]) -> Result<u64, BlobError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(BlobError::unavailable)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(BlobError::unavailable)?;
    // Two calls of one holder can overlap after a retry; the lock makes looking and adding one step.
    file.lock().map_err(BlobError::unavailable)?;
    let length = file.metadata().map_err(BlobError::unavailable)?.len();
    if offset > length {
        return Err(BlobError::Gap { expected: length, given: offset });
    }
    let known = usize::try_from(length - offset).unwrap_or(usize::MAX).min(bytes.len());
    let new = &bytes[known..];
    if length + new.len() as u64 > limits::LOG_BYTES {
        return Err(BlobError::TooLarge { what: "the log", limit: limits::LOG_BYTES, remedy: None });
    }
    file.write_all(new).map_err(BlobError::unavailable)?;
    Ok(length + new.len() as u64)
}

fn cut(path: &Path, from: u64) -> Result<(), BlobError> {
    let file = OpenOptions::new().write(true).open(path).map_err(BlobError::unavailable)?;
    file.lock().map_err(BlobError::unavailable)?;
    if file.metadata().map_err(BlobError::unavailable)?.len() > from {
        file.set_len(from).map_err(BlobError::unavailable)?;
    }
    Ok(())
}

fn read(path: &Path, offset: u64, limit: usize) -> Result<LogSlice, BlobError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(LogSlice { bytes: Vec::new(), offset, total: 0 });
        }
        Err(error) => return Err(BlobError::unavailable(error)),
    };
    let total = file.metadata().map_err(BlobError::unavailable)?.len();
    let mut bytes = Vec::new();
    if offset < total {
        file.seek(SeekFrom::Start(offset)).map_err(BlobError::unavailable)?;
        file.take(limit as u64).read_to_end(&mut bytes).map_err(BlobError::unavailable)?;
    }
    Ok(LogSlice { bytes, offset, total })
}
