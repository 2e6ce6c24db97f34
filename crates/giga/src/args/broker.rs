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
    /// Sign for one factory's subscription on Azure Service Bus: it can listen there and nowhere else
    #[command(
        name = "servicebus-token",
        after_help = "\
Examples:
  giga broker servicebus-token mac-1 --broker servicebus://contoso.servicebus.windows.net \\
    --servicebus-connection listen.txt > mac-1.txt
  giga broker servicebus-token mac-1 --expires 7d > mac-1.txt

Takes the connection string of a rule with a key that may listen to the topic. What is printed is a
secret of that factory: give it to `giga factory run --servicebus-connection FILE`. It cannot be
revoked alone; a new key for the rule ends all that were signed with the old one."
    )]
    ServiceBusToken(ServiceBusTokenArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServiceBusTokenArgs {
    /// Name of the factory
    #[arg(value_name = "FACTORY")]
    pub(crate) factory: String,
    /// How long it is good for, such as 12h or 30d
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub(crate) expires: String,
    /// servicebus://NAMESPACE.servicebus.windows.net [env: GIGA_BROKER]
    #[arg(long, value_name = "URL")]
    pub(crate) broker: Option<String>,
    /// File with a connection string that has a key [env: GIGA_SERVICEBUS_CONNECTION]
    #[arg(long, value_name = "FILE")]
    pub(crate) servicebus_connection: Option<PathBuf>,
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
