//! The sandbox around every process that runs for a job: engines, scripts, verify commands, checks of a merge.
//!
//! Bubblewrap does the work where this machine has it. Nothing is taken away here from a view of the whole machine: a
//! process starts with nothing and is shown what is named, so that what nobody thought of is not there. A process inside
//! never learns a path, a process or a socket of the agent, and everything it started ends with it.
//!
//! ```text
//! agent ─▶ bwrap ─▶ init (process 1 inside: bounds, way out to the proxy) ─▶ the engine or the script
//!   │        └ dies with the agent        └ when it ends, the kernel ends everything inside
//!   ├ watch: processes, memory, disk ▶ the run is cut
//!   └ a control group per run, where one is delegated to the agent
//! ```

mod bubblewrap;
mod cgroup;
mod config;
mod harden;
mod home;
pub mod init;
mod limits;
mod network;
mod probe;
pub(crate) mod processes;
mod system;
mod view;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_domain::Capability;
use tokio::process::Command;

pub use config::{InitProgram, SandboxConfig, SandboxMode};
pub use harden::harden_this_process;
pub(crate) use home::HomeFile;
pub use home::HomeFolder;
pub use limits::{Limits, human as human_bytes, parse_bytes};
pub(crate) use network::host_of;
pub use network::{HostRule, NetworkConfig, NetworkMode};
pub(crate) use view::{Enclosed, Guard, View};

use crate::engines::HostEnvironment;
use bubblewrap::Bubblewrap;

/// Made once, when the agent starts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Bubblewrap(Box<Bubblewrap>),
    None { why: String },
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the settings ask for a sandbox (`sandbox`, or a `network` that is not open), and there is none: {0}"
)]
pub struct NoSandbox(pub String);

impl Sandbox {
    /// Tries it out: a bubblewrap that is installed may still not be allowed to make namespaces.
    pub async fn start(config: SandboxConfig) -> Result<Self, NoSandbox> {
        Self::start_in(config, &HostEnvironment::of_this_process()).await
    }

    /// The same, in an environment of the caller's choice.
    pub async fn start_in(config: SandboxConfig, host: &HostEnvironment) -> Result<Self, NoSandbox> {
        // A closed network is closed by the sandbox, and by nothing else.
        let is_needed = config.mode == SandboxMode::Require || config.network.mode != NetworkMode::Open;
        let found = match config.mode {
            SandboxMode::Off => Err("it is switched off".to_owned()),
            SandboxMode::Auto | SandboxMode::Require => probe::bubblewrap(config, host).await,
        };
        match found {
            Ok(found) => Ok(Self(Arc::new(Kind::Bubblewrap(Box::new(found))))),
            Err(why) if is_needed => Err(NoSandbox(why)),
            Err(why) => Ok(Self(Arc::new(Kind::None { why }))),
        }
    }

    /// Processes run as they are, with the rights of the agent.
    pub fn off() -> Self {
        Self(Arc::new(Kind::None { why: "it is switched off".to_owned() }))
    }

    /// `sandbox:bwrap` or `sandbox:none`, for jobs that ask for one.
    pub fn capability(&self) -> Capability {
        let word = match *self.0 {
            Kind::Bubblewrap(_) => "sandbox:bwrap",
            Kind::None { .. } => "sandbox:none",
        };
        word.parse().expect("a class and a plain word are a capability")
    }

    /// `network:open`, or `network:none` or `network:list`, which are both also `network:closed`.
    pub fn network_capabilities(&self) -> Vec<Capability> {
        let mode = match &*self.0 {
            Kind::Bubblewrap(bubblewrap) => bubblewrap.config.network.mode,
            Kind::None { .. } => NetworkMode::Open,
        };
        let own = format!("network:{mode}");
        let closed = (mode != NetworkMode::Open).then_some(Capability::NETWORK_CLOSED);
        let both = std::iter::once(own.as_str()).chain(closed);
        both.map(|word| word.parse().expect("a class and a plain word are a capability")).collect()
    }

    /// Why there is none.
    pub fn missing(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Bubblewrap(_) => None,
            Kind::None { why } => Some(why),
        }
    }

    /// How isolated a job is, in a line.
    pub fn describe(&self) -> String {
        match &*self.0 {
            Kind::Bubblewrap(bubblewrap) => bubblewrap.describe(),
            Kind::None { why } => format!("none: {why}; jobs run with the rights of the factory"),
        }
    }

    /// Whether a job would find this program where it is.
    pub fn shows(&self, program: &Path) -> bool {
        match &*self.0 {
            Kind::Bubblewrap(bubblewrap) => bubblewrap.shows(program),
            Kind::None { .. } => true,
        }
    }

    /// Like the process itself, in a sandbox where there is one: the only place that builds the command of a job.
    pub(crate) fn command(&self, inside: Enclosed) -> std::io::Result<(Command, Option<Guard>)> {
        match &*self.0 {
            Kind::Bubblewrap(bubblewrap) => {
                let (command, guard) = bubblewrap.command(inside)?;
                Ok((command, Some(guard)))
            }
            Kind::None { .. } => Ok((inside.plain(), None)),
        }
    }

    /// The command that runs `program` in the sandbox of a job whose work tree is `tree`, in the foreground and with the
    /// terminal of the caller. Without a sandbox it just runs there.
    pub fn try_out(
        &self,
        program: &Path,
        args: &[std::ffi::OsString],
        tree: PathBuf,
        home: PathBuf,
    ) -> std::io::Result<Trial> {
        let host = HostEnvironment::of_this_process();
        let inside = Enclosed {
            program: host.find_program(program).unwrap_or_else(|| program.to_owned()),
            args: args.to_vec(),
            env: host.for_engine([], &[]),
            dir: tree,
            view: View { home, ..View::default() },
        };
        let (command, guard) = self.command(inside)?;
        Ok(Trial { command: command.into_std(), _guard: guard })
    }
}

/// A command to look around in a sandbox with, and what it needs meanwhile.
#[derive(Debug)]
pub struct Trial {
    command: std::process::Command,
    _guard: Option<Guard>,
}

impl Trial {
    /// In the foreground; blocks until it has ended. The proxy goes on beside it, so not on a thread of the runtime.
    pub fn run(mut self) -> std::io::Result<std::process::ExitStatus> {
        self.command.status()
    }
}
