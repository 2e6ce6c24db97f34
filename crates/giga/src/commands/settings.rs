//! `giga config show`: every setting, its value and where that comes from. Secrets are masked.

use std::time::Duration;

use giga_effects::{FORGES, TRACKERS, TrackerToken};
use giga_factory::sandbox::{Sandbox, human_bytes as bytes};
use serde_json::{Value, json};

use super::Done;
use super::context::Context;
use crate::config::{ForgeKey, Key, Origin, Setting, Settings, TrackerKey, mask_url};
use crate::exit::CliError;
use crate::output::{Columns, printable, span};

pub(crate) fn show(context: &Context) -> Done {
    let settings = &context.settings;
    let data = settings.data();
    let token = match settings.token() {
        Ok(Some(token)) => (token.masked(), token.origin.to_string()),
        Ok(None) => ("-".to_owned(), "none found".to_owned()),
        Err(error) => ("-".to_owned(), error.to_string()),
    };
    let plain = |set: Setting<String>| (mask_url(&set.value), set.origin.to_string());
    let or_none =
        |key: Key| settings.get(key).map_or_else(|| ("-".to_owned(), Origin::Default.to_string()), plain);
    let folder = |set: Setting<std::path::PathBuf>| (set.value.display().to_string(), set.origin.to_string());
    let id = settings.factory_id()?;
    let base = settings.factory_base(&id.value);
    let number = |set: Setting<u32>| (set.value.to_string(), set.origin.to_string());
    let time = |set: Setting<Duration>| (span(set.value), set.origin.to_string());
    let mut rows = vec![
        (Key::Url.name(), plain(settings.url())),
        ("token", token),
        (Key::TokenFile.name(), or_none(Key::TokenFile)),
        (Key::AllowPlainHttp.name(), switch(settings.allow_plain_http()?)),
        (Key::CaCert.name(), or_none(Key::CaCert)),
        (Key::Product.name(), or_none(Key::Product)),
        (Key::Output.name(), plain(settings.output())),
        (Key::Data.name(), folder(data)),
        (Key::Listen.name(), plain(settings.listen())),
        (Key::MetricsListen.name(), or_none(Key::MetricsListen)),
        (Key::MaxConnections.name(), or_none(Key::MaxConnections)),
        (Key::TlsCert.name(), or_none(Key::TlsCert)),
        (Key::TlsKeyFile.name(), or_none(Key::TlsKeyFile)),
        (Key::TlsAcme.name(), or_none(Key::TlsAcme)),
        (Key::TlsAcmeDirectory.name(), plain(settings.tls_acme_directory())),
        (Key::OidcIssuer.name(), or_none(Key::OidcIssuer)),
        (Key::OidcClientId.name(), or_none(Key::OidcClientId)),
        (Key::OidcClientSecretFile.name(), or_none(Key::OidcClientSecretFile)),
        (Key::OidcScopes.name(), plain(settings.oidc_scopes())),
        (Key::OidcGroupsClaim.name(), plain(settings.oidc_groups_claim())),
        (Key::OidcGrants.name(), or_none(Key::OidcGrants)),
        (Key::OidcSession.name(), plain(settings.oidc_session())),
        (Key::PublicUrl.name(), or_none(Key::PublicUrl)),
        (Key::Store.name(), plain(settings.store())),
        (Key::Broker.name(), plain(settings.broker())),
        (Key::NatsKeyFile.name(), or_none(Key::NatsKeyFile)),
        (Key::ServiceBusConnectionFile.name(), or_none(Key::ServiceBusConnectionFile)),
        (Key::Artifacts.name(), plain(settings.artifacts())),
        (Key::SecretsKeyFile.name(), or_none(Key::SecretsKeyFile)),
        (Key::Log.name(), plain(settings.log("warn"))),
        (Key::LogFormat.name(), plain(settings.log_format())),
        (Key::Factories.name(), number(settings.factories()?)),
        (Key::Factory.name(), (id.value.to_string(), id.origin.to_string())),
        (Key::Base.name(), folder(base)),
        (Key::Seats.name(), number(settings.seats()?)),
        (Key::Capabilities.name(), or_none(Key::Capabilities)),
        (Key::CostPerHour.name(), or_none(Key::CostPerHour)),
        (Key::Repos.name(), settings.repos().map_or_else(|| or_none(Key::Repos), folder)),
        (Key::UpdateCheckouts.name(), switch(settings.update_checkouts()?)),
        (Key::GitAllow.name(), or_none(Key::GitAllow)),
        (Key::CheckpointEvery.name(), time(settings.checkpoint_every()?)),
        (Key::EngineIdle.name(), time(settings.engine_idle()?)),
        (Key::EngineWall.name(), time(settings.engine_wall()?)),
        (Key::EffectsAllow.name(), or_none(Key::EffectsAllow)),
    ];
    rows.extend(sandbox(settings)?);
    for kind in TRACKERS {
        let repos = Key::Tracker(kind, TrackerKey::Repos);
        rows.extend([
            (Key::Tracker(kind, TrackerKey::Api).name(), plain(settings.tracker_api(kind))),
            (kind.settings.token, hidden(settings.tracker_token(kind))),
            (repos.name(), or_none(repos)),
        ]);
    }
    for kind in FORGES {
        if !kind.shares_tracker {
            let repos = Key::Forge(kind, ForgeKey::Repos);
            rows.extend([
                (Key::Forge(kind, ForgeKey::Api).name(), plain(settings.forge_api(kind))),
                (kind.settings.token, hidden(settings.forge_token(kind))),
                (repos.name(), or_none(repos)),
            ]);
        }
        let secret = Key::Forge(kind, ForgeKey::SecretFile).name();
        rows.push((secret, hidden(settings.forge_secret(kind))));
    }
    rows.extend([
        (Key::TrackerCloseOnShip.name(), switch(settings.close_on_ship()?)),
        (Key::ENGINES, engines(settings)),
    ]);
    let list: Vec<Value> = rows
        .iter()
        .map(|(name, (value, origin))| json!({"name": name, "value": value, "origin": origin}))
        .collect();
    context.output.list(&json!({ "settings": list }), ("/settings", "/name"), "", || {
        let mut table = Columns::new(&["SETTING", "VALUE", "ORIGIN"]);
        for (name, (value, origin)) in &rows {
            table.row([(*name).to_owned(), printable(value), printable(origin)]);
        }
        table.render()
    })
}

