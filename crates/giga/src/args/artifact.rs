//! `giga artifact …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// List the files that the runs of a job left
    List {
        /// Its id, the end of its id, or its name
        job: String,
    },
    /// Fetch a file
    #[command(after_help = "\
Examples:
  giga artifact get 01J9ZK3V5N8Q4W2E6R7T1Y0ABC -O report.html
  giga artifact get 01J9ZK3V5N8Q4W2E6R7T1Y0ABC | tar -x

A file appears under its name when all of it has arrived.")]
    Get(GetArtifactArgs),
    /// Make a link to a file that works without a token, for a while
    #[command(after_help = "\
Examples:
  giga artifact link 01J9ZK3V5N8Q4W2E6R7T1Y0ABC
  giga artifact link 01J9ZK3V5N8Q4W2E6R7T1Y0ABC --ttl 24h

Whoever has the link has the file until the link ends; nothing but removing the file ends it before.")]
    Link {
        id: String,
        /// How long it works, up to 24h [default: 10m]
        #[arg(long, value_name = "TIME")]
        ttl: Option<String>,
    },
    /// Remove a file
    Rm { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct GetArtifactArgs {
    pub(crate) id: String,
    /// Save it here [default: to stdout]
    #[arg(short = 'O', long = "save", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
