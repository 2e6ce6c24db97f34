//! A program of the list as the settings of the factory want it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use giga_domain::{Permissions, Timestamp};

use super::{Call, NETWORK_VARIABLES, Program, Reads, Recipe, SignIn};
use crate::engines::config::{EventFormat, ProgramConfig};
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::{HostEnvironment, JournalFiles};
use crate::engines::tool_server::{self, Offer, ToolServer};
use crate::sandbox::{HomeFile, HostRule};

/// A program as the settings want it.
#[derive(Debug)]
pub(in crate::engines) struct Configured {
    pub(in crate::engines) program: Program,
    pub(in crate::engines) config: ProgramConfig,
}

impl Recipe for Configured {
    fn name(&self) -> &str {
        self.program.as_str()
    }

    fn program(&self) -> &Path {
        self.config.program.as_deref().unwrap_or(Path::new(self.program.as_str()))
    }

    fn format(&self) -> EventFormat {
        EventFormat::Program(self.program)
    }

    fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    fn variables(&self) -> Vec<&str> {
        let named = self.config.pass_env.iter().map(String::as_str);
        self.program.cli().variables().iter().copied().chain(NETWORK_VARIABLES).chain(named).collect()
    }

    fn home_files(&self) -> &'static [HomeFile] {
        self.program.cli().home_files()
    }

    fn file_variables(&self) -> &[&'static str] {
        self.program.cli().file_variables()
    }

    fn hosts(&self) -> Vec<HostRule> {
        self.program.cli().hosts().iter().filter_map(|host| host.parse().ok()).collect()
    }

    fn address_variables(&self) -> &[&'static str] {
        self.program.cli().address_variables()
    }

    fn main_host(&self) -> Option<&'static str> {
        self.program.cli().main_host()
    }

    fn address_in_settings(&self, host: &HostEnvironment) -> Option<String> {
        self.program.cli().address_in_settings(host)
    }

    fn reads(&self) -> Reads {
        self.program.cli().reads()
    }

    fn reads_stdin(&self) -> bool {
        true
    }

    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        self.program.cli().shut_variables()
    }

    fn covered_folders(&self) -> &[&'static str] {
        self.program.cli().covered_folders()
    }

    fn own_variables(&self) -> &[(&'static str, &'static str)] {
        self.program.cli().own_variables()
    }

    fn permission_variables(&self, allowed: Permissions) -> &[(&'static str, &'static str)] {
        self.program.cli().permission_variables(allowed)
    }

    fn sandbox_variables(&self) -> &[(&'static str, &'static str)] {
        self.program.cli().sandbox_variables()
    }

    fn instruction_files(&self) -> &[&'static str] {
        self.program.cli().instruction_files()
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let model = call.request.model.clone().or_else(|| self.config.model.clone());
        self.program.cli().args(call, &ProgramConfig { model, ..self.config.clone() })
    }

    fn offer_tools(
        &self,
        server: &ToolServer,
        scratch: &Path,
        env: &mut BTreeMap<OsString, OsString>,
    ) -> std::io::Result<Offer> {
        tool_server::offer(self.program, server, scratch, env)
    }

    fn sign_in(&self) -> SignIn {
        self.program.cli().sign_in()
    }

    fn how_to_install(&self) -> String {
        self.program.cli().how_to_install().to_owned()
    }

    fn journal(&self) -> Option<JournalFiles> {
        self.program.cli().journal()
    }

    fn ask_for_usage(&self, session: &str, since: Timestamp) -> Option<Vec<OsString>> {
        self.program.cli().ask_for_usage(session, since)
    }

    fn read_usage(&self, answer: &str) -> Option<Vec<LineEvent>> {
        self.program.cli().read_usage(answer)
    }
}
