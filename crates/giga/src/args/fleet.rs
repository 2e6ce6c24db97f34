//! `giga factory …`, `giga token …`, `giga flags …`

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use giga_domain::token::Role;

#[derive(Debug, Subcommand)]
pub(crate) enum FactoryCommand {
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

With --product the token works in that product only (several with commas), else in all of them.")]
    Create {
        /// What it may do
        #[arg(long, value_parser = roles())]
        role: String,
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

fn roles() -> PossibleValuesParser {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str))
}
