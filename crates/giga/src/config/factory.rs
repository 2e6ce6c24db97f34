//! Settings of a factory: who it is, where it works, what it may use.

use std::path::PathBuf;
use std::time::Duration;

use giga_domain::{CapabilitySet, FactoryId, Usd};
use giga_factory::engines::EnginesConfig;

use super::{Key, Origin, Setting, Settings, duration, mask_url};
use crate::exit::CliError;

/// More would be a mistake of the finger.
const MOST_SEATS: u32 = 256;
const MOST_FACTORIES: u32 = 32;

impl Settings {
    pub(crate) fn factories(&self) -> Result<Setting<u32>, CliError> {
        self.number(Key::Factories, 1, 0..=MOST_FACTORIES)
    }

    pub(crate) fn seats(&self) -> Result<Setting<u32>, CliError> {
        self.number(Key::Seats, 2, 1..=MOST_SEATS)
    }

    /// What the operator says that the machine has. Engines, repositories and the sandbox speak for themselves.
    pub(crate) fn capabilities(&self) -> Result<Setting<CapabilitySet>, CliError> {
        let Setting { value, origin } = self.get_or(Key::Capabilities, "");
        let tokens = value.split(',').map(str::trim).filter(|token| !token.is_empty());
        let refused = |why: String| CliError::Config(format!("{origin}: {why}"));
        let value = CapabilitySet::parse(tokens).map_err(|error| refused(error.to_string()))?;
        if let Some(detected) = value.iter().find(|capability| !capability.is_for_operators()) {
            return Err(refused(format!(
                "`{detected}` is found by looking and cannot be declared; declare what cannot be seen, such as gpu:a100=2"
            )));
        }
        Ok(Setting { value, origin })
    }

    /// Nothing by default: then the machine is taken to cost nothing.
    pub(crate) fn cost_per_hour(&self) -> Result<Option<Setting<Usd>>, CliError> {
        let Some(Setting { value, origin }) = self.get(Key::CostPerHour) else { return Ok(None) };
        let wrong =
            || CliError::Config(format!("{origin}: `{value}` is not an amount of dollars, such as 1.25"));
        let amount = value.parse::<Usd>().ok().filter(|amount| *amount >= Usd::ZERO).ok_or_else(wrong)?;
        Ok(Some(Setting { value: amount, origin }))
    }

    /// The machine's name by default.
    pub(crate) fn factory_id(&self) -> Result<Setting<FactoryId>, CliError> {
        match self.get(Key::Factory) {
            None => Ok(Setting { value: of_this_machine(), origin: Origin::Default }),
            Some(Setting { value, origin }) => match value.parse() {
                Ok(value) => Ok(Setting { value, origin }),
                Err(error) => Err(CliError::Config(format!("{origin}: {error}"))),
            },
        }
    }

    /// Where the factories of this machine live, each in a folder of its own name.
    pub(crate) fn factories_folder(&self) -> PathBuf {
        self.data().value.join("factory")
    }

    pub(crate) fn factory_base(&self, id: &FactoryId) -> Setting<PathBuf> {
        let default =
            || Setting { value: self.factories_folder().join(id.as_str()), origin: Origin::Default };
        self.folder(Key::Base).unwrap_or_else(default)
    }

    pub(crate) fn repos(&self) -> Option<Setting<PathBuf>> {
        self.folder(Key::Repos)
    }

    /// Whether results may move a branch that is checked out.
    pub(crate) fn update_checkouts(&self) -> Result<Setting<bool>, CliError> {
        self.switch(Key::UpdateCheckouts)
    }

    /// Prefixes of git URLs; none by default.
    pub(crate) fn git_allow(&self) -> Setting<Vec<String>> {
        let Setting { value, origin } = self.get_or(Key::GitAllow, "");
        let prefixes = value.split(',').map(str::trim).filter(|prefix| !prefix.is_empty());
        Setting { value: prefixes.map(str::to_owned).collect(), origin }
    }

    /// A broker that a factory can read by itself. One setting serves coordinator and factory, so the coordinator's other
    /// brokers count as none here, unless somebody asked this factory for them.
    pub(crate) fn factory_broker(&self) -> Result<Option<Setting<String>>, CliError> {
        let Some(set) = self.get(Key::Broker) else { return Ok(None) };
        if Self::is_nats(&set.value) || Self::is_service_bus(&set.value) {
            return Ok(Some(set));
        }
        match set {
            Setting { origin: origin @ Origin::Flag(_), value } => Err(CliError::Config(format!(
                "{origin}: `{}` is not a broker that a factory can read from; use nats://HOST, tls://HOST or \
                 servicebus://HOST",
                mask_url(&value)
            ))),
            _ => Ok(None),
        }
    }

    pub(crate) fn checkpoint_every(&self) -> Result<Setting<Duration>, CliError> {
        self.time(Key::CheckpointEvery, "60s")
    }

    pub(crate) fn engine_idle(&self) -> Result<Setting<Duration>, CliError> {
        self.time(Key::EngineIdle, "20m")
    }

    pub(crate) fn engine_wall(&self) -> Result<Setting<Duration>, CliError> {
        self.time(Key::EngineWall, "4h")
    }

    pub(crate) fn engines(&self) -> Setting<EnginesConfig> {
        let default = || Setting { value: EnginesConfig::default(), origin: Origin::Default };
        self.files.iter().find_map(super::ConfigFile::engines).unwrap_or_else(default)
    }

    /// A folder, absolute, so that it means the same to every process.
    fn folder(&self, key: Key) -> Option<Setting<PathBuf>> {
        let Setting { value, origin } = self.get(key)?;
        Some(Setting { value: self.surroundings.working_folder.join(value), origin })
    }

    fn number(
        &self,
        key: Key,
        default: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Setting<u32>, CliError> {
        let Setting { value, origin } = self.get_or(key, &default.to_string());
        match value.parse() {
            Ok(number) if range.contains(&number) => Ok(Setting { value: number, origin }),
            _ => Err(CliError::Config(format!(
                "{origin}: `{value}` is not a number from {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    fn time(&self, key: Key, default: &str) -> Result<Setting<Duration>, CliError> {
        let Setting { value, origin } = self.get_or(key, default);
        match duration(&value) {
            Ok(time) if !time.is_zero() => Ok(Setting { value: time, origin }),
            Ok(_) => Err(CliError::Config(format!("{origin}: `{value}` must be longer than zero"))),
            Err(error) => Err(CliError::Config(format!("{origin}: {error}"))),
        }
    }
}

/// What the machine is called, as far as it can be the name of a factory.
fn of_this_machine() -> FactoryId {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    id_from(&name).unwrap_or_else(|| "factory".parse().expect("a plain word is an id"))
}

fn id_from(name: &str) -> Option<FactoryId> {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // The part before the first dot: the domain only says where the machine stands.
    let first = name.split('.').next().unwrap_or_default();
    let id: String = first.chars().map(legal).take(64).collect();
    id.trim_matches('-').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_lends_its_name() {
        let id = |name: &str| id_from(name).map(|id| id.to_string());
        assert_eq!(id("mac-1.local").as_deref(), Some("mac-1"));
        assert_eq!(id("Ana's Mac").as_deref(), Some("Ana-s-Mac"));
        assert_eq!(id(&"x".repeat(99)).map(|id| id.len()), Some(64));
        assert_eq!(id(""), None);
        assert_eq!(id("…"), None);
    }
}
