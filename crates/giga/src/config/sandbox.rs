//! Settings of the sandbox: what a job may see and use of this machine.
//!
//! A project's giga.toml has no say in any of it: a cloned repository must not choose what its jobs may reach.

use std::path::{Path, PathBuf};

use giga_factory::sandbox::{HostRule, Limits, NetworkMode, SandboxMode, parse_bytes};

use super::{Key, Origin, Setting, Settings};
use crate::exit::CliError;

/// Where people have the tools that their builds run, and no secrets: granted where nothing else is said.
const TOOLCHAINS: [&str; 13] = [
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".deno/bin",
    ".local/bin",
    ".local/share/mise",
    ".nvm/versions",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
    "go/bin",
];

/// For "no bound".
const OFF: &str = "off";

impl Settings {
    pub(crate) fn sandbox_mode(&self) -> Result<Setting<SandboxMode>, CliError> {
        let Setting { value, origin } = self.get_or(Key::Sandbox, "auto");
        match value.parse() {
            Ok(value) => Ok(Setting { value, origin }),
            Err(_) => Err(CliError::Config(format!("{origin}: `{value}` is none of auto, require, off"))),
        }
    }

    /// Absolute, with links followed where they lead somewhere: what is hidden is compared with them.
    pub(crate) fn sandbox_paths(&self, key: Key) -> Setting<Vec<PathBuf>> {
        let Setting { value, origin } = self.get_or(key, "");
        let home = self.surroundings.variable("HOME").unwrap_or_default();
        if key == Key::SandboxRead && matches!(origin, Origin::Default) && !home.is_empty() {
            let found =
                TOOLCHAINS.iter().filter_map(|below| Path::new(&home).join(below).canonicalize().ok());
            return Setting { value: found.collect(), origin };
        }
        let folder = match &origin {
            Origin::File(path) => path.with_file_name(""),
            _ => self.surroundings.working_folder.clone(),
        };
        let paths = value.split(',').map(str::trim).filter(|path| !path.is_empty()).map(|path| {
            let path = match path.strip_prefix("~/") {
                Some(below) => Path::new(&home).join(below),
                None if path == "~" => PathBuf::from(&home),
                None => folder.join(path),
            };
            path.canonicalize().unwrap_or(path)
        });
        Setting { value: paths.collect(), origin }
    }

    pub(crate) fn sandbox_limits(&self) -> Result<Limits, CliError> {
        let default = Limits::default();
        Ok(Limits {
            memory_bytes: self.bytes(Key::SandboxMemory, default.memory_bytes)?,
            processes: self.count(Key::SandboxProcesses, default.processes)?,
            open_files: self.count(Key::SandboxOpenFiles, default.open_files)?,
            file_bytes: self.bytes(Key::SandboxFileSize, default.file_bytes)?,
            disk_bytes: self.bytes(Key::SandboxDisk, default.disk_bytes)?,
        })
    }

    pub(crate) fn network_mode(&self) -> Result<Setting<NetworkMode>, CliError> {
        let Setting { value, origin } = self.get_or(Key::Network, "open");
        match value.parse() {
            Ok(value) => Ok(Setting { value, origin }),
            Err(_) => Err(CliError::Config(format!("{origin}: `{value}` is none of open, none, list"))),
        }
    }

    pub(crate) fn network_hosts(&self) -> Result<Setting<Vec<HostRule>>, CliError> {
        let Setting { value, origin } = self.get_or(Key::NetworkHosts, "");
        let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
        let rules = words.map(str::parse).collect::<Result<_, String>>();
        let value = rules.map_err(|error| CliError::Config(format!("{origin}: {error}")))?;
        Ok(Setting { value, origin })
    }

    /// Whether scripts and verify commands are run.
    pub(crate) fn commands(&self) -> Result<Setting<bool>, CliError> {
        let Setting { value, origin } = self.get_or(Key::Commands, "true");
        match value.as_str() {
            "true" => Ok(Setting { value: true, origin }),
            "false" => Ok(Setting { value: false, origin }),
            other => Err(CliError::Config(format!("{origin}: `{other}` is neither true nor false"))),
        }
    }

    fn bytes(&self, key: Key, default: Option<u64>) -> Result<Option<u64>, CliError> {
        self.bound(key, default, "a size such as 16GiB", parse_bytes)
    }

    fn count(&self, key: Key, default: Option<u64>) -> Result<Option<u64>, CliError> {
        self.bound(key, default, "a number", |text| text.parse().ok().filter(|number| *number > 0))
    }

    fn bound(
        &self,
        key: Key,
        default: Option<u64>,
        what: &str,
        parse: impl Fn(&str) -> Option<u64>,
    ) -> Result<Option<u64>, CliError> {
        let Setting { value, origin } = self.get_or(key, "");
        match value.as_str() {
            "" => Ok(default),
            OFF => Ok(None),
            text => match parse(text) {
                Some(bound) => Ok(Some(bound)),
                None => Err(CliError::Config(format!("{origin}: `{text}` is neither {what} nor off"))),
            },
        }
    }
}
