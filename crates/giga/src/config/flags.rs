//! The flags that were given, by the setting they stand for.

use std::path::PathBuf;

use super::Key;
use super::sign_in::BETWEEN_GRANTS;
use crate::args::{
    BrokerCommand, Cli, Command, EdgeArgs, FactoryCommand, OutsideArgs, SandboxArgs, SandboxCommand,
    SignInArgs, TlsArgs, WorkArgs,
};

type Given = Vec<(Key, Option<String>)>;

pub(crate) fn flags(cli: &Cli) -> Vec<(Key, String)> {
    let globals = &cli.globals;
    let mut given = vec![
        (Key::Url, globals.url.clone()),
        (Key::TokenFile, path(globals.token_file.as_ref())),
        (Key::AllowPlainHttp, globals.allow_plain_http.then(|| "true".to_owned())),
        (Key::CaCert, path(globals.ca_cert.as_ref())),
        (Key::Product, globals.product.clone()),
        (Key::Output, globals.output.clone()),
        (Key::Data, path(globals.data.as_ref())),
        (Key::Log, globals.log.clone()),
        (Key::LogFormat, globals.log_format.clone()),
    ];
    match &cli.command {
        Command::Up(args) => {
            given.push((Key::Listen, args.listen.clone()));
            given.extend(edge(&args.edge));
            given.extend(tls(&args.tls));
            given.push((Key::Factories, args.factories.clone()));
            given.push((Key::Artifacts, args.artifacts.clone()));
            given.push((Key::SecretsKeyFile, path(args.secrets_key.as_ref())));
            given.extend(work(&args.work));
            given.extend(outside(&args.outside));
            given.extend(sign_in(&args.sign_in));
        }
        Command::Serve(args) => {
            given.extend(sign_in(&args.sign_in));
            given.extend(outside(&args.outside));
            given.push((Key::Listen, args.listen.clone()));
            given.extend(edge(&args.edge));
            given.extend(tls(&args.tls));
            given.push((Key::Store, args.store.clone()));
            given.push((Key::Artifacts, args.artifacts.clone()));
            given.push((Key::SecretsKeyFile, path(args.secrets_key.as_ref())));
            given.push((Key::Broker, args.broker.clone()));
            given.push((Key::NatsKeyFile, path(args.nats_key.as_ref())));
            given.push((Key::ServiceBusConnectionFile, path(args.servicebus_connection.as_ref())));
        }
        Command::Broker(BrokerCommand::ServiceBusToken(args)) => {
            given.push((Key::Broker, args.broker.clone()));
            given.push((Key::ServiceBusConnectionFile, path(args.servicebus_connection.as_ref())));
        }
        Command::Factory(FactoryCommand::Run(args)) => {
            given.push((Key::Factory, args.id.clone()));
            given.push((Key::Base, path(args.base.as_ref())));
            given.push((Key::Broker, args.broker.clone()));
            given.push((Key::NatsKeyFile, path(args.nats_key.as_ref())));
            given.push((Key::ServiceBusConnectionFile, path(args.servicebus_connection.as_ref())));
            given.extend(work(&args.work));
        }
        Command::Sandbox(SandboxCommand::Try(args)) => given.extend(sandbox(&args.sandbox)),
        _ => {}
    }
    given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn list(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(","))
}

fn edge(args: &EdgeArgs) -> Given {
    vec![
        (Key::MetricsListen, args.metrics_listen.clone()),
        (Key::MaxConnections, args.max_connections.clone()),
    ]
}

fn tls(args: &TlsArgs) -> Given {
    vec![
        (Key::TlsCert, path(args.cert.as_ref())),
        (Key::TlsKeyFile, path(args.key.as_ref())),
        (Key::TlsAcme, args.acme.clone()),
        (Key::TlsAcmeDirectory, args.acme_directory.clone()),
    ]
}

fn sign_in(args: &SignInArgs) -> Given {
    let grants = &args.oidc_grants;
    vec![
        (Key::OidcIssuer, args.oidc_issuer.clone()),
        (Key::OidcClientId, args.oidc_client_id.clone()),
        (Key::OidcClientSecretFile, path(args.oidc_client_secret_file.as_ref())),
        (Key::OidcScopes, args.oidc_scopes.clone()),
        (Key::OidcGroupsClaim, args.oidc_groups_claim.clone()),
        (Key::OidcGrants, (!grants.is_empty()).then(|| grants.join(BETWEEN_GRANTS))),
        (Key::OidcSession, args.oidc_session.clone()),
        (Key::PublicUrl, args.public_url.clone()),
    ]
}

fn work(args: &WorkArgs) -> Given {
    vec![
        (Key::Seats, args.seats.clone()),
        (Key::Capabilities, list(&args.capabilities)),
        (Key::CostPerHour, args.cost_per_hour.clone()),
        (Key::Repos, path(args.repos.as_ref())),
        (Key::UpdateCheckouts, args.update_checkouts.then(|| "true".to_owned())),
        (Key::GitAllow, list(&args.git_allow)),
        (Key::CheckpointEvery, args.checkpoint_every.clone()),
        (Key::EngineIdle, args.engine_idle.clone()),
        (Key::EngineWall, args.engine_wall.clone()),
    ]
    .into_iter()
    .chain(sandbox(&args.sandbox))
    .collect()
}

fn sandbox(args: &SandboxArgs) -> Given {
    vec![
        (Key::Sandbox, args.sandbox.clone()),
        (Key::SandboxRead, list(&args.sandbox_read)),
        (Key::SandboxWrite, list(&args.sandbox_write)),
        (Key::SandboxMemory, args.sandbox_memory.clone()),
        (Key::SandboxProcesses, args.sandbox_processes.clone()),
        (Key::SandboxOpenFiles, args.sandbox_open_files.clone()),
        (Key::SandboxFileSize, args.sandbox_file_size.clone()),
        (Key::SandboxDisk, args.sandbox_disk.clone()),
        (Key::Network, args.network.clone()),
        (Key::NetworkHosts, list(&args.network_hosts)),
        (Key::Commands, args.no_commands.then(|| Key::Commands.flag_means().to_owned())),
    ]
}

fn outside(args: &OutsideArgs) -> Given {
    let mut given = vec![
        (Key::EffectsAllow, (!args.effects_allow.is_empty()).then(|| args.effects_allow.join(","))),
        (Key::TrackerCloseOnShip, args.tracker_close_on_ship.then(|| "true".to_owned())),
    ];
    given.extend(args.forges.0.iter().map(|(key, value)| (*key, Some(value.clone()))));
    given.extend(args.trackers.0.iter().map(|(key, value)| (*key, Some(value.clone()))));
    given
}

fn path(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.to_string_lossy().into_owned())
}
