//! Watches what the kernel does not bound for a run as a whole: processes, memory, disk.
//!
//! A second line: `init` sets what the kernel keeps for each process. Looks every so often, so that a run can be over for a
//! moment; it never stays so.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::limits::{Limits, human};
use super::processes::{below, own_memory};

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Folders are large: at least this long between two looks, and so many times as long as a look takes.
const DISK_EVERY: Duration = Duration::from_secs(2);
const DISK_REST: u32 = 20;

#[derive(Debug)]
pub(crate) struct Watch {
    limits: Limits,
    folders: Vec<PathBuf>,
}

impl Watch {
    pub(super) fn new(limits: Limits, folders: Vec<PathBuf>) -> Self {
        Self { limits, folders }
    }

    /// Ends when a bound is passed, with the words for it.
    pub(crate) async fn breach(&self, leader: u32) -> String {
        tokio::select! {
            breach = processes(self.limits, leader) => breach,
            breach = disk(self.limits, &self.folders) => breach,
        }
    }
}

async fn processes(limits: Limits, leader: u32) -> String {
    if limits.processes.is_none() && limits.memory_bytes.is_none() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let all = below(leader);
        let count: u64 = all.iter().map(|seen| seen.threads).sum();
        if let Some(limit) = limits.processes.filter(|limit| count > *limit) {
            return format!("the run had more than {limit} processes");
        }
        if let Some(limit) = limits.memory_bytes {
            let used: u64 = all.iter().map(|seen| own_memory(seen.id)).sum();
            if used > limit {
                return format!("the run used more than {} of memory", human(limit));
            }
        }
    }
}

async fn disk(limits: Limits, folders: &[PathBuf]) -> String {
    let Some(limit) = limits.disk_bytes else { return std::future::pending().await };
    let mut rest = DISK_EVERY;
    loop {
        tokio::time::sleep(rest).await;
        let (begun, folders) = (Instant::now(), folders.to_vec());
        let used =
            tokio::task::spawn_blocking(move || folders.iter().map(|folder| size(folder)).sum::<u64>());
        if used.await.unwrap_or_default() > limit {
            return format!("the run used more than {} of disk", human(limit));
        }
        rest = DISK_EVERY.max(begun.elapsed() * DISK_REST);
    }
}

/// What is stored below it; links are not followed.
fn size(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            bytes += meta.blocks() * 512;
            if meta.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_counts_and_links_do_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        std::fs::write(folder.path().join("in/file"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let bytes = size(folder.path());
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
    }
}
