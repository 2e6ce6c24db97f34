//! The only crate that knows where bytes outside the database live: logs as growing files, artifacts in an object store.
//!
//! It never judges who may write; callers have been fenced before they get here.

mod artifacts;
mod logs;

pub use artifacts::ObjectArtifacts;
pub use logs::FolderLogs;
