//! Drivers of pools: what starts and stops factories that come and go with the work.
//!
//! A driver does what it is told and remembers nothing: which factories a pool has, the store knows. Everything is asked for
//! again after a crash, so every call may come twice: to start what was started is to answer the same, and to stop what
//! is gone is fine.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use giga_domain::{DriverKind, FactoryId, PoolName, PoolSettings};
use thiserror::Error;

/// Why a factory could not be started or stopped, in words for the operator.
#[derive(Debug, Error)]
#[error("{reason}")]
pub struct DriverError {
    pub reason: String,
    /// The same call may go through later: the cluster does not answer, the host is out of memory. Otherwise somebody has
    /// to change something: the program is not there, the credential may not.
    pub transient: bool,
}

impl DriverError {
    pub fn transient(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), transient: true }
    }

    pub fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), transient: false }
    }
}

/// A factory to be started.
#[derive(Clone)]
pub struct StartOrder {
    pub pool: PoolName,
    pub settings: PoolSettings,
    /// Which one: the same id is the same order.
    pub factory: FactoryId,
    /// Where it finds the coordinator.
    pub url: String,
    /// What it enrols with, good for this factory and a short time. Never in an argument or a log.
    pub credential: String,
}

impl StartOrder {
    /// The words behind `giga factory run` that every driver gives its factories. The credential is in the environment,
    /// [`CREDENTIAL_VARIABLE`], or in a file.
    pub fn arguments(&self) -> Vec<String> {
        let mut words: Vec<String> = ["--pool", self.pool.as_str(), "--id", self.factory.as_str()]
            .into_iter()
            .chain(["--url", &self.url, "--seats"])
            .map(str::to_owned)
            .collect();
        words.push(self.settings.seats.to_string());
        for capability in Vec::<String>::from(self.settings.capabilities.clone()) {
            words.extend(["--capability".to_owned(), capability]);
        }
        if let Some(cost) = self.settings.cost_per_hour {
            words.extend(["--cost-per-hour".to_owned(), format!("{cost:#}")]);
        }
        words.extend(self.settings.args.iter().cloned());
        words
    }
}

/// The variable in which a factory of a pool finds its credential.
pub const CREDENTIAL_VARIABLE: &str = "GIGA_POOL_TOKEN";

impl std::fmt::Debug for StartOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartOrder")
            .field("pool", &self.pool)
            .field("factory", &self.factory)
            .finish_non_exhaustive()
    }
}

/// A factory to be taken away. It has left, or never came, or was given up; it holds nothing.
#[derive(Debug, Clone)]
pub struct StopOrder {
    pub pool: PoolName,
    pub settings: PoolSettings,
    pub factory: FactoryId,
    /// What the start answered, where it did.
    pub handle: Option<String>,
}

#[async_trait]
pub trait PoolDriver: Send + Sync {
    fn kind(&self) -> DriverKind;

    /// Answers when the start was accepted, not when the factory is there; with what it will know it by.
    async fn start(&self, order: &StartOrder) -> Result<String, DriverError>;

    /// Answers when nothing of it is left, or when nothing of it can be reached from here any more.
    async fn stop(&self, order: &StopOrder) -> Result<(), DriverError>;

    /// Whether what was started is still there: one that is gone need not be waited for. `None`: it cannot tell.
    async fn is_alive(&self, order: &StopOrder) -> Result<Option<bool>, DriverError>;
}

/// The drivers that this process has.
#[derive(Clone, Default)]
pub struct PoolDrivers {
    drivers: BTreeMap<DriverKind, Arc<dyn PoolDriver>>,
    url: Arc<OnceLock<String>>,
}

impl PoolDrivers {
    pub fn new(drivers: impl IntoIterator<Item = Arc<dyn PoolDriver>>) -> Self {
        let drivers = drivers.into_iter().map(|driver| (driver.kind(), driver)).collect();
        Self { drivers, url: Arc::default() }
    }

    pub fn get(&self, kind: DriverKind) -> Option<&Arc<dyn PoolDriver>> {
        self.drivers.get(&kind)
    }

    /// Where factories of this host find the coordinator, once it listens; for pools that name no address.
    pub fn listening_at(&self, url: String) {
        let _ = self.url.set(url);
    }

    pub fn url(&self) -> Option<&str> {
        self.url.get().map(String::as_str)
    }
}

impl std::fmt::Debug for PoolDrivers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.drivers.keys()).finish()
    }
}
