//! `giga factory …`, `giga token …`, `giga flags …`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use giga_api::wire::Role;

use super::word;

#[derive(Debug, Subcommand)]
pub(crate) enum FactoryCommand {
    /// Run jobs on this machine
    #[command(after_help = "\
Examples:
  giga factory run --repos ~/code
  giga factory run --id mac-1 --seats 4 --url https://giga.example --token-file mac-1.token
  giga factory run --once

The first start uses the token that `giga factory enroll` printed, or enrols with an admin's; its
own token is then kept in BASE/factory.token. When it can take jobs, it says so on stdout:
  ready factory mac-1

SIGTERM and Ctrl-C end it in good order: every job is saved, handed back, and goes on elsewhere.
A second one ends it at once.")]
    Run(RunArgs),
    /// List the factories of the fleet
    List,
    /// Show one factory
    Show(FactoryArg),
    /// Admit a machine to the fleet; prints its token, once
    #[command(after_help = "\
Examples:
  giga factory enroll mac-1
  giga factory enroll ci-7 --products demo,shop --capabilities os:linux,has:git > ci-7.token")]
    Enroll {
        /// A name for it: letters, digits, dots, dashes
        id: String,
        /// It may work for these only [default: every product]
        #[arg(long, value_delimiter = ',', value_name = "PRODUCT")]
        products: Vec<String>,
        /// It may use these of its capabilities only [default: all that it has]
        #[arg(long, value_delimiter = ',', value_name = "CAPABILITY")]
        capabilities: Vec<String>,
    },
    /// Let a factory finish what it holds and give it nothing new
    Drain {
        /// Its name
        id: String,
        /// Let it take jobs again
        #[arg(long)]
        undo: bool,
    },
    /// Forget a factory and revoke its tokens
    Deregister(FactoryArg),
    /// Forget every factory that was silent for long and holds nothing
    #[command(after_help = "Example:\n  giga factory prune --idle 24h")]
    Prune {
        /// Silent for at least so long, such as 24h
        #[arg(long, value_name = "TIME")]
        idle: String,
    },
    /// Give a factory a new token; the old one works a while longer
    RotateToken(FactoryArg),
    /// End every token of a factory at once
    RevokeToken(FactoryArg),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Its name [env: GIGA_FACTORY] [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// Folder for its token, mirrors and work [env: GIGA_BASE] [default: DATA/factory/NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) base: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    /// Where it reads its offers when jobs are delivered by `broker`: nats://HOST or tls://HOST [env: GIGA_BROKER]
    #[arg(long, value_name = "URL")]
    pub(crate) broker: Option<String>,
    /// Take one job, or find none, and leave
    #[arg(long)]
    pub(crate) once: bool,
    /// Take the name over from an earlier factory; its token ends
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Leave when stdin ends; so the factories of `giga up` end with it
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// How a factory works, whoever starts it.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// Jobs at once [env: GIGA_SEATS] [default: 2]
    #[arg(long, value_name = "COUNT")]
    pub(crate) seats: Option<String>,
    /// Folder whose repositories jobs may name [env: GIGA_REPOS]
    #[arg(long, value_name = "DIR")]
    pub(crate) repos: Option<PathBuf>,
    /// Git URLs that jobs may name, as prefixes, such as https://github.com/org [env: GIGA_GIT_ALLOW]
    #[arg(long, value_delimiter = ',', value_name = "PREFIX")]
    pub(crate) git_allow: Vec<String>,
    /// Open pull requests: none, gh (its command line) or github (GITHUB_TOKEN) [env: GIGA_FORGE] [default: none]
    #[arg(long, value_name = "FORGE")]
    pub(crate) forge: Option<String>,
    /// Save running work this often [env: GIGA_CHECKPOINT_EVERY] [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) checkpoint_every: Option<String>,
    /// End an engine that is silent for so long [env: GIGA_ENGINE_IDLE] [default: 20m]
    #[arg(long, value_name = "TIME")]
    pub(crate) engine_idle: Option<String>,
    /// End an engine that runs for so long [env: GIGA_ENGINE_WALL] [default: 4h]
    #[arg(long, value_name = "TIME")]
    pub(crate) engine_wall: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FactoryArg {
    /// Its name
    pub(crate) id: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token; prints it, once
    #[command(after_help = "\
Examples:
  giga token create --role submitter --product demo --label 'nightly build'
  giga token create --role viewer > viewer.token
  giga token create --role worker --product demo > worker.token

With --product the token works in that product only (several with commas), else in all of them.")]
    Create {
        /// What it may do
        #[arg(long, value_parser = word::<Role>())]
        role: Role,
        /// What it is for, to know it by later
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
    },
    /// List tokens, never the secrets
    List,
    /// End a token at once
    Revoke {
        /// Its id, as `giga token list` shows it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FlagsCommand {
    /// List flags, their values and what they take
    List,
    /// Change a flag
    #[command(after_help = "Example:\n  giga flags set strict true")]
    Set {
        /// Which one
        name: String,
        /// JSON, or a plain word
        value: String,
    },
}
