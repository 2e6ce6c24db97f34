//! `giga artifact …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// List the files that a job uploaded
    List {
        /// Job id, the end of an id, or a name
        job: String,
    },
    /// Download a file
    #[command(after_help = "\
Examples:
  giga artifact get 01J9ZK3V5N8Q4W2E6R7T1Y0ABC -O report.html
  giga artifact get 01J9ZK3V5N8Q4W2E6R7T1Y0ABC | tar -x

The file appears under its name once it has arrived completely.")]
    Get(GetArtifactArgs),
    /// Create a temporary link to a file that works without a token
    #[command(after_help = "\
Examples:
  giga artifact link 01J9ZK3V5N8Q4W2E6R7T1Y0ABC
  giga artifact link 01J9ZK3V5N8Q4W2E6R7T1Y0ABC --ttl 24h

Anyone with the link can download the file until the link expires; removing the file is the only way
to revoke it earlier.")]
    Link {
        id: String,
        /// How long the link works, up to 24h [default: 10m]
        #[arg(long, value_name = "TIME")]
        ttl: Option<String>,
    },
    /// Remove a file
    Rm { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct GetArtifactArgs {
    pub(crate) id: String,
    /// File to save to [default: stdout]
    #[arg(short = 'O', long = "save", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
