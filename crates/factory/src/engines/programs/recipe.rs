//! What the runner has to know of a program, whoever says it: the list of programs, or an operator's settings.
//!
//! A recipe never starts anything, and gives no secret to the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use giga_domain::{Permissions, Timestamp};

use super::preflight::SignIn;
use crate::engines::acp::AcpConfig;
use crate::engines::config::EventFormat;
use crate::engines::engine::{EngineFailure, EngineRequest};
use crate::engines::events::LineEvent;
use crate::engines::process::{HostEnvironment, JournalFiles};
use crate::engines::tool_server::{Offer, ToolServer};
use crate::sandbox::{HomeFile, HomeFolder, HostRule};

/// How one program is used.
pub(in crate::engines) trait Recipe: fmt::Debug + Send + Sync {
    fn name(&self) -> &str;
    fn program(&self) -> &Path;
    fn format(&self) -> EventFormat;

    /// Known before the program names it.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Variables of the factory that the program may see besides the base.
    fn variables(&self) -> Vec<&str>;

    /// Set for it, whatever the factory's environment has.
    fn fixed_variables(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    /// What it needs of the operator's home.
    fn home_files(&self) -> &'static [HomeFile] {
        &[]
    }

    /// The same, as the operator says.
    fn home_folders(&self) -> Vec<HomeFolder> {
        Vec::new()
    }

    /// Those of its variables that name a file which it reads.
    fn file_variables(&self) -> &[&'static str] {
        &[]
    }

    /// Hosts that it does not work without.
    fn hosts(&self) -> Vec<HostRule> {
        Vec::new()
    }

    /// The vendor's server, for an engine that has one vendor.
    fn main_host(&self) -> Option<&'static str> {
        None
    }

    /// Those of its variables that hold the address of another server to use.
    fn address_variables(&self) -> &[&'static str] {
        &[]
    }

    /// The same from its settings in the operator's home.
    fn address_in_settings(&self, _host: &HostEnvironment) -> Option<String> {
        None
    }

    fn reads(&self) -> Reads {
        Reads::OneText
    }

    /// Whether the prompt comes on standard input; others are told where its file is.
    fn reads_stdin(&self) -> bool {
        false
    }

    /// Variables by which it leaves a repository's own settings alone, where the operator has not set them.
    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Folders of a work tree that it would obey all the same: it sees them empty in a sandbox.
    fn covered_folders(&self) -> &[&'static str] {
        &[]
    }

    /// Variables that it always gets, where the operator has not set them.
    fn own_variables(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Variables that say what it may do, whatever the operator has set; for one that has no options for it.
    fn permission_variables(&self, _allowed: Permissions) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Variables that it gets in a sandbox: where things are in there.
    fn sandbox_variables(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Files of a repository that it does not read any more where it leaves the settings alone.
    fn instruction_files(&self) -> &[&'static str] {
        &[]
    }

    /// Whether a run costs anything beyond this machine.
    fn has_account(&self) -> bool {
        true
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure>;

    /// Tells the program of a server of tools.
    fn offer_tools(
        &self,
        _server: &ToolServer,
        _scratch: &Path,
        _env: &mut BTreeMap<OsString, OsString>,
    ) -> std::io::Result<Offer> {
        Ok(Offer::default())
    }

    /// Prints a version, or at least shows that the program runs.
    fn version_args(&self) -> Option<Vec<OsString>> {
        Some(vec!["--version".into()])
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Unneeded
    }

    fn how_to_install(&self) -> String;

    /// Of an agent that is talked to in that protocol, instead of having its output read.
    fn acp(&self) -> Option<&AcpConfig> {
        None
    }

    /// Where it keeps its session while it runs, if its output says only at the end what it used.
    fn journal(&self) -> Option<JournalFiles> {
        None
    }

    /// How it is asked what a session has used since a moment, for one that keeps its sessions where only it can read them.
    fn ask_for_usage(&self, _session: &str, _since: Timestamp) -> Option<Vec<OsString>> {
        None
    }

    /// Its answer. `None`: it does not know the session.
    fn read_usage(&self, _answer: &str) -> Option<Vec<LineEvent>> {
        None
    }
}

/// How a program is given its persona and the review comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engines) enum Reads {
    /// Before and behind the prompt.
    OneText,
    /// The persona as a file of its own, the rest behind the prompt.
    PersonaApart,
    /// It is no reader: the prompt file holds the job's text and nothing else.
    JobTextOnly,
}

/// One call, as a recipe sees it.
#[derive(Debug)]
pub(in crate::engines) struct Call<'a> {
    pub(in crate::engines) request: &'a EngineRequest,
    /// Checked: it cannot be taken for an option.
    pub(in crate::engines) session: Option<&'a str>,
    /// Persona and instructions, for a recipe that takes them apart.
    pub(in crate::engines) persona_file: Option<&'a Path>,
    pub(in crate::engines) prompt_file: &'a Path,
    /// Whether what the repository sets for the program counts: hooks, servers, allowed commands.
    pub(in crate::engines) obeys_repository: bool,
    /// Whether it runs in a sandbox of ours.
    pub(in crate::engines) sandboxed: bool,
    /// A private folder outside of the work tree that lives as long as the run.
    pub(in crate::engines) scratch: &'a Path,
}
