//! Where a job works on this machine.

use std::path::PathBuf;

use crate::workspace::{WorkFolder, Worktree};

/// Where jobs without a repository work, and the file beside the tree of each that names its run.
pub(super) const SCRATCH: &str = "scratch";
pub(super) const SCRATCH_RUN: &str = "run";

/// Where the engine works: its repositories, or an empty folder for a job without one.
pub(super) enum Place {
    Repo(Box<WorkFolder>),
    Scratch { folder: PathBuf, tree: PathBuf },
}

impl Place {
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Repo(folder) => folder.path(),
            Self::Scratch { tree, .. } => tree.clone(),
        }
    }

    /// Where the private home of a run goes: it is removed with the folder.
    pub(super) fn home(&self) -> PathBuf {
        self.path().with_file_name("home")
    }

    pub(super) fn borrowed(&self) -> Vec<PathBuf> {
        match self {
            Self::Repo(folder) => folder.trees().iter().flat_map(Worktree::borrowed_objects).collect(),
            Self::Scratch { .. } => Vec::new(),
        }
    }
}
