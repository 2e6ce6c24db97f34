//! Settings, each with its origin: flag, then `GIGA_*` environment, then giga.toml, then default.
//!
//! Nothing but this module reads the environment or giga.toml. Secrets are shown masked.

mod duration;
mod factory;
mod file;
mod flags;
mod key;
mod mask;
mod outside;
mod sandbox;
mod token;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use duration::duration;
pub(crate) use flags::flags;
pub(crate) use key::{ForgeKey, Key, TrackerKey};
pub(crate) use mask::mask_url;

use crate::exit::CliError;
use file::ConfigFile;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    File {
        path: PathBuf,
        /// It lies in the working folder or above: whoever wrote the project wrote it, not the user.
        of_project: bool,
    },
    /// The coordinator on this machine left it there.
    DataFolder(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File { path, .. } => write!(f, "file {}", path.display()),
            Self::DataFolder(path) => write!(f, "found in {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// The value of a variable.
type Environment = Box<dyn Fn(&str) -> Option<String>>;

/// What the process was started with. A value of its own, so that tests need no environment.
pub(crate) struct Surroundings {
    pub(crate) environment: Environment,
    pub(crate) working_folder: PathBuf,
}

impl Surroundings {
    pub(crate) fn real() -> Self {
        Self {
            environment: Box::new(|name| std::env::var(name).ok()),
            working_folder: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// An empty variable counts as none.
    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.is_empty())
    }

    fn home_folder(&self, xdg: &str, under_home: &str) -> PathBuf {
        let base = self.variable(xdg).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = base.or_else(|| self.variable("HOME").map(|home| Path::new(&home).join(under_home)));
        base.unwrap_or_default().join("gigafactory")
    }
}

/// Everything that was set, not yet checked.
pub(crate) struct Settings {
    flags: Vec<(Key, String)>,
    surroundings: Surroundings,
    files: Vec<ConfigFile>,
}

impl Settings {
    pub(crate) fn load(flags: Vec<(Key, String)>, surroundings: Surroundings) -> Result<Self, CliError> {
        let mut files = Vec::new();
        let upwards = surroundings.working_folder.ancestors();
        if let Some(path) = upwards.map(|folder| folder.join(file::NAME)).find(|path| path.is_file()) {
            files.push(ConfigFile::read(path, true)?);
        }
        let own = surroundings.home_folder("XDG_CONFIG_HOME", ".config").join(file::NAME);
        let mut settings = Self { flags, surroundings, files };
        settings.add_file(own, false)?;
        let data = settings.data();
        // Whoever chose the folder wrote what is in it.
        let of_project = matches!(data.origin, Origin::File { of_project: true, .. });
        settings.add_file(data.value.join(file::NAME), of_project)?;
        Ok(settings)
    }

    fn add_file(&mut self, path: PathBuf, of_project: bool) -> Result<(), CliError> {
        if path.is_file() && self.files.iter().all(|file| file.path != path) {
            self.files.push(ConfigFile::read(path, of_project)?);
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: Key) -> Option<Setting<String>> {
        if let Some((_, value)) = self.flags.iter().find(|(name, _)| *name == key) {
            return Some(Setting { value: value.clone(), origin: Origin::Flag(key.flag()) });
        }
        if let Some(value) = self.surroundings.variable(key.variable()) {
            return Some(Setting { value, origin: Origin::Environment(key.variable()) });
        }
        self.files.iter().find_map(|file| file.get(key))
    }

    fn get_or(&self, key: Key, default: &str) -> Setting<String> {
        self.get(key).unwrap_or_else(|| Setting { value: default.to_owned(), origin: Origin::Default })
    }

    /// Off by default.
    fn switch(&self, key: Key) -> Result<Setting<bool>, CliError> {
        let Setting { value, origin } = self.get_or(key, "false");
        match value.as_str() {
            "true" => Ok(Setting { value: true, origin }),
            "false" => Ok(Setting { value: false, origin }),
            other => Err(CliError::Config(format!("{origin}: `{other}` is neither true nor false"))),
        }
    }

    pub(crate) fn data(&self) -> Setting<PathBuf> {
        let default = || Setting {
            value: self.surroundings.home_folder("XDG_DATA_HOME", ".local/share"),
            origin: Origin::Default,
        };
        let as_path = |Setting { value, origin }: Setting<String>| Setting { value: value.into(), origin };
        self.get(Key::Data).map_or_else(default, as_path)
    }

    /// The coordinator on this machine is found by the address that it left in its folder.
    pub(crate) fn url(&self) -> Setting<String> {
        self.get(Key::Url).unwrap_or_else(|| {
            let data = self.data();
            let path = data.value.join("url");
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let origin = match data.origin {
                        // Whoever chose the folder chose the address in it.
                        Origin::File { of_project: true, .. } => Origin::File { path, of_project: true },
                        _ => Origin::DataFolder(path),
                    };
                    Setting { value: text.trim().to_owned(), origin }
                }
                Err(_) => {
                    Setting { value: format!("http://{}", Key::DEFAULT_LISTEN), origin: Origin::Default }
                }
            }
        })
    }

    pub(crate) fn product(&self) -> Option<Setting<String>> {
        self.get(Key::Product)
    }

    pub(crate) fn listen(&self) -> Setting<String> {
        self.get_or(Key::Listen, Key::DEFAULT_LISTEN)
    }

    pub(crate) fn store(&self) -> Setting<String> {
        self.get_or(Key::Store, &self.embedded_store())
    }

    /// Coordinators that share a PostgreSQL hear of each other through it; others have nobody to hear.
    pub(crate) fn broker(&self) -> Setting<String> {
        let store = self.store().value;
        let shared = store.starts_with("postgres://") || store.starts_with("postgresql://");
        self.get_or(Key::Broker, if shared { &store } else { Self::EMBEDDED_BROKER })
    }

    /// Where artifacts and logs go: the data folder by default.
    pub(crate) fn artifacts(&self) -> Setting<String> {
        self.get_or(Key::Artifacts, &self.data().value.display().to_string())
    }

    /// The same for a coordinator whose data folder is known by its whole path.
    pub(crate) fn artifacts_in(&self, data: &Path) -> String {
        let Setting { value, origin } = self.artifacts();
        if origin == Origin::Default { data.display().to_string() } else { value }
    }

    /// What the tools of the clouds would read, for a bucket.
    pub(crate) fn cloud_variables() -> Vec<(String, String)> {
        let of_a_cloud = |name: &str| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|c| name.starts_with(c));
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        std::env::vars_os().filter_map(text).filter(|(name, _)| of_a_cloud(name)).collect()
    }

    pub(crate) const EMBEDDED_BROKER: &str = "embedded:";

    pub(crate) fn embedded_store(&self) -> String {
        format!("sqlite:{}", self.data().value.join("giga.db").display())
    }

    pub(crate) fn output(&self) -> Setting<String> {
        self.get_or(Key::Output, "table")
    }

    pub(crate) fn log(&self, default: &str) -> Setting<String> {
        self.get_or(Key::Log, default)
    }

    pub(crate) fn log_format(&self) -> Setting<String> {
        self.get_or(Key::LogFormat, "text")
    }
}

#[cfg(test)]
mod tests;
