//! One agent per folder: two would offer the same seats twice, and settle each other's running work as a leftover.
//!
//! The lock is the kernel's and ends with the process, however it ends.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::exit::CliError;

/// `patient` where the one before is known to be on its way out, as after a `giga up` that was killed.
pub(super) async fn lock(base: &Path, patient: bool) -> Result<File, CliError> {
    let cannot = |error: std::io::Error| {
        CliError::failed_but(
            format!("cannot use the folder {}: {error}", base.display()),
            "choose another with --base DIR",
        )
    };
    DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(cannot)?;
    let path = base.join("lock");
    let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) if patient => {
            tracing::info!(base = %base.display(), "waiting for the previous factory to exit");
            let waited = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
            waited.map_err(|error| cannot(error.into()))?.map_err(cannot)
        }
        Err(TryLockError::WouldBlock) => Err(CliError::failed_but(
            format!("another factory is running in {}", base.display()),
            "use that one, stop it first, or give this one its own: --id NAME --base DIR",
        )),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}
