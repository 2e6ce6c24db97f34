//! `giga factory …`, `giga token …`, `giga flags …`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use giga_api::wire::Role;

use super::word;

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// List accounts: which are open, until when the others are closed, and how many jobs wait for them
    List,
    /// Show one account: its windows, its factories, and what waits for it
    Show {
        /// The account, as `giga account list` shows it
        account: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CapabilityCommand {
    /// List capabilities: who has each, how many are in use, and how many jobs wait for it
    List,
    /// Show one capability: its factories, what is in use, and which products ask for it
    Show {
        /// The capability, such as gpu:a100
        capability: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FactoryCommand {
    /// Run jobs on this machine
    #[command(after_help = "\
Examples:
  giga factory run --repos ~/code
  giga factory run --id mac-1 --seats 4 --url https://giga.example --token-file mac-1.token
  giga factory run --once

The first start uses the token that `giga factory enroll` printed, or enrolls itself with an admin
token; from then on its own token is in BASE/factory.token. When it is ready, it prints this to stdout:
  ready factory mac-1

SIGTERM and Ctrl-C shut it down cleanly: every job is checkpointed, released, and continues
elsewhere. A second one stops it at once.")]
    Run(Box<RunArgs>),
    /// List factories
    List,
    /// Show one factory
    Show(FactoryArg),
    /// Add a machine to the fleet; prints its token, once
    #[command(after_help = "\
Examples:
  giga factory enroll mac-1
  giga factory enroll ci-7 --products demo,shop --capabilities os:linux,has:git > ci-7.token")]
    Enroll {
        /// Name of the factory: letters, digits, dots and dashes
        id: String,
        /// Products it may work for [default: all]
        #[arg(long, value_delimiter = ',', value_name = "PRODUCT")]
        products: Vec<String>,
        /// Capabilities it may use [default: all it has]
        #[arg(long, value_delimiter = ',', value_name = "CAPABILITY")]
        capabilities: Vec<String>,
    },
    /// Let a factory finish its running jobs, and send it no new ones
    Drain {
        /// Name of the factory
        id: String,
        /// Send it jobs again
        #[arg(long)]
        undo: bool,
    },
    /// Remove a factory and revoke its tokens
    Deregister(FactoryArg),
    /// Remove offline factories that hold no jobs
    #[command(after_help = "Example:\n  giga factory prune --idle 24h")]
    Prune {
        /// Offline for at least this long, such as 24h
        #[arg(long, value_name = "TIME")]
        idle: String,
    },
    /// Issue a new token; the old one keeps working for a while
    RotateToken(FactoryArg),
    /// Revoke all tokens of a factory at once
    RevokeToken(FactoryArg),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of the factory [env: GIGA_FACTORY] [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// Folder for its token, mirrors and work [env: GIGA_BASE] [default: DATA/factory/NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) base: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    /// Where to read offers from when the delivery mode is `broker`: nats://HOST, tls://HOST or
    /// servicebus://NAMESPACE.servicebus.windows.net [env: GIGA_BROKER]
    #[arg(long, value_name = "URL")]
    pub(crate) broker: Option<String>,
    /// File with this factory's key at NATS, as `giga broker nats-config` makes it [env: GIGA_NATS_KEY]
    #[arg(long, value_name = "FILE")]
    pub(crate) nats_key: Option<PathBuf>,
    /// File with this factory's signature for Azure Service Bus, as `giga broker servicebus-token` makes it [env:
    /// GIGA_SERVICEBUS_CONNECTION] [default: what the environment says, such as a managed identity]
    #[arg(long, value_name = "FILE")]
    pub(crate) servicebus_connection: Option<PathBuf>,
    /// Exit after one job, or at once if there is none
    #[arg(long)]
    pub(crate) once: bool,
    /// Take over the name of an earlier factory, even one that is running: its token is revoked, or it stops
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Exit when stdin ends, so that the factories of `giga up` end with it
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// How a factory works, whoever starts it.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// How many jobs to run at once [env: GIGA_SEATS] [default: 2]
    #[arg(long, value_name = "COUNT")]
    pub(crate) seats: Option<String>,
    /// What this machine has that cannot be detected, with a number where jobs use it up, such as gpu:a100=2 [env: GIGA_CAPABILITIES]
    #[arg(long = "capability", value_delimiter = ',', value_name = "CAPABILITY")]
    pub(crate) capabilities: Vec<String>,
    /// What this machine costs, in dollars per hour; cheaper machines are preferred [env: GIGA_COST_PER_HOUR]
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) cost_per_hour: Option<String>,
    /// Folder of repositories that jobs may name [env: GIGA_REPOS]
    #[arg(long, value_name = "DIR")]
    pub(crate) repos: Option<PathBuf>,
    /// Move the checked-out branch of a repository without an origin when its files are unchanged; without this, results
    /// go to giga/BRANCH there [env: GIGA_UPDATE_CHECKOUTS]
    #[arg(long)]
    pub(crate) update_checkouts: bool,
    /// Prefixes of Git URLs that jobs may name, such as https://github.com/org [env: GIGA_GIT_ALLOW]
    #[arg(long, value_delimiter = ',', value_name = "PREFIX")]
    pub(crate) git_allow: Vec<String>,
    /// How often to checkpoint running jobs [env: GIGA_CHECKPOINT_EVERY] [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) checkpoint_every: Option<String>,
    /// Stop an engine after this long without output [env: GIGA_ENGINE_IDLE] [default: 20m]
    #[arg(long, value_name = "TIME")]
    pub(crate) engine_idle: Option<String>,
    /// Stop an engine after this long [env: GIGA_ENGINE_WALL] [default: 4h]
    #[arg(long, value_name = "TIME")]
    pub(crate) engine_wall: Option<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

/// What a job may see and use of the machine.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// Run jobs in a sandbox: auto (where it works), require or off [env: GIGA_SANDBOX] [default: auto]
    #[arg(long, value_name = "MODE")]
    pub(crate) sandbox: Option<String>,
    /// Files and folders that jobs may read in the sandbox [env: GIGA_SANDBOX_READ] [default: toolchains in
    /// your home, such as ~/.cargo/bin and ~/.rustup]
    #[arg(long, value_delimiter = ',', value_name = "PATH")]
    pub(crate) sandbox_read: Vec<String>,
    /// Files and folders that jobs may change in the sandbox, such as a cache [env: GIGA_SANDBOX_WRITE]
    #[arg(long, value_delimiter = ',', value_name = "PATH")]
    pub(crate) sandbox_write: Vec<String>,
    /// Memory of one run in the sandbox, or off [env: GIGA_SANDBOX_MEMORY] [default: 16GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) sandbox_memory: Option<String>,
    /// Processes and threads of one run in the sandbox, or off [env: GIGA_SANDBOX_PROCESSES] [default: 4096]
    #[arg(long, value_name = "COUNT")]
    pub(crate) sandbox_processes: Option<String>,
    /// Files that one process in the sandbox may have open, or off [env: GIGA_SANDBOX_OPEN_FILES] [default: 65536]
    #[arg(long, value_name = "COUNT")]
    pub(crate) sandbox_open_files: Option<String>,
    /// Largest file that a run in the sandbox may write, or off [env: GIGA_SANDBOX_FILE_SIZE] [default: 16GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) sandbox_file_size: Option<String>,
    /// Disk space of one run in the sandbox, or off [env: GIGA_SANDBOX_DISK] [default: 64GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) sandbox_disk: Option<String>,
    /// Network of jobs: open, none (only the coordinator and the engine's own hosts) or list [env: GIGA_NETWORK] [default: open]
    #[arg(long, value_name = "MODE")]
    pub(crate) network: Option<String>,
    /// Hosts that jobs may reach with --network list, such as crates.io or *.github.com [env: GIGA_NETWORK_HOSTS]
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub(crate) network_hosts: Vec<String>,
    /// Run no scripts and no verify commands, only engines that read prompts [env: GIGA_COMMANDS=false]
    #[arg(long)]
    pub(crate) no_commands: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FactoryArg {
    /// Name of the factory
    pub(crate) id: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token; prints it, once
    #[command(after_help = "\
Examples:
  giga token create --role submitter --product demo --label 'nightly build'
  giga token create --role viewer > viewer.token
  giga token create --role worker --product demo > worker.token

With --product, the token works in that product only (separate several with commas); without it, in
all of them.")]
    Create {
        /// What the token may do
        #[arg(long, value_parser = word::<Role>())]
        role: Role,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// How long it works: a time such as 12h or 90d, or never [default: 90d]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens, without their secrets
    List,
    /// Give a token a new end, also where it has expired
    #[command(after_help = "\
Examples:
  giga token renew tok-51b2e0c4a7d3f689
  giga token renew tok-51b2e0c4a7d3f689 --expires 365d")]
    Renew {
        /// Token id, as shown by `giga token list`
        id: String,
        /// How long it works from now on: a time such as 12h or 90d, or never [default: 90d; a factory's: 30d]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// Revoke a token at once
    Revoke {
        /// Token id, as shown by `giga token list`
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Replace the signing keys now, instead of after 30 days
    #[command(after_help = "\
Links to artifacts and tokens of running jobs that the replaced keys signed keep working until the keys are
rotated again: rotate twice to end them now.")]
    Rotate,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FlagsCommand {
    /// List flags with their values and what they accept
    List,
    /// Change a flag
    #[command(after_help = "Example:\n  giga flags set strict true")]
    Set {
        /// Name of the flag
        name: String,
        /// JSON, or a plain word
        value: String,
    },
}
