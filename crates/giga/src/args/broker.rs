//! `giga broker …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum BrokerCommand {
    /// Print the accounts of a NATS server: each factory reaches its own offers and nothing else
    #[command(after_help = "\
Examples:
  giga broker nats-config --keys ~/nats-keys > /etc/nats/giga.conf
  giga broker nats-config --keys ~/nats-keys mac-1 ci-7 > /etc/nats/giga.conf

Without names, it asks the coordinator which factories there are. A key that DIR does not have yet is
made: DIR/coordinator.nk and DIR/factories/NAME.nk. Give each machine its own file for --nats-key; a
file NAME.pub with the public key will do where a machine made its key itself. What is printed holds
no secret. Include it in the server's configuration, beside `jetstream {}`, and reload the server
twice (nats-server --signal reload).")]
    NatsConfig(NatsConfigArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NatsConfigArgs {
    /// Folder of the keys; made if it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Names of factories [default: all that the coordinator knows]
    #[arg(value_name = "FACTORY")]
    pub(crate) factories: Vec<String>,
}
