//! `giga demo`

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Two factories and three repositories; one factory is killed on the way
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Approve without asking; so does a demo whose stdin is no terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Leave the folder with everything in it behind, to look around
    #[arg(long)]
    pub(crate) keep: bool,
}
