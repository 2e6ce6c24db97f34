//! What an operator says about an agent that speaks ACP.

use std::collections::BTreeMap;

use giga_domain::Permissions;
use serde::Deserialize;

use crate::engines::programs::Program;
use crate::sandbox::{HomeFolder, HostRule};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AcpConfig {
    /// The program and its arguments; no shell is involved.
    pub argv: Vec<String>,
    /// A built-in engine whose sign-in it uses: its variables, its files of the operator's home, its hosts.
    #[serde(default)]
    pub account: Option<Program>,
    /// Variables of the factory's environment that it may see besides.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Variables that are set for it. Not for secrets: they are in the file for everybody to read.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Hosts that it does not work without, where the network of jobs is not open.
    #[serde(default)]
    pub hosts: Vec<HostRule>,
    /// What it needs of the operator's home, besides the account's.
    #[serde(default)]
    pub home: Vec<HomeFolder>,
    /// As the agent names it.
    #[serde(default)]
    pub model: Option<String>,
    /// As the agent names it; its own default otherwise.
    #[serde(default)]
    pub mode: Option<String>,
    /// What it may do without asking where neither the job nor its product says so.
    #[serde(default = "edit")]
    pub permissions: Permissions,
    /// Whether the figures that it names cover what it used. One that does not is charged what was reserved.
    #[serde(default = "yes")]
    pub reports_usage: bool,
}

const fn edit() -> Permissions {
    Permissions::Edit
}

const fn yes() -> bool {
    true
}
