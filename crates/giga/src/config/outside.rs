//! Settings of what a coordinator may reach outside, and as whom.

use giga_effects::{
    Allowed, Config, FORGES, ForgeConfig, ForgeKind, RepoAccess, TRACKERS, TrackerConfig, TrackerKind,
    TrackerToken,
};

use super::{ForgeKey, Key, Origin, Setting, Settings, TrackerKey};
use crate::exit::CliError;

impl Settings {
    /// What webhooks, trackers and forges may do here.
    pub(crate) fn outside(&self) -> Result<Config, CliError> {
        let allow = self.effects_allow();
        let entries = allow.value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let wrong =
            |origin: &Origin, error: &dyn std::fmt::Display| CliError::Config(format!("{origin}: {error}"));
        let allowed = Allowed::read(entries).map_err(|error| wrong(&allow.origin, &error))?;
        let trackers = TRACKERS.iter().filter_map(|kind| self.tracker(kind).transpose());
        let forges = FORGES.iter().filter_map(|kind| self.forge(kind).transpose());
        Ok(Config {
            allowed,
            trackers: trackers.collect::<Result<_, _>>()?,
            forges: forges.collect::<Result<_, _>>()?,
            timeout: None,
        })
    }

    pub(crate) fn effects_allow(&self) -> Setting<String> {
        self.get_or(Key::EffectsAllow, "")
    }

    /// Set up where there is a token for it.
    fn tracker(&self, kind: &'static TrackerKind) -> Result<Option<TrackerConfig>, CliError> {
        let Some(token) = self.tracker_token(kind)? else { return Ok(None) };
        Ok(Some(TrackerConfig {
            kind,
            api: self.tracker_api(kind).value,
            token: token.value,
            close_on_ship: self.close_on_ship()?.value,
            repos: self.tracker_repos(kind)?,
        }))
    }

    pub(crate) fn tracker_api(&self, kind: &'static TrackerKind) -> Setting<String> {
        self.get_or(Key::Tracker(kind, TrackerKey::Api), kind.default_api)
    }

    pub(crate) fn close_on_ship(&self) -> Result<Setting<bool>, CliError> {
        self.switch(Key::TrackerCloseOnShip)
    }

    fn tracker_repos(&self, kind: &'static TrackerKind) -> Result<Vec<RepoAccess>, CliError> {
        self.repo_rules(Key::Tracker(kind, TrackerKey::Repos))
    }

    fn repo_rules(&self, key: Key) -> Result<Vec<RepoAccess>, CliError> {
        let Setting { value, origin } = self.get_or(key, "");
        let entries = value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let read = entries.map(RepoAccess::read).collect::<Result<Vec<_>, _>>();
        read.map_err(|error| CliError::Config(format!("{origin}: {error}")))
    }

    /// The flag goes before the variables.
    pub(crate) fn tracker_token(
        &self,
        kind: &'static TrackerKind,
    ) -> Result<Option<Setting<TrackerToken>>, CliError> {
        let key = Key::Tracker(kind, TrackerKey::TokenFile);
        self.outside_token(kind.display_name, key, kind.settings.token_variable)
    }

    fn outside_token(
        &self,
        name: &str,
        key: Key,
        variable: &'static str,
    ) -> Result<Option<Setting<TrackerToken>>, CliError> {
        let named = self.get(key);
        let flagged = matches!(&named, Some(Setting { origin: Origin::Flag(_), .. }));
        if !flagged && let Some(token) = self.surroundings.variable(variable) {
            let origin = Origin::Environment(variable);
            return Ok(Some(Setting { value: TrackerToken(token), origin }));
        }
        named.map(|named| secret_in(&format!("the token for {name}"), named)).transpose()
    }

    /// Set up where there is a token for it.
    fn forge(&self, kind: &'static ForgeKind) -> Result<Option<ForgeConfig>, CliError> {
        let Some(token) = self.forge_token(kind)? else { return Ok(None) };
        Ok(Some(ForgeConfig {
            kind,
            api: self.forge_api(kind).value,
            token: token.value,
            secret: self.forge_secret(kind)?.map(|secret| secret.value),
            repos: self.repo_rules(forge_key(kind, ForgeKey::Repos))?,
        }))
    }

    pub(crate) fn forge_api(&self, kind: &'static ForgeKind) -> Setting<String> {
        self.get_or(forge_key(kind, ForgeKey::Api), kind.default_api)
    }

    pub(crate) fn forge_token(
        &self,
        kind: &'static ForgeKind,
    ) -> Result<Option<Setting<TrackerToken>>, CliError> {
        let key = forge_key(kind, ForgeKey::TokenFile);
        self.outside_token(kind.display_name, key, kind.settings.token_variable)
    }

    /// What the forge signs its messages with.
    pub(crate) fn forge_secret(
        &self,
        kind: &'static ForgeKind,
    ) -> Result<Option<Setting<TrackerToken>>, CliError> {
        let named = self.get(Key::Forge(kind, ForgeKey::SecretFile));
        let what = format!("the webhook secret of {}", kind.display_name);
        let secret = named.map(|named| secret_in(&what, named)).transpose()?;
        match secret {
            Some(Setting { value: TrackerToken(text), origin }) if text.is_empty() => {
                Err(CliError::Config(format!("{origin}: the file with {what} is empty")))
            }
            secret => Ok(secret),
        }
    }
}

/// A forge with a tracker of the same name is reached as that is.
fn forge_key(kind: &'static ForgeKind, key: ForgeKey) -> Key {
    let tracker = TRACKERS.iter().find(|tracker| kind.shares_tracker && tracker.name == kind.name);
    match (tracker, key) {
        (Some(tracker), ForgeKey::Api) => Key::Tracker(tracker, TrackerKey::Api),
        (Some(tracker), ForgeKey::TokenFile) => Key::Tracker(tracker, TrackerKey::TokenFile),
        (Some(tracker), ForgeKey::Repos) => Key::Tracker(tracker, TrackerKey::Repos),
        _ => Key::Forge(kind, key),
    }
}

fn secret_in(what: &str, named: Setting<String>) -> Result<Setting<TrackerToken>, CliError> {
    let Setting { value, origin } = named;
    let text = std::fs::read_to_string(&value)
        .map_err(|error| CliError::Config(format!("cannot read {what} in {value} ({origin}): {error}")))?;
    Ok(Setting { value: TrackerToken(text.trim().to_owned()), origin })
}
