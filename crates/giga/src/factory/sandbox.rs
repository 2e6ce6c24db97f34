//! The sandbox as the settings want it, with this program as the first process inside.

use giga_factory::sandbox::{InitProgram, NetworkConfig, SandboxConfig};

use crate::config::{Key, Settings};
use crate::exit::CliError;

/// The word that makes this program the first process of a sandbox. It is no command for people, and is looked for before
/// anything else.
pub(crate) const INIT: &str = "sandbox-init";

pub(crate) fn config(settings: &Settings) -> Result<SandboxConfig, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find the giga program: {error}")))?;
    let init = InitProgram { program, args: vec![INIT.into()] };
    let data = settings.data().value;
    Ok(SandboxConfig {
        mode: settings.sandbox_mode()?.value,
        read: settings.sandbox_paths(Key::SandboxRead).value,
        write: settings.sandbox_paths(Key::SandboxWrite).value,
        // The admin token of a coordinator on this machine, and its database.
        hide: vec![data.canonicalize().unwrap_or(data)],
        limits: settings.sandbox_limits()?,
        network: NetworkConfig {
            mode: settings.network_mode()?.value,
            hosts: settings.network_hosts()?.value,
            coordinator: Some(settings.url().value),
        },
        ..SandboxConfig::new(init)
    })
}
