//! The list of programs with an account of their own, and what is particular to each.

use std::ffi::OsString;

use giga_domain::{Permissions, Timestamp};
use serde_json::Value;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::{Call, Reads, SignIn, claude, codex, gemini, opencode};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::{HostEnvironment, JournalFiles};
use crate::sandbox::HomeFile;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Program {
    Claude,
    Codex,
    Opencode,
    Gemini,
}

impl Program {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As in `engine:<name>`, and in the settings.
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }

    /// The versions that the matrix of docs/engines.md was made with.
    pub const fn proven(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["2.1.326"],
            Self::Codex => &["0.169.0"],
            Self::Opencode => &["1.18.33"],
            Self::Gemini => &["0.61.0"],
        }
    }

    pub(in crate::engines) fn words() -> String {
        Self::ALL.iter().map(|program| program.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(in crate::engines) fn cli(self) -> &'static dyn Cli {
        match self {
            Self::Claude => &claude::Claude,
            Self::Codex => &codex::Codex,
            Self::Opencode => &opencode::Opencode,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

/// What is particular to a program with an account: how it is called, how one events in, what it prints.
pub(in crate::engines) trait Cli: Sync {
    /// Variables of the factory that it may see besides the base and those that the settings name.
    fn variables(&self) -> &[&'static str];

    /// What it needs of the operator's home: its settings, its account, its sessions.
    fn home_files(&self) -> &'static [HomeFile];

    /// Those of its variables that name a file which it reads.
    fn file_variables(&self) -> &[&'static str] {
        &[]
    }

    /// Hosts that it does not work without.
    fn hosts(&self) -> &[&'static str];

    /// The vendor's server, for an engine that has one vendor.
    fn main_host(&self) -> Option<&'static str> {
        self.hosts().first().copied()
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

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure>;

    fn sign_in(&self) -> SignIn;

    fn how_to_install(&self) -> &'static str;

    /// What an event of its output says.
    fn read(&self, event: &Value) -> Vec<LineEvent>;

    /// Where it keeps its session while it runs, if its output says only at the end what it used.
    fn journal(&self) -> Option<JournalFiles> {
        None
    }

    /// Whether it begins a new file for a session that it loads over ACP, which may have the name of the old one.
    fn loads_over_its_journal(&self) -> bool {
        false
    }

    /// Knows warnings of its own among what it says over ACP, for one that does not mark them.
    fn is_notice(&self) -> Option<fn(&str) -> bool> {
        None
    }

    /// What a line of such a file says.
    fn read_journal(&self, _entry: &Value) -> Vec<LineEvent> {
        Vec::new()
    }

    /// How it is asked what a session has used since a moment, for one that keeps its sessions where only it can read them.
    fn ask_for_usage(&self, _session: &str, _since: Timestamp) -> Option<Vec<OsString>> {
        None
    }

    /// Its answer. `None`: it does not know the session.
    fn read_usage(&self, _answer: &str) -> Option<Vec<LineEvent>> {
        None
    }

    /// What a line of its standard error says, for one that says there what its events do not.
    fn read_stderr(&self, _line: &str) -> Vec<LineEvent> {
        Vec::new()
    }

    /// Whether an event is one of a flood that only says how far an answer is: read, and not kept in the log.
    fn is_progress(&self, _event: &Value) -> bool {
        false
    }

    /// What an exit status means, where the program gives it a meaning of its own.
    fn exit_failure(&self, _code: i32) -> Option<EngineFailure> {
        None
    }

    /// Whether it says what an answer costs as soon as it begins.
    fn counts_as_it_goes(&self) -> bool {
        false
    }

    /// Whether it prints something as soon as the model begins to answer: a run in which it did not has used nothing.
    fn shows_answers(&self) -> bool {
        false
    }
}
