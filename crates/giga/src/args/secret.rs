//! `giga secret …`

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set a secret, or a new value for it; nobody can read it back
    #[command(after_help = "\
Examples:
  giga secret set NPM_TOKEN
  pass show npm | giga secret set NPM_TOKEN --product app
  giga secret set DEPLOY_KEY --file ~/.ssh/deploy

Without --file the value is asked for, without showing it, or read from stdin; the line end of a single
line is dropped. It has 6 bytes to 64 KiB. A job gets it by naming it in its manifest:
  secrets: [NPM_TOKEN, {name: DEPLOY_KEY, file: .ssh/id_ed25519}]")]
    Set(SetSecretArgs),
    /// List secrets: names, versions and who set them, never values
    List,
    /// Remove a secret; jobs that name it fail when they start
    Remove {
        /// The name that manifests use
        name: String,
    },
    /// Encrypt every secret again with the first key of the key file
    #[command(after_help = "\
To replace the key:
  1. Put a new key into the first line of the key file of every coordinator, above the old one:
     openssl rand -hex 32
  2. giga secret rotate
  3. Remove the old key from the file.")]
    Rotate,
}

#[derive(Debug, Args)]
pub(crate) struct SetSecretArgs {
    /// The name that manifests use: A-Z, 0-9 and _, such as NPM_TOKEN
    pub(crate) name: String,
    /// Read the value from this file, byte for byte; - is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
}
