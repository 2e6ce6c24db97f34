//! The folder of a coordinator: its lock, its admin token and its address. The store's files are the store's.
//!
//! One coordinator per folder: the lock is the kernel's and ends with the process, however it ends. The token file
//! is never readable by others, not even for a moment, and never half-written.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use giga_coordinator::{Coordinator, Error};
use giga_domain::token::TokenSecret;

use crate::exit::CliError;
use crate::output::say;

/// A token of 30 days is renewed when half of that is over.
const RENEW_EVERY: Duration = Duration::from_hours(1);

pub(crate) enum AdminToken {
    /// The one in the file works.
    Kept,
    Written,
}

pub(super) struct DataFolder {
    path: PathBuf,
    /// Held until the process ends.
    _lock: File,
}

impl DataFolder {
    pub(super) fn lock(path: PathBuf) -> Result<Self, CliError> {
        let cannot = |error: io::Error| {
            CliError::failed_but(
                format!("cannot use the data folder {}: {error}", path.display()),
                "choose another with --data DIR",
            )
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(cannot)?;
        // Absolute, so that it reads the same from everywhere.
        let path = path.canonicalize().map_err(cannot)?;
        let lock =
            OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path.join("lock"));
        let lock = lock.map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(in_use(&path)),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn token_path(&self) -> PathBuf {
        self.path.join("admin.token")
    }

    /// After this the file holds a token that works: the one it had, or a new one.
    pub(super) async fn keep_admin_token(&self, coordinator: &Coordinator) -> Result<AdminToken, CliError> {
        let failed = |error: Error| CliError::failed(format!("cannot create an admin token: {error}"));
        let path = self.token_path();
        if let Some(secret) = self.token()
            && coordinator.revive_local_admin(&secret).await.map_err(failed)?
        {
            return Ok(AdminToken::Kept);
        }
        let reason = if path.exists() { "holds no valid token" } else { "is missing" };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let place = format!("{host}:{}", self.path.display());
        let (secret, was_there) = coordinator.replace_local_admin(&place).await.map_err(failed)?;
        self.write_token(&secret)?;
        if was_there {
            say(&format!("{} {reason}: a new admin token was written to it", path.display()));
        }
        Ok(AdminToken::Written)
    }

    /// Runs as long as the coordinator, whose folder's token lives as long.
    pub(super) async fn renew_admin_token(&self, coordinator: &Coordinator) {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            if let Some(secret) = self.token()
                && let Err(error) = coordinator.revive_local_admin(&secret).await
            {
                tracing::warn!(%error, "the local admin token was not renewed; trying again in an hour");
            }
        }
    }

    fn token(&self) -> Option<TokenSecret> {
        TokenSecret::parse(std::fs::read_to_string(self.token_path()).ok()?.trim()).ok()
    }

    fn write_token(&self, secret: &TokenSecret) -> Result<(), CliError> {
        self.write("admin.token", secret.reveal())
    }

    /// Where this machine's `giga` finds the coordinator.
    pub(super) fn write_url(&self, url: &str) -> Result<(), CliError> {
        self.write("url", url)
    }

    pub(super) fn remove_url(&self) {
        // One that stays behind only points to where nobody answers.
        let _ = std::fs::remove_file(self.path.join("url"));
    }

    /// Whole or not at all, and on disk when it returns.
    fn write(&self, name: &str, text: &str) -> Result<(), CliError> {
        let path = self.path.join(name);
        let aside = self.path.join(format!(".{name}.new"));
        let written = (|| {
            // Left over from a crash; its rights may be anything.
            match std::fs::remove_file(&aside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            std::fs::rename(&aside, &path)?;
            File::open(&self.path)?.sync_all()
        })();
        written.map_err(|error| CliError::failed(format!("cannot write {}: {error}", path.display())))
    }
}

fn in_use(path: &Path) -> CliError {
    let place = std::fs::read_to_string(path.join("url"));
    let place = place.map(|url| format!(" at {}", url.trim())).unwrap_or_default();
    CliError::failed_but(
        format!("a coordinator is already running in {}{place}", path.display()),
        "use that one, stop it first, or give this one its own folder: --data DIR --listen 127.0.0.1:0",
    )
}
