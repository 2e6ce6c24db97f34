//! A full disk is the reason for many errors of a start, and most of them do not say so.

use std::path::Path;

use crate::exit::CliError;

/// With less than this the store cannot be relied on to open.
const NEEDED: u64 = 8 * 1024 * 1024;

/// The same error, and what to do where the disk of the data folder is full.
pub(super) fn explain(error: CliError, data: &Path) -> CliError {
    let CliError::Failed { message, .. } = &error else { return error };
    let Some(left) = left_on(data) else { return error };
    CliError::failed_but(
        format!("{message}; the disk of the data folder {} is full: {left}", data.display()),
        format!(
            "make room there and start it again, or move the folder to a larger disk and name that with --data; it takes \
             {} MiB to start, and what was acknowledged before is kept",
            NEEDED / 1024 / 1024
        ),
    )
}

/// Of a disk without room.
fn left_on(data: &Path) -> Option<String> {
    let stat = data.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    // Some file systems do not count files.
    if stat.f_files > 0 && stat.f_favail == 0 {
        return Some("it can take no more files".to_owned());
    }
    (free < NEEDED).then(|| format!("{} KiB are free", free / 1024))
}
