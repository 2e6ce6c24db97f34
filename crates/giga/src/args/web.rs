//! What `giga web` takes.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// Leave the token out; the page asks for one
    #[arg(long)]
    pub(crate) no_token: bool,
}
