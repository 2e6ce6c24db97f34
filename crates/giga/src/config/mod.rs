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
mod sign_in;
mod signed_in;
mod token;
mod transport;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use duration::duration;
pub(crate) use flags::flags;
pub(crate) use key::{ForgeKey, Key, TrackerKey};
pub(crate) use mask::mask_url;
pub(crate) use sign_in::SignInSettings;
pub(crate) use signed_in::SignedIn;
pub(crate) use transport::Tls;

use crate::exit::CliError;
use crate::system::{SystemClock, SystemRandomness};
use file::ConfigFile;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    File(PathBuf),
    /// Somebody signed in, and it was kept there.
    SignedIn(PathBuf),
    /// The coordinator on this machine left it there.
    DataFolder(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::SignedIn(path) => write!(f, "signed in, {}", path.display()),
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
        let own = surroundings.home_folder("XDG_CONFIG_HOME", ".config").join(file::NAME);
        let mut settings = Self { flags, surroundings, files: Vec::new() };
        settings.add_file(own.clone())?;
        settings.add_file(settings.data().value.join(file::NAME))?;
        let upwards = settings.surroundings.working_folder.ancestors();
        let of_project = upwards.map(|folder| folder.join(file::NAME)).find(|path| path.is_file());
        // The user's own stay the user's own, whoever stands in their folder.
        if let Some(path) = of_project
            && !settings.files.iter().any(|file| is_same_file(&file.path, &path))
        {
            let file = ConfigFile::read(path)?;
            settings.refuse_beyond_a_project(&file, &own)?;
            settings.files.insert(0, file);
        }
        Ok(settings)
    }

    fn add_file(&mut self, path: PathBuf) -> Result<(), CliError> {
        if path.is_file() && self.files.iter().all(|file| file.path != path) {
            self.files.push(ConfigFile::read(path)?);
        }
        Ok(())
    }

    /// Whoever wrote the project wrote its file, and is not the user.
    fn refuse_beyond_a_project(&self, file: &ConfigFile, own: &Path) -> Result<(), CliError> {
        let refused = |name: &str, instead: &str| {
            CliError::Config(format!(
                "{}: a project's giga.toml may not set `{name}`, because a project may be somebody else's; move it to \
                 {}{instead}",
                file.path.display(),
                own.display()
            ))
        };
        if file.engines().is_some() {
            return Err(refused("[engines]", ""));
        }
        match file.beyond_a_project().find(|key| self.said(*key).is_none()) {
            Some(key) => Err(refused(key.name(), &format!(", or use {} or {}", key.flag(), key.variable()))),
            None => Ok(()),
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<Setting<String>> {
        self.said(key).or_else(|| self.files.iter().find_map(|file| file.get(key)))
    }

    /// By the flag or the environment of this call.
    fn said(&self, key: Key) -> Option<Setting<String>> {
        if let Some((_, value)) = self.flags.iter().find(|(name, _)| *name == key) {
            return Some(Setting { value: value.clone(), origin: Origin::Flag(key.flag()) });
        }
        let value = self.surroundings.variable(key.variable())?;
        Some(Setting { value, origin: Origin::Environment(key.variable()) })
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
        let default =
            || Setting { value: format!("http://{}", Key::DEFAULT_LISTEN), origin: Origin::Default };
        self.get(Key::Url).or_else(|| self.local_url()).unwrap_or_else(default)
    }

    /// The address of the coordinator on this machine; none while it is not running.
    fn local_url(&self) -> Option<Setting<String>> {
        let path = self.data().value.join("url");
        let text = std::fs::read_to_string(&path).ok()?;
        Some(Setting { value: text.trim().to_owned(), origin: Origin::DataFolder(path) })
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
        let broker = if Self::is_shared(&store) { &store } else { Self::EMBEDDED_BROKER };
        self.get_or(Key::Broker, broker)
    }

    /// Whether several coordinators can use it at once.
    pub(crate) fn is_shared(store: &str) -> bool {
        ["postgres:", "postgresql:", "cosmos:"].iter().any(|scheme| store.starts_with(scheme))
    }

    pub(crate) fn is_nats(broker: &str) -> bool {
        ["nats://", "tls://"].iter().any(|scheme| broker.starts_with(scheme))
    }

    /// Who this process is at NATS, where the broker's URL does not say it.
    pub(crate) fn nats_key(&self) -> Result<Option<giga_broker::NatsKey>, CliError> {
        let Some(Setting { value, origin }) = self.get(Key::NatsKeyFile) else { return Ok(None) };
        let path = self.surroundings.working_folder.join(value);
        let key = giga_broker::NatsKey::read(&path);
        key.map(Some).map_err(|error| CliError::Config(format!("{origin}: {}", error.reason)))
    }

    pub(crate) fn is_service_bus(broker: &str) -> bool {
        broker.starts_with("servicebus://")
    }

    /// What this process proves itself by at its broker, where the broker's URL does not say it.
    pub(crate) fn broker_access(&self, broker: &str) -> Result<giga_broker::Access, CliError> {
        let nats = if Self::is_nats(broker) { self.nats_key()? } else { None };
        let service_bus = if Self::is_service_bus(broker) { Some(self.service_bus()?) } else { None };
        Ok(giga_broker::Access { nats, service_bus })
    }

    /// A file with a connection string, else what the environment says, as the tools of Azure would find it.
    pub(crate) fn service_bus(&self) -> Result<giga_broker::ServiceBusAccess, CliError> {
        use giga_broker::ServiceBusCredential;
        let credential = match self.get(Key::ServiceBusConnectionFile) {
            Some(Setting { value, origin }) => {
                let read = ServiceBusCredential::read(&self.surroundings.working_folder.join(value));
                read.map_err(|error| CliError::Config(format!("{origin}: {}", error.reason)))?
            }
            None => ServiceBusCredential::from_variables(&self.azure_variables())
                .map_err(|error| CliError::Config(error.reason))?,
        };
        // Tokens go by the clock of the world outside.
        let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandomness));
        Ok(giga_broker::ServiceBusAccess { credential, clock, random })
    }

    /// What the tools of Azure would read to know who they are.
    fn azure_variables(&self) -> Vec<(String, String)> {
        const NAMES: [&str; 8] = [
            "AZURE_SERVICEBUS_CONNECTION_STRING",
            "AZURE_FEDERATED_TOKEN_FILE",
            "AZURE_TENANT_ID",
            "AZURE_CLIENT_ID",
            "AZURE_AUTHORITY_HOST",
            "AZURE_POD_IDENTITY_AUTHORITY_HOST",
            "IDENTITY_ENDPOINT",
            "IDENTITY_HEADER",
        ];
        let set = |name: &str| Some((name.to_owned(), self.surroundings.variable(name)?));
        NAMES.into_iter().filter_map(set).collect()
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

    /// Where the keys for secrets are, if somebody says so.
    pub(crate) fn secrets_key(&self) -> Option<PathBuf> {
        self.get(Key::SecretsKeyFile).map(|set| PathBuf::from(set.value))
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

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests;
