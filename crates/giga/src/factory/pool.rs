//! A factory that is one of a pool: which credential it enrolls with, and what it is called where nobody said.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use giga_domain::{FactoryId, PoolName};
use giga_factory::agent::AgentConfig;
use giga_ports::pool_driver::CREDENTIAL_VARIABLE;

use crate::config::{Key, Settings};
use crate::exit::CliError;

/// In the base folder of one that named itself: a restart goes on as the same factory.
const NAME: &str = "factory.name";

pub(super) fn join(config: &mut AgentConfig, pool: &PoolName, settings: &Settings) -> Result<(), CliError> {
    if settings.get(Key::Factory).is_none() {
        if settings.get(Key::Base).is_none() {
            // Of the pool, because the factory has no name yet: a container that is started again finds itself there.
            config.base = settings.data().value.join("pool").join(pool.as_str());
        }
        config.id = kept_name(&config.base, pool)?;
    }
    // Whatever else this `giga` would use is nobody's business in a pool.
    config.enroll_with = settings.pool_credential()?;
    if config.enroll_with.is_none() && !config.base.join("factory.token").exists() {
        return Err(CliError::Config(format!(
            "pool {pool}: there is no credential to join it with; set {CREDENTIAL_VARIABLE} or --token-file"
        )));
    }
    config.pool = Some(pool.clone());
    Ok(())
}

fn kept_name(base: &Path, pool: &PoolName) -> Result<FactoryId, CliError> {
    let path = base.join(NAME);
    let cannot =
        |error: std::io::Error| CliError::failed(format!("cannot use the file {}: {error}", path.display()));
    match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map_err(|error| {
            CliError::failed(format!("{} holds no name of a factory: {error}", path.display()))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = random_name(pool)?;
            DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(cannot)?;
            std::fs::write(&path, format!("{id}\n")).map_err(cannot)?;
            Ok(id)
        }
        Err(error) => Err(cannot(error)),
    }
}

fn random_name(pool: &PoolName) -> Result<FactoryId, CliError> {
    let random = getrandom::u32().map_err(|error| {
        CliError::failed(format!("the system has no randomness to name a factory by: {error}"))
    })?;
    Ok(format!("{pool}-{random:08x}").parse().expect("the name of a pool and a few digits are an id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_names_itself_keeps_its_name_in_its_folder() {
        let pool: PoolName = "gpu".parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let name = kept_name(&base, &pool).unwrap();
        assert!(name.as_str().starts_with("gpu-"), "{name}");
        assert_eq!(kept_name(&base, &pool).unwrap(), name);
        assert_ne!(kept_name(&folder.path().join("other"), &pool).unwrap(), name);
        std::fs::write(base.join(NAME), "no name\n").unwrap();
        let wrong = kept_name(&base, &pool).unwrap_err().to_string();
        assert!(wrong.contains("factory.name holds no name of a factory"), "{wrong}");
    }

    #[test]
    fn the_longest_name_of_a_pool_fits() {
        let pool: PoolName = "p".repeat(40).parse().unwrap();
        assert_eq!(random_name(&pool).unwrap().as_str().len(), 49);
    }
}
