//! `giga sandbox …`

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::SandboxArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Look around in the sandbox that a job would get on this machine
    #[command(after_help = "\
Examples:
  giga sandbox try
  giga sandbox try -- cargo --version
  giga sandbox try --sandbox-read ~/.cargo/bin,~/.rustup -- cargo --version

It starts a shell, or the command, in an empty work tree and with an empty home, both of which are
removed afterwards. First it prints what a job sees: tree, home, limits. The exit code is the
command's own.")]
    Try(TryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TryArgs {
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    /// Command and its arguments [default: a shell]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
