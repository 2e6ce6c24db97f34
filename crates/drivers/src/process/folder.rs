//! The folder of a member: its credential, its output, who runs in it, and below `base` what the factory itself keeps.
//!
//! Work that is nowhere else is never removed. What is there a factory says when it leaves; of one that was killed everything
//! is kept, unless it never had a job.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use giga_domain::{FactoryId, PoolName};
use giga_ports::DriverError;
use serde::Deserialize;

use super::seen::Seen;

/// What a factory notes when it leaves for good.
const LEFT: &str = "left.json";

#[derive(Debug, Clone)]
pub(super) struct MemberFolder {
    path: PathBuf,
    /// The output of the last start of the pool that came to nothing.
    last_failed: PathBuf,
}

#[derive(Deserialize)]
struct Left {
    kept: Vec<String>,
}

impl MemberFolder {
    pub(super) fn new(folder: &Path, pool: &PoolName, factory: &FactoryId) -> Self {
        let last_failed = folder.join(format!("{pool}.failed.log"));
        Self { path: folder.join(factory.as_str()), last_failed }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn base(&self) -> PathBuf {
        self.path.join("base")
    }

    pub(super) fn credential(&self) -> PathBuf {
        self.path.join("credential")
    }

    pub(super) fn exists(&self) -> bool {
        self.path.is_dir()
    }

    pub(super) fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.base())
    }

    /// One start or stop of this member at a time, whoever asks for it. Waits; held for as long as the file is.
    pub(super) fn lock(&self) -> io::Result<File> {
        loop {
            let path = self.path.join("lock");
            let file = private().create(true).truncate(false).open(&path)?;
            file.lock()?;
            // A stop may have removed the folder while this waited: then the lock is on a file that nobody else can find.
            let is_there = std::fs::metadata(&path).is_ok_and(|now| {
                file.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (now.dev(), now.ino()))
            });
            if is_there {
                return Ok(file);
            }
            self.make()?;
        }
    }

    /// Whole or not at all, and never readable by others.
    pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
        let fresh = path.with_extension("new");
        let _ = std::fs::remove_file(&fresh);
        let mut file = private().create_new(true).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    }

    /// Empty; that of the start before is kept beside it.
    pub(super) fn fresh_log(&self) -> io::Result<File> {
        let log = self.log();
        match std::fs::rename(&log, self.path.join("log.1")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().append(true).create_new(true).mode(0o600).open(log)
    }

    pub(super) fn note(&self, seen: Seen) -> io::Result<()> {
        Self::write(&self.path.join("process"), &format!("{}:{}\n", seen.id, seen.began))
    }

    pub(super) fn noted(&self) -> Option<Seen> {
        let text = std::fs::read_to_string(self.path.join("process")).ok()?;
        let (id, began) = text.trim().split_once(':')?;
        Some(Seen { id: id.parse().ok()?, began: began.parse().ok()? })
    }

    /// Nobody works here any more.
    pub(super) fn clear(&self) {
        if !self.base().join("factory.token").exists() && !self.has_left() {
            // It never came: its output is all that says why.
            let _ = std::fs::rename(self.log(), &self.last_failed);
        }
        let kept = self.only_here();
        if kept.is_empty() {
            match std::fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(folder = %self.path.display(), %error, "what is left of a factory cannot be removed");
                }
                _ => {}
            }
            return;
        }
        let folder = self.path.display();
        tracing::warn!(%folder, kept = kept.join(", "), "kept: the factory is gone, but its work is nowhere else");
        for name in ["credential", "process", "lock"] {
            let _ = std::fs::remove_file(self.path.join(name));
        }
    }

    fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    fn has_left(&self) -> bool {
        self.base().join(LEFT).exists()
    }

    /// In the factory's own words, or whatever may be.
    fn only_here(&self) -> Vec<String> {
        let said = std::fs::read(self.base().join(LEFT)).ok();
        if let Some(left) = said.and_then(|text| serde_json::from_slice::<Left>(&text).ok()) {
            return left.kept;
        }
        let has_any = |name: &&str| {
            std::fs::read_dir(self.base().join(name)).is_ok_and(|mut entries| entries.next().is_some())
        };
        ["work", "mirrors"].iter().filter(|name| has_any(name)).map(|name| format!("base/{name}")).collect()
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// What went wrong with a folder, and whether it may pass.
pub(super) fn cannot_use(path: &Path) -> impl Fn(io::Error) -> DriverError {
    move |error| {
        let reason = format!("cannot use the folder {}: {error}", path.display());
        let passes = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        DriverError { reason, transient: passes }
    }
}
