//! `giga broker nats-config`: keys for the coordinators and each factory, and the server's accounts for them. And
//! `giga broker servicebus-token`: a signature for one factory's subscription.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use giga_broker::{NatsKey, NatsPublicKey, server_accounts};
use giga_domain::FactoryId;
use giga_ports::Randomness;

use super::Done;
use super::context::Context;
use crate::args::{BrokerCommand, NatsConfigArgs, ServiceBusTokenArgs};
use crate::config::{Setting, Settings, duration, mask_url};
use crate::exit::CliError;
use crate::output::{announce, say};
use crate::system::SystemRandomness;

pub(crate) async fn run(command: BrokerCommand, context: &Context) -> Done {
    match command {
        BrokerCommand::NatsConfig(args) => nats_config(args, context).await,
        BrokerCommand::ServiceBusToken(args) => service_bus_token(&args, context),
    }
}

fn service_bus_token(args: &ServiceBusTokenArgs, context: &Context) -> Done {
    let settings = &context.settings;
    let Setting { value: broker, origin } = settings.broker();
    if !Settings::is_service_bus(&broker) {
        return Err(CliError::Config(format!(
            "{origin}: `{}` is not on Azure Service Bus; use --broker servicebus://NAMESPACE.servicebus.windows.net",
            mask_url(&broker)
        )));
    }
    let factory: FactoryId =
        args.factory.parse().map_err(|error| CliError::failed(format!("`{}`: {error}", args.factory)))?;
    let lifetime =
        duration(&args.expires).map_err(|error| CliError::Config(format!("--expires: {error}")))?;
    let access = settings.service_bus()?;
    let until = access.clock.now().plus(lifetime);
    let signed = access.credential.sign_for(&broker, &factory, until);
    announce(&signed.map_err(|error| CliError::failed(error.reason))?)?;
    say(&format!("{factory} can read its offers with it until {until}"));
    Ok(())
}

async fn nats_config(args: NatsConfigArgs, context: &Context) -> Done {
    let names = if args.factories.is_empty() {
        context.client()?.factories().await?.factories.iter().map(|factory| factory.id.clone()).collect()
    } else {
        args.factories
    };
    let mut made = Vec::new();
    let coordinator = public_key(&args.keys.join("coordinator"), &mut made)?;
    let mut factories = Vec::new();
    for name in names {
        let id: FactoryId = name.parse().map_err(|error| CliError::failed(format!("`{name}`: {error}")))?;
        let key = public_key(&args.keys.join("factories").join(id.as_str()), &mut made)?;
        factories.push((id, key));
    }
    announce(server_accounts(&coordinator, &factories).trim_end())?;
    for path in made {
        say(&format!("made a key: {}", path.display()));
    }
    Ok(())
}

/// Of `NAME.nk`, or what `NAME.pub` says; a new key where there is neither.
fn public_key(name: &Path, made: &mut Vec<PathBuf>) -> Result<NatsPublicKey, CliError> {
    let with = |end: &str| {
        let mut path = name.as_os_str().to_owned();
        path.push(end);
        PathBuf::from(path)
    };
    let (seed, public) = (with(".nk"), with(".pub"));
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        CliError::failed(format!("the key in {}: {why}", path.display()))
    };
    if seed.exists() {
        return Ok(NatsKey::read(&seed).map_err(|error| wrong(&seed, &error.reason))?.public());
    }
    match std::fs::read_to_string(&public) {
        Ok(text) => return NatsPublicKey::parse(&text).map_err(|error| wrong(&public, &error.reason)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(wrong(&public, &error)),
    }
    let key = NatsKey::from_random(SystemRandomness.bytes()).map_err(|error| wrong(&seed, &error.reason))?;
    write(&seed, &key).map_err(|error| wrong(&seed, &error))?;
    made.push(seed);
    Ok(key.public())
}

/// For nobody but its owner, from its first byte on.
fn write(path: &Path, key: &NatsKey) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", key.seed())
}
