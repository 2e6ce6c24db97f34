//! The folder of one agent, held by one process at a time: what lies in it at a start was left by a dead one.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::AgentError;

/// Held for as long as the file is; the kernel ends it with the process, however it ends.
pub(super) fn hold(base: &Path) -> Result<File, AgentError> {
    std::fs::create_dir_all(base).map_err(AgentError::file(base))?;
    let path = base.join("agent.lock");
    let opened = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(&path);
    let lock = opened.map_err(AgentError::file(&path))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(AgentError::FolderInUse(base.to_owned())),
        Err(TryLockError::Error(error)) => Err(AgentError::file(&path)(error)),
    }
}

/// The id of this folder, made at its first use. A copy of the folder is not this one: two agents would be taken for one.
pub(super) fn instance_id(base: &Path) -> Result<String, AgentError> {
    let path = base.join("instance");
    let place = base.canonicalize().map_err(AgentError::file(base))?;
    let place = place.to_string_lossy();
    if let Ok(text) = std::fs::read_to_string(&path)
        && let Some((id, kept_in)) = text.trim_end().split_once(' ')
        && kept_in == place
    {
        return Ok(id.to_owned());
    }
    let random = getrandom::u64().map_err(|error| AgentError::file(&path)(std::io::Error::other(error)))?;
    let id = format!("{random:016x}");
    std::fs::write(&path, format!("{id} {place}\n")).map_err(AgentError::file(&path))?;
    Ok(id)
}

/// The name of this machine.
pub(super) fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "an unnamed machine".to_owned() } else { name }
}

/// An empty place for the private files of runs. Prompts and scripts of a run that was cut off go here, and not where
/// nobody looks for them.
pub(super) fn fresh_scratch(base: &Path) -> Result<PathBuf, AgentError> {
    let path = base.join("runs");
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(AgentError::file(&path)(error));
        }
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(&path).map_err(AgentError::file(&path))?;
    Ok(path)
}

/// The certificate of a private CA as a file that can be shown to jobs: wherever the operator keeps it, they do not see it.
pub(super) fn keep_ca_cert(base: &Path, pem: Option<&[u8]>) -> Result<Option<PathBuf>, AgentError> {
    let Some(pem) = pem else { return Ok(None) };
    let path = base.canonicalize().map_err(AgentError::file(base))?.join("coordinator-ca.pem");
    std::fs::write(&path, pem).map_err(AgentError::file(&path))?;
    Ok(Some(path))
}
