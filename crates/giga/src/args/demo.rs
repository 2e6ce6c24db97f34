//! `giga demo`

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Use two factories and three repositories, and kill one factory along the way
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Approve without asking; the default if stdin is not a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Keep the folder, to look around in it
    #[arg(long)]
    pub(crate) keep: bool,
}