/// Name, value and origin.
type Row = (&'static str, (String, String));

fn sandbox(settings: &Settings) -> Result<Vec<Row>, CliError> {
    let mode = settings.sandbox_mode()?;
    let paths = |key: Key| {
        let Setting { value, origin } = settings.sandbox_paths(key);
        let list = value.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        (key.name(), (if list.is_empty() { "-".to_owned() } else { list }, origin.to_string()))
    };
    let bound = |key: Key, value: String| {
        let origin = settings.get(key).map_or(Origin::Default, |set| set.origin);
        (key.name(), (value, origin.to_string()))
    };
    let network = settings.network_mode()?;
    let Setting { value, origin } = settings.network_hosts()?;
    let hosts = value.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let limits = settings.sandbox_limits()?;
    let bytes = |limit: Option<u64>| limit.map_or_else(|| "off".to_owned(), bytes);
    let count = |limit: Option<u64>| limit.map_or_else(|| "off".to_owned(), |number| number.to_string());
    Ok(vec![
        (Key::Sandbox.name(), (mode.value.to_string(), mode.origin.to_string())),
        paths(Key::SandboxRead),
        paths(Key::SandboxWrite),
        bound(Key::SandboxMemory, bytes(limits.memory_bytes)),
        bound(Key::SandboxProcesses, count(limits.processes)),
        bound(Key::SandboxOpenFiles, count(limits.open_files)),
        bound(Key::SandboxFileSize, bytes(limits.file_bytes)),
        bound(Key::SandboxDisk, bytes(limits.disk_bytes)),
        (Key::Network.name(), (network.value.to_string(), network.origin.to_string())),
        (
            Key::NetworkHosts.name(),
            (if hosts.is_empty() { "-".to_owned() } else { hosts }, origin.to_string()),
        ),
        (Key::Commands.name(), switch(settings.commands()?)),
    ])
}

/// Whether there is one, and nothing of it.
fn hidden(secret: Result<Option<Setting<TrackerToken>>, CliError>) -> (String, String) {
    match secret {
        Ok(Some(token)) => ("***".to_owned(), token.origin.to_string()),
        Ok(None) => ("-".to_owned(), "none found".to_owned()),
        Err(error) => ("-".to_owned(), error.to_string()),
    }
}

fn switch(setting: Setting<bool>) -> (String, String) {
    (setting.value.to_string(), setting.origin.to_string())
}

/// Which engines a factory here would ask for; what the file says of each is the file's to show.
fn engines(settings: &Settings) -> (String, String) {
    let Setting { value, origin } = settings.engines();
    let all = giga_factory::engines::engines(&value, &Sandbox::off());
    let names: Vec<&str> = all.iter().map(|engine| engine.name()).collect();
    (names.join(", "), origin.to_string())
}
