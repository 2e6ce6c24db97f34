//! Drivers of pools: what starts and stops the factories that the coordinator orders.
//!
//! They never decide how many, know no route of ours, and keep nothing that matters: which factories a pool has, the store
//! knows. What lies in their folders and clusters is found again by the id of the factory.

mod command;
mod kubernetes;
mod process;
mod run;

use std::sync::Arc;

use giga_ports::{DriverError, PoolDriver, PoolDrivers};

pub use command::{CommandDriver, CommandOptions};
pub use kubernetes::{KubernetesDriver, KubernetesOptions, Token};
pub use process::{ProcessDriver, ProcessOptions, Setting};

/// What the drivers of a coordinator need to know of their surroundings.
#[derive(Debug, Clone)]
pub struct DriverOptions {
    pub process: ProcessOptions,
    pub command: CommandOptions,
    /// Where there is a cluster.
    pub kubernetes: Option<KubernetesOptions>,
}

/// All drivers that these surroundings allow. KEDA scales by itself and has none.
pub fn drivers(options: DriverOptions) -> Result<PoolDrivers, DriverError> {
    let mut drivers: Vec<Arc<dyn PoolDriver>> =
        vec![Arc::new(ProcessDriver::new(options.process)), Arc::new(CommandDriver::new(options.command))];
    if let Some(kubernetes) = options.kubernetes {
        drivers.push(Arc::new(KubernetesDriver::new(kubernetes)?));
    }
    Ok(PoolDrivers::new(drivers))
}
