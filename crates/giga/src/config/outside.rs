//! Settings of what a coordinator may reach outside, and as whom.
//!
//! A project's giga.toml may not choose any of it: it would say where a secret is sent, and what of the network can be
//! reached.

use giga_effects::{Allowed, Config, RepoAccess, TRACKERS, TrackerConfig, TrackerKind, TrackerToken};

use super::{Key, Origin, Setting, Settings, TrackerKey};
use crate::exit::CliError;

impl Settings {
    /// What webhooks and trackers may do here.
    pub(crate) fn outside(&self) -> Result<Config, CliError> {
        if let Some(Setting { value, origin: Origin::File { path, of_project: true } }) =
            self.get(Key::Artifacts)
            && value.contains(':')
        {
            return Err(not_for_a_project(&path, Key::Artifacts));
        }
        for key in [Key::EffectsAllow, Key::TrackerCloseOnShip].into_iter().chain(Key::of_trackers()) {
            if let Some(Setting { origin: Origin::File { path, of_project: true }, .. }) = self.get(key) {
                return Err(not_for_a_project(&path, key));
            }
        }
        let allow = self.effects_allow();
        let entries = allow.value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let wrong =
            |origin: &Origin, error: &dyn std::fmt::Display| CliError::Config(format!("{origin}: {error}"));
        let allowed = Allowed::read(entries).map_err(|error| wrong(&allow.origin, &error))?;
        let trackers = TRACKERS.iter().filter_map(|kind| self.tracker(kind).transpose());
        Ok(Config { allowed, trackers: trackers.collect::<Result<_, _>>()?, timeout: None })
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
        let Setting { value, origin } = self.get_or(Key::Tracker(kind, TrackerKey::Repos), "");
        let entries = value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let read = entries.map(RepoAccess::read).collect::<Result<Vec<_>, _>>();
        read.map_err(|error| CliError::Config(format!("{origin}: {error}")))
    }

    /// The flag goes before the variables.
    pub(crate) fn tracker_token(
        &self,
        kind: &'static TrackerKind,
    ) -> Result<Option<Setting<TrackerToken>>, CliError> {
        let named = self.get(Key::Tracker(kind, TrackerKey::TokenFile));
        let flagged = matches!(&named, Some(Setting { origin: Origin::Flag(_), .. }));
        if !flagged && let Some(token) = self.surroundings.variable(kind.settings.token_variable) {
            let origin = Origin::Environment(kind.settings.token_variable);
            return Ok(Some(Setting { value: TrackerToken(token), origin }));
        }
        let Some(Setting { value, origin }) = named else { return Ok(None) };
        let text = std::fs::read_to_string(&value).map_err(|error| {
            let name = kind.display_name;
            CliError::Config(format!("cannot read the token for {name} in {value} ({origin}): {error}"))
        })?;
        Ok(Some(Setting { value: TrackerToken(text.trim().to_owned()), origin }))
    }
}

fn not_for_a_project(path: &std::path::Path, key: Key) -> CliError {
    CliError::Config(format!(
        "{}: `{}` decides what may be reached with your rights, so a project may not choose it; put it into \
         ~/.config/gigafactory/giga.toml or the data folder's giga.toml",
        path.display(),
        key.name()
    ))
}
