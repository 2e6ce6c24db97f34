//! What the operator of a machine decides about the sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::limits::Limits;
use super::network::NetworkConfig;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum SandboxMode {
    /// Where it works; where not, jobs run without, and everybody is told.
    #[default]
    Auto,
    /// The agent does not start without.
    Require,
    Off,
}

/// The program that becomes process 1 inside, and the arguments before [`init`](super::init)'s own.
#[derive(Debug, Clone)]
pub struct InitProgram {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

#[derive(Debug, Clone)]
pub struct SandboxConfig {
    pub mode: SandboxMode,
    pub init: InitProgram,
    /// Shown to every job, read-only. What lies in the operator's home is also in the job's, at the same place.
    pub read: Vec<PathBuf>,
    /// The same, to be written to.
    pub write: Vec<PathBuf>,
    /// Never shown, whatever holds it: the agent's own folders.
    pub hide: Vec<PathBuf>,
    pub limits: Limits,
    pub network: NetworkConfig,
}

impl SandboxConfig {
    /// As it is where nobody has said anything.
    pub fn new(init: InitProgram) -> Self {
        Self {
            mode: SandboxMode::Auto,
            init,
            read: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
            limits: Limits::default(),
            network: NetworkConfig::default(),
        }
    }
}
