//! What `giga web` takes.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// Print the address alone; the page then asks for a token
    #[arg(long)]
    pub(crate) no_token: bool,
}
