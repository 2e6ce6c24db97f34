//! The only crate that knows where bytes outside the database live: a folder, or a bucket of a cloud.
//!
//! It never judges who may write; callers have been fenced before they get here. It never shows a credential: not in
//! an error, not in a debug print.

mod artifacts;
mod bucket;
mod folder_logs;
mod mark;
mod open;
mod piece_logs;

pub use artifacts::ObjectArtifacts;
pub use folder_logs::FolderLogs;
pub use mark::PlaceId;
pub use open::{OpenError, Places, open};
pub use piece_logs::PieceLogs;
