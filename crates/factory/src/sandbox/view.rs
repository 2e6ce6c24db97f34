//! One process, and what it is shown beside the system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use tokio::process::Command;

use super::cgroup::RunGroup;
use super::home::{HomeFile, HomeFolder};
use super::network::{HostRule, Proxy};
use super::watch::Watch;
use crate::engines::{HomeSettings, JobSecret};

/// What a process is shown beside the system and its work tree. Says nothing where there is no sandbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// The name for its private home; a number is added where there is one.
    pub(crate) home: PathBuf,
    /// What the engine needs of the operator's home.
    pub(crate) home_files: &'static [HomeFile],
    /// The same, as the operator says.
    pub(crate) home_folders: Vec<HomeFolder>,
    /// Added to what was copied into the home.
    pub(crate) settings: Option<HomeSettings>,
    /// Folders of the work tree that are empty for it.
    pub(crate) covered: Vec<PathBuf>,
    /// Where a job's sessions are kept between its runs.
    pub(crate) kept: Option<PathBuf>,
    /// Those that are wanted as files go into the home, which goes when the process does.
    pub(crate) secrets: Vec<JobSecret>,
    /// Read-only, at their own paths: objects that the work tree borrows, the run's prompt.
    pub(crate) read: Vec<PathBuf>,
    /// What it cannot do without, where the network is not open.
    pub(crate) hosts: Vec<HostRule>,
}

/// A process as it is without a sandbox: the environment is complete.
#[derive(Debug)]
pub(crate) struct Enclosed {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The work tree, which it may change.
    pub(crate) dir: PathBuf,
    pub(crate) view: View,
}

/// What goes on beside a sandboxed process for as long as it runs.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) watch: Watch,
    pub(crate) proxy: Option<Proxy>,
    /// The private home, where secrets were in it or could have been put there.
    pub(crate) wiped: Option<PathBuf>,
    /// Ends what is in it when it is dropped.
    pub(crate) group: Option<RunGroup>,
}

impl Enclosed {
    pub(super) fn plain(self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(&self.env).current_dir(&self.dir);
        command
    }
}
