//! `giga factory …`, `giga token …`, `giga flags …`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use giga_api::wire::{PoolDriver, Role};
use giga_domain::PoolName;
use giga_domain::Usd;

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
pub(crate) enum PoolCommand {
    /// List pools: what each has, what it is doing, and how many jobs wait for it
    List,
    /// Show one pool: its settings, its factories and its last failure
    Show(PoolArg),
    /// Make a pool, or change it; what is not given stays as it is
    #[command(after_help = "\
Examples:
  giga pool set local --max 4 --seats 2 --idle 10m
  giga pool set gpu --driver command --command ./gpu-vm.sh --capability gpu:a100=1 --max 8 --cost-per-hour 2.50
  giga pool set k8s --driver kubernetes --image registry.example/giga-factory:1 --coordinator-url https://giga.example
  giga pool set burst --driver keda --max 20

A pool is a template of a factory. Factories of it are started while jobs wait that could run on one more of
them, and leave when they have been idle for so long. `giga job explain` says what a job waits for.
Anything behind `--` goes to `giga factory run` on its factories:
  giga pool set local --max 4 -- --repos ~/code")]
    Set(Box<SetPoolArgs>),
    /// Start no more factories; those that there are go on, and leave when they are idle
    Pause(PoolArg),
    /// Start factories again, also one whose start failed
    Resume(PoolArg),
    /// Remove a pool that has no factories left (`giga pool set POOL --max 0` lets them leave)
    Remove(PoolArg),
    /// Make a credential: factories enroll with it, or KEDA asks with it how many are wanted
    #[command(after_help = "\
Examples:
  giga pool credential burst > pool.token
  giga pool credential burst --scaler > scaler.token
  giga factory run --pool burst --token-file pool.token")]
    Credential {
        /// Name of the pool
        pool: String,
        /// For KEDA's external scaler: it may ask how many factories are wanted, and nothing else
        #[arg(long)]
        scaler: bool,
        /// How long it is valid, such as 12h, 90d or never [default: 30d]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PoolArg {
    /// Name of the pool
    pub(crate) pool: String,
}

#[derive(Debug, Args)]
pub(crate) struct SetPoolArgs {
    /// Name of the pool: letters, digits, dots and dashes, 40 at most
    pub(crate) pool: String,
    /// Who starts its factories: process (this coordinator's host), command, kubernetes, keda (somebody else)
    #[arg(long, value_name = "DRIVER", value_parser = word::<PoolDriver>())]
    pub(crate) driver: Option<PoolDriver>,
    /// For the driver `command`: the program; give the option again for each of its arguments
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// For the driver `kubernetes`: the image of the factory
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// For the driver `kubernetes`: where its Jobs are made [default: where the coordinator runs]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Where its factories find the coordinator [default: where the coordinator listens]
    #[arg(long, value_name = "URL")]
    pub(crate) coordinator_url: Option<String>,
    /// What its factories have beside what they detect, such as gpu:a100=2; give the option again for each
    #[arg(long, value_name = "CAPABILITY")]
    pub(crate) capability: Vec<String>,
    /// Whose jobs they take [default: every product's]
    #[arg(long, value_delimiter = ',', value_name = "PRODUCT")]
    pub(crate) products: Vec<String>,
    /// Jobs at a time on one factory [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seats: Option<u32>,
    /// So many factories at all times [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) min: Option<u32>,
    /// So many factories at most [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u32>,
    /// So many factories beyond those that work, for whoever comes next [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) warm: Option<u32>,
    /// A factory without work for so long leaves [default: 5m]
    #[arg(long, value_name = "TIME")]
    pub(crate) idle: Option<String>,
    /// A factory that has not enrolled by then has failed to start [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) start_timeout: Option<String>,
    /// What an hour of one factory costs, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) cost_per_hour: Option<Usd>,
    /// The product whose budget pays its hours; `none` for nobody
    #[arg(long, value_name = "PRODUCT")]
    pub(crate) charge_to: Option<String>,
    /// More arguments of `giga factory run` on its factories
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FactoryCommand {
    /// Run jobs on this machine
    #[command(after_help = "\
Examples:
  giga factory run --repos ~/code
  giga factory run --id mac-1 --seats 4 --url https://giga.example --token-file mac-1.token
  giga factory run --once
  giga factory run --pool gpu --url https://giga.example --token-file gpu.token

The first start uses the token that `giga factory enroll` printed, or enrolls itself with an admin
token; from then on its own token is in BASE/factory.token. When it is ready, it prints this to stdout:
  ready factory mac-1

SIGTERM and Ctrl-C shut it down cleanly: every job is checkpointed, released, and continues
elsewhere. A second one stops it at once.

With --pool it is one of the factories that come and go with the work: it enrolls with the pool's
credential (refused: exit code 4), and leaves for good when it is drained or stopped. Without --id
its name is POOL and a random part, kept in BASE [default: DATA/pool/POOL].")]
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
    /// Join this pool, with the pool's credential in GIGA_POOL_TOKEN or --token-file; leave for good when drained or stopped
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<PoolName>,
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
