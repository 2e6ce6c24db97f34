//! The drivers of pools that this coordinator has.

use std::path::Path;

use giga_drivers::{CommandOptions, DriverOptions, KubernetesOptions, ProcessOptions, drivers as made};
use giga_ports::PoolDrivers;

use super::local::handed_on;
use crate::config::Settings;
use crate::exit::CliError;

/// A factory that is told to stop saves its work first.
const GRACE: std::time::Duration = std::time::Duration::from_secs(30);

pub(super) fn drivers(settings: &Settings, data: &Path) -> Result<PoolDrivers, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find the giga program: {error}")))?;
    let process = ProcessOptions {
        program,
        folder: data.join("pools"),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        settings: handed_on(settings),
        grace: GRACE,
    };
    let variable = |name: &str| std::env::var(name).ok();
    let kubernetes = KubernetesOptions::of_this_cluster(variable);
    made(DriverOptions { process, command: CommandOptions::default(), kubernetes })
        .map_err(|error| CliError::failed(format!("cannot use the cluster that this runs in: {error}")))
}
