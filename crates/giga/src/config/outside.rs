//! Settings of what a coordinator may reach outside, and as whom.
//!
//! A project's giga.toml may not choose any of it: it would say where a secret is sent, and what of the network can be
//! reached.

use giga_effects::{Allowed, Config, Grant, Secret, TrackerConfig, TrackerKind};

use super::{Key, Origin, Setting, Settings};
use crate::exit::CliError;

const GITHUB_API: &str = "https://api.github.com";

impl Settings {
    /// What webhooks and trackers may do here.
    pub(crate) fn outside(&self) -> Result<Config, CliError> {
        if let Some(Setting { value, origin: Origin::File { path, of_project: true } }) =
            self.get(Key::Artifacts)
            && value.contains(':')
        {
            return Err(not_for_a_project(&path, Key::Artifacts));
        }
        for key in [
            Key::EffectsAllow,
            Key::GitHubApi,
            Key::GitHubTokenFile,
            Key::GitHubRepos,
            Key::TrackerCloseOnShip,
        ] {
            if let Some(Setting { origin: Origin::File { path, of_project: true }, .. }) = self.get(key) {
                return Err(not_for_a_project(&path, key));
            }
        }
        let allow = self.effects_allow();
        let entries = allow.value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let wrong =
            |origin: &Origin, error: &dyn std::fmt::Display| CliError::Config(format!("{origin}: {error}"));
        let allowed = Allowed::read(entries).map_err(|error| wrong(&allow.origin, &error))?;
        let trackers = self.github_token()?.map(|token| -> Result<TrackerConfig, CliError> {
            Ok(TrackerConfig {
                name: "github".to_owned(),
                kind: TrackerKind::GitHub,
                api: self.github_api().value,
                token: token.value,
                close_on_ship: self.close_on_ship()?.value,
                repos: self.github_repos()?,
            })
        });
        let trackers = trackers.transpose()?.into_iter().collect();
        Ok(Config { allowed, trackers, timeout: None })
    }

    pub(crate) fn effects_allow(&self) -> Setting<String> {
        self.get_or(Key::EffectsAllow, "")
    }

    pub(crate) fn github_api(&self) -> Setting<String> {
        self.get_or(Key::GitHubApi, GITHUB_API)
    }

    pub(crate) fn close_on_ship(&self) -> Result<Setting<bool>, CliError> {
        let Setting { value, origin } = self.get_or(Key::TrackerCloseOnShip, "false");
        match value.as_str() {
            "true" => Ok(Setting { value: true, origin }),
            "false" => Ok(Setting { value: false, origin }),
            other => Err(CliError::Config(format!("{origin}: `{other}` is neither true nor false"))),
        }
    }

    fn github_repos(&self) -> Result<Vec<Grant>, CliError> {
        let Setting { value, origin } = self.get_or(Key::GitHubRepos, "");
        let entries = value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let read = entries.map(Grant::read).collect::<Result<Vec<_>, _>>();
        read.map_err(|error| CliError::Config(format!("{origin}: {error}")))
    }

    /// The flag goes before the variables.
    pub(crate) fn github_token(&self) -> Result<Option<Setting<Secret>>, CliError> {
        let named = self.get(Key::GitHubTokenFile);
        let flagged = matches!(&named, Some(Setting { origin: Origin::Flag(_), .. }));
        if !flagged && let Some(token) = self.surroundings.variable(Key::GITHUB_TOKEN_VARIABLE) {
            let origin = Origin::Environment(Key::GITHUB_TOKEN_VARIABLE);
            return Ok(Some(Setting { value: Secret(token), origin }));
        }
        let Some(Setting { value, origin }) = named else { return Ok(None) };
        let text = std::fs::read_to_string(&value).map_err(|error| {
            CliError::Config(format!("cannot read the token for GitHub in {value} ({origin}): {error}"))
        })?;
        Ok(Some(Setting { value: Secret(text.trim().to_owned()), origin }))
    }
}

fn not_for_a_project(path: &std::path::Path, key: Key) -> CliError {
    CliError::Config(format!(
        "{}: `{}` says what may be reached with your rights, so a project may not choose it; put it into \
         ~/.config/gigafactory/giga.toml or the data folder's giga.toml",
        path.display(),
        key.name()
    ))
}
