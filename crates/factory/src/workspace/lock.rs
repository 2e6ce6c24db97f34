//! Advisory file locks: one per repository around shared git metadata, one per work folder while it is in use.
//!
//! A lock is never held while an engine runs except the work folder's own, and never outlives its process: the
//! kernel drops it with the file, so a kill -9 leaves nothing to clean up but what the holder was writing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::WorkspaceError;

/// Longer than any single fetch may take, but for the first one of a huge repository.
const LONGEST_WAIT: Duration = Duration::from_mins(30);
const BUSY: &[u8] = b"busy\n";

#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    path: PathBuf,
    /// The last holder died in the middle of its work.
    pub(crate) was_abandoned: bool,
}

impl FileLock {
    /// Waits for its turn, in a thread of its own because the kernel's wait cannot be polled.
    pub(crate) async fn acquire(path: PathBuf) -> Result<Self, WorkspaceError> {
        let waiting = tokio::task::spawn_blocking({
            let path = path.clone();
            move || {
                loop {
                    let file = open(&path)?;
                    file.lock()?;
                    if is_still_at(&file, &path) {
                        return Self::held(file, path);
                    }
                }
            }
        });
        let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "another process holds this lock");
        match tokio::time::timeout(LONGEST_WAIT, waiting).await {
            Ok(Ok(lock)) => lock.map_err(WorkspaceError::io(path)),
            Ok(Err(_)) | Err(_) => Err(WorkspaceError::io(path)(late())),
        }
    }

    /// `None` when somebody holds it.
    pub(crate) fn try_acquire(path: &Path) -> Result<Option<Self>, WorkspaceError> {
        let attempt = || {
            loop {
                let file = open(path)?;
                match file.try_lock() {
                    Ok(()) if is_still_at(&file, path) => return Self::held(file, path.to_owned()).map(Some),
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
        };
        attempt().map_err(WorkspaceError::io(path))
    }

    fn held(mut file: File, path: PathBuf) -> std::io::Result<Self> {
        let mut before = Vec::new();
        file.read_to_end(&mut before)?;
        file.rewind()?;
        file.write_all(BUSY)?;
        Ok(Self { file, path, was_abandoned: !before.is_empty() })
    }

    /// For locks of things that are gone for good. Whoever waits on the old file notices and opens a new one.
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Explicit, because a child between fork and exec shares the descriptor for a moment.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// A lock on a file that was removed meanwhile would be nobody's lock.
fn is_still_at(file: &File, path: &Path) -> bool {
    let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().ok().zip(std::fs::metadata(path).ok()).is_some_and(|(a, b)| same(a, b))
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let first = FileLock::acquire(path.clone()).await.unwrap();
        assert!(FileLock::try_acquire(&path).unwrap().is_none());
        let second = tokio::spawn(FileLock::acquire(path.clone()));
        drop(first);
        let second = second.await.unwrap().unwrap();
        assert!(!second.was_abandoned, "the first one ended in order");
        drop(second);
        assert!(FileLock::try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn a_holder_that_died_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        std::fs::write(&path, BUSY).unwrap();
        assert!(FileLock::try_acquire(&path).unwrap().unwrap().was_abandoned);
        assert!(!FileLock::try_acquire(&path).unwrap().unwrap().was_abandoned);
    }
}
