//! The drivers of pools that this coordinator has.

use std::path::Path;

use giga_drivers::{
    CommandOptions, DriverOptions, KubernetesOptions, ProcessOptions, Setting, drivers as made,
};
use giga_ports::PoolDrivers;

use super::local::handed_on;
use crate::config::{Key, Settings};
use crate::exit::CliError;

/// A factory that is told to stop saves its work first, hands it back and leaves.
const GRACE: std::time::Duration = std::time::Duration::from_secs(45);

pub(super) fn drivers(settings: &Settings, data: &Path) -> Result<PoolDrivers, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find the giga program: {error}")))?;
    // With it their sandboxes know what to hide: the admin's token and the database.
    let mut settings_of_members = vec![Setting { flag: Key::Data.flag(), value: Some(data.into()) }];
    settings_of_members.extend(handed_on(settings));
    let process = ProcessOptions {
        program,
        folder: data.join("pools"),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        settings: settings_of_members,
        grace: GRACE,
    };
    let variable = |name: &str| std::env::var(name).ok();
    let kubernetes =
        KubernetesOptions::from_environment(variable).map_err(|error| CliError::Config(error.reason))?;
    made(DriverOptions { process, command: CommandOptions::default(), kubernetes })
        .map_err(|error| CliError::failed(format!("cannot use the cluster of Kubernetes: {error}")))
}
