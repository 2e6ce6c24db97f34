//! What an operator may say about engines: where a program is, what it may see, what a token costs.
//!
//! Holds no secret of ours: keys are named by their variable and read when an engine starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use giga_domain::Usd;
use serde::Deserialize;

use super::prices::Price;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct EnginesConfig {
    /// Names of engines that this factory does not offer.
    pub disabled: Vec<String>,
    pub claude: ProgramConfig,
    pub codex: ProgramConfig,
    pub opencode: ProgramConfig,
    pub gemini: ProgramConfig,
    pub devin: DevinConfig,
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

#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct DevinConfig {
    pub base_url: String,
    /// The variable of the factory's environment that holds the key.
    pub key_variable: String,
    pub poll_interval_ms: u64,
    /// What one compute unit costs; without it the cost is not known.
    #[serde(rename = "usd-micros-per-acu", with = "giga_domain::usd::as_micros::option")]
    pub usd_per_acu: Option<Usd>,
}

impl DevinConfig {
    pub const fn poll_interval(&self) -> Duration {
        Duration::from_millis(self.poll_interval_ms)
    }
}

impl Default for DevinConfig {
    fn default() -> Self {
        Self {
            base_url: "https://api.devin.ai/v1".to_owned(),
            key_variable: "DEVIN_API_KEY".to_owned(),
            poll_interval_ms: 15_000,
            usd_per_acu: None,
        }
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
}

/// How the output is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventFormat {
    /// Plain text: success is exit 0.
    #[default]
    Text,
    Claude,
    Codex,
    Opencode,
    Gemini,
}
