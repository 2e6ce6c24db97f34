//! giga.toml: one value per setting and a table for the engines; unknown keys are refused.

use std::path::PathBuf;

use giga_domain::manifest::suggest;
use giga_factory::engines::EnginesConfig;

use super::sign_in::BETWEEN_GRANTS;
use super::{Key, Origin, Setting};
use crate::exit::CliError;

pub(super) const NAME: &str = "giga.toml";

pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    values: Vec<(Key, String)>,
    engines: Option<EnginesConfig>,
}

impl ConfigFile {
    pub(super) fn read(path: PathBuf) -> Result<Self, CliError> {
        let wrong = |what: String| CliError::Config(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            CliError::Config(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        let mut values = Vec::new();
        let mut engines = None;
        for (name, value) in table {
            if name == Key::ENGINES {
                let read = value.try_into::<EnginesConfig>();
                engines = Some(read.map_err(|error| wrong(format!("[engines]: {}", error.message())))?);
                continue;
            }
            let Some(key) = Key::all().find(|key| key.name() == name) else {
                return Err(wrong(unknown(&name)));
            };
            let value = plain(key, value).map_err(wrong)?;
            // A place for artifacts is a folder or a URL.
            let is_path = key.is_path() || (key == Key::Artifacts && !value.contains(':'));
            let value =
                if is_path { path.with_file_name("").join(value).display().to_string() } else { value };
            values.push((key, value));
        }
        Ok(Self { path, values, engines })
    }

    pub(super) fn engines(&self) -> Option<Setting<EnginesConfig>> {
        Some(Setting { value: self.engines.clone()?, origin: self.origin() })
    }

    pub(super) fn get(&self, key: Key) -> Option<Setting<String>> {
        let (_, value) = self.values.iter().find(|(name, _)| *name == key)?;
        Some(Setting { value: value.clone(), origin: self.origin() })
    }

    /// What the file sets although a project may not. Its flag and its variable win over the file.
    pub(super) fn beyond_a_project(&self) -> impl Iterator<Item = Key> {
        self.values.iter().map(|(key, _)| *key).filter(|key| !key.is_for_projects())
    }

    fn origin(&self) -> Origin {
        Origin::File(self.path.clone())
    }
}

/// As a flag would say it: text, and for some settings a number or a list.
fn plain(key: Key, value: toml::Value) -> Result<String, String> {
    let name = key.name();
    match (key, value) {
        (_, toml::Value::String(text)) => Ok(text),
        (Key::Seats | Key::Factories, toml::Value::Integer(number)) => Ok(number.to_string()),
        (Key::Seats | Key::Factories, _) => Err(format!("`{name}` must be a number, such as {name} = 2")),
        (key, toml::Value::Boolean(wanted)) if key.is_switch() => Ok(wanted.to_string()),
        (key, _) if key.is_switch() => Err(format!("`{name}` must be true or false")),
        (key, toml::Value::Integer(number)) if key.is_count() => Ok(number.to_string()),
        (key, toml::Value::Array(list)) if key.is_list() && list.iter().all(toml::Value::is_str) => {
            let between = if key == Key::OidcGrants { BETWEEN_GRANTS } else { "," };
            Ok(list.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(between))
        }
        (Key::GitAllow, _) => {
            Err(format!("`{name}` must be a list of text, such as {name} = [\"https://…\"]"))
        }
        (Key::Capabilities, _) => {
            Err(format!("`{name}` must be a list of text, such as {name} = [\"gpu:a100=2\"]"))
        }
        (Key::CostPerHour, toml::Value::Float(number)) => Ok(number.to_string()),
        (Key::CostPerHour, toml::Value::Integer(number)) => Ok(number.to_string()),
        (Key::EffectsAllow, _) => {
            Err(format!("`{name}` must be a list of text, such as {name} = [\"10.0.0.0/8\"]"))
        }
        (Key::OidcGrants, _) => {
            Err(format!("`{name}` must be a list of text, such as {name} = [\"eng=operator:web\"]"))
        }
        (Key::NetworkHosts, _) => {
            Err(format!("`{name}` must be a list of text, such as {name} = [\"crates.io\"]"))
        }
        (key, _) if key.is_list() => {
            Err(format!("`{name}` must be a list of text, such as {name} = [\"~/.cargo/bin\"]"))
        }
        _ => Err(format!("`{name}` must be text, such as {name} = \"…\"")),
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = Key::all().map(Key::name).chain([Key::ENGINES]).collect();
    match suggest(name, names.iter().copied()) {
        _ if name == "token" => {
            "a token does not belong in a shared file; point to its file with `token-file`".to_owned()
        }
        Some(near) => format!("there is no setting `{name}`; did you mean `{near}`?"),
        None => format!("there is no setting `{name}`; the settings are {}", names.join(", ")),
    }
}
