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

    async fn remove(&self, job: JobId) -> Result<(), BlobError> {
        let folder = self.folder.join(job.to_string());
        blocking(move || match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(BlobError::unavailable(error)),
            _ => Ok(()),
        })
        .await
    }
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
        return Err(BlobError::TooLarge { what: "the log", limit: limits::LOG_BYTES });
    }
    file.write_all(new).map_err(BlobError::unavailable)?;
    Ok(length + new.len() as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> JobId {
        JobId::from_parts(giga_domain::Timestamp::from_millis(1), 1)
    }

    #[tokio::test]
    async fn a_log_grows_at_its_end_and_a_repeated_piece_adds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FolderLogs::new(folder.path().join("logs"));
        assert_eq!(logs.append(id(), Epoch(1), 0, b"hello ").await.unwrap(), 6);
        assert_eq!(logs.append(id(), Epoch(1), 0, b"hello ").await.unwrap(), 6, "a lost reply");
        assert_eq!(logs.append(id(), Epoch(1), 3, b"lo world").await.unwrap(), 11, "an overlap");
        let slice = logs.read(id(), Epoch(1), 6, 3).await.unwrap();
        assert_eq!((slice.bytes.as_slice(), slice.total), (b"wor".as_slice(), 11));
        assert!(logs.read(id(), Epoch(1), 99, 3).await.unwrap().bytes.is_empty());
        assert_eq!(logs.read(id(), Epoch(2), 0, 3).await.unwrap().total, 0, "another run, another log");
    }

    #[tokio::test]
    async fn a_gap_is_refused_and_says_where_to_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FolderLogs::new(folder.path().to_owned());
        logs.append(id(), Epoch(1), 0, b"abc").await.unwrap();
        let gap = logs.append(id(), Epoch(1), 7, b"x").await.unwrap_err();
        assert!(matches!(gap, BlobError::Gap { expected: 3, given: 7 }), "{gap}");
        assert_eq!(logs.read(id(), Epoch(1), 0, 10).await.unwrap().bytes, b"abc");
    }

    #[tokio::test]
    async fn removing_takes_every_run_and_can_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let logs = FolderLogs::new(folder.path().to_owned());
        for epoch in 1..4 {
            logs.append(id(), Epoch(epoch), 0, b"x").await.unwrap();
        }
        logs.remove(id()).await.unwrap();
        logs.remove(id()).await.unwrap();
        assert_eq!(logs.read(id(), Epoch(2), 0, 9).await.unwrap().total, 0);
    }
}
