//! What an operator may say about engines: where a program is, what it may see, what a token costs.
//!
//! Holds no secret of ours: keys are named by their variable and read when an engine starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use giga_domain::Usd;
use giga_domain::factory::is_below;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::acp::AcpConfig;
use super::prices::Price;
use super::programs::Program;
use crate::sandbox::HostRule;
use crate::workspace::{GitUrl, canonical_prefix};

/// Keys that nothing here knows are taken for programs, and refused as such.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct EnginesConfig {
    /// Names of engines that this factory does not offer.
    pub disabled: Vec<String>,
    /// Whether engines obey what a repository sets for them: hooks, MCP servers, allowed commands, addresses. Its instructions
    /// (CLAUDE.md and the like) reach them in any case.
    pub repository_settings: bool,
    /// By engine, each a table with its name.
    #[serde(flatten)]
    pub programs: BTreeMap<Program, ProgramConfig>,
    pub devin: DevinConfig,
    /// Agents that work elsewhere and speak our contract, by name.
    pub remote: BTreeMap<String, RemoteConfig>,
    /// Agents that speak the Agent Client Protocol, by name.
    pub acp: BTreeMap<String, AcpConfig>,
    /// Engines of the operator's own, by name.
    pub commands: BTreeMap<String, CommandConfig>,
    /// Dollars per million tokens by the beginning of a model's name; added to the built-in table, and stronger.
    pub prices: BTreeMap<String, Price>,
    /// Where private files of a run are written; the system's folder for temporary files by default.
    pub scratch: Option<PathBuf>,
}

/// An engine that is a program on this machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramConfig {
    /// Instead of the engine's usual name on the PATH.
    pub program: Option<PathBuf>,
    pub model: Option<String>,
    /// Put before the prompt, after the arguments of ours.
    pub extra_args: Vec<String>,
    /// Variables of the factory's environment that this engine may see besides its usual ones.
    pub pass_env: Vec<String>,
}

impl ProgramConfig {
    /// The model by the program's own option for it, and what the operator adds.
    pub(super) fn options(&self, model_option: &str) -> impl Iterator<Item = OsString> {
        let model = self.model.iter().flat_map(move |model| [model_option.into(), model.into()]);
        model.chain(self.extra_args.iter().map(OsString::from))
    }
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = || format!("unknown field `{name}`; the engines are {}", Program::words());
        name.parse().map_err(|_| D::Error::custom(unknown()))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct DevinConfig {
    /// With one, version 3 of the interface is spoken, otherwise version 1.
    pub organization: Option<String>,
    /// Instead of the service's own.
    pub base_url: Option<String>,
    /// The variable of the factory's environment that holds the key.
    pub key_variable: String,
    pub poll_interval_ms: u64,
    /// What one compute unit costs; without it the cost is not known.
    #[serde(rename = "usd-micros-per-acu", with = "giga_domain::usd::as_micros::option")]
    pub usd_per_acu: Option<Usd>,
    /// The most that one session may use, whatever the job's cap is.
    pub max_acus: Option<u64>,
    /// Those that its account can reach; none means all that are on the network.
    pub repositories: Vec<UrlPrefix>,
}

impl DevinConfig {
    pub(super) fn address(&self) -> String {
        match (&self.base_url, &self.organization) {
            (Some(url), _) => url.clone(),
            (None, Some(organization)) => format!("https://api.devin.ai/v3/organizations/{organization}"),
            (None, None) => "https://api.devin.ai/v1".to_owned(),
        }
    }
}

impl Default for DevinConfig {
    fn default() -> Self {
        Self {
            organization: None,
            base_url: None,
            key_variable: "DEVIN_API_KEY".to_owned(),
            poll_interval_ms: POLL_INTERVAL_MS,
            usd_per_acu: None,
            max_acus: None,
            repositories: Vec::new(),
        }
    }
}

const POLL_INTERVAL_MS: u64 = 15_000;

const fn poll_interval_ms() -> u64 {
    POLL_INTERVAL_MS
}

/// An agent that works elsewhere and speaks our contract.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RemoteConfig {
    pub base_url: String,
    /// The variable of the factory's environment that holds the key, where it wants one.
    #[serde(default)]
    pub key_variable: Option<String>,
    #[serde(default = "poll_interval_ms")]
    pub poll_interval_ms: u64,
    #[serde(default)]
    pub repositories: Vec<UrlPrefix>,
}

/// The beginning of repositories' URLs, such as `https://github.com/org`, up to a `/`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct UrlPrefix(String);

impl UrlPrefix {
    pub(crate) fn covers(&self, url: &GitUrl) -> bool {
        is_below(url.canonical(), &self.0)
    }
}

impl TryFrom<String> for UrlPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        canonical_prefix(&text).map(Self).map_err(|error| error.to_string())
    }
}

/// An engine by template. `{prompt_file}`, `{dir}` and `{session}` are replaced inside arguments; no shell is
/// involved, so what replaces them is never read as anything but text.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CommandConfig {
    pub argv: Vec<String>,
    /// Used instead of `argv` when there is a session to resume.
    #[serde(default)]
    pub resume_argv: Option<Vec<String>>,
    /// Run by the preflight, which is satisfied by exit 0; without it, it is enough that the program exists.
    #[serde(default)]
    pub check_argv: Option<Vec<String>>,
    #[serde(default)]
    pub pass_env: Vec<String>,
    #[serde(default)]
    pub events: EventFormat,
    /// Hosts that it does not work without, where the network of jobs is not open.
    #[serde(default)]
    pub hosts: Vec<HostRule>,
}

/// How the output is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum EventFormat {
    /// Plain text: success is exit 0.
    #[default]
    Text,
    /// As that program prints its events.
    Program(Program),
}

impl TryFrom<String> for EventFormat {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        if word == "text" {
            return Ok(Self::Text);
        }
        word.parse().map(Self::Program).map_err(|_| format!("`{word}` is none of text, {}", Program::words()))
    }
}
