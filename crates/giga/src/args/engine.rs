//! `giga engine …`

use clap::{Args, Subcommand};
use giga_domain::Usd;

#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Run a tiny job with an engine on this machine, and show what came of it
    #[command(after_help = "\
Examples:
  giga engine try claude
  giga engine try codex --cap 0.25
  giga engine try gemini -o json

It is run as a job would be: in the sandbox, with the settings of this machine's factory, in a new
repository that is removed afterwards. It is asked to write one file. With an account this costs what
a short answer costs, and never much more than the cap. No coordinator is needed.

Exit codes: 0 the engine wrote the file · 1 it did not")]
    Try(EngineTryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EngineTryArgs {
    /// Engine: claude, codex, gemini, opencode, or one of your own
    #[arg(value_name = "ENGINE")]
    pub(crate) engine: String,
    /// Model instead of the engine's own choice
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Most dollars to spend
    #[arg(long, value_name = "USD", default_value = "1")]
    pub(crate) cap: Usd,
}
