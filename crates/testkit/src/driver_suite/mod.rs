//! The conformance suite of the drivers of pools. Whatever starts factories passes it.
//!
//! A case is an async function over a world that is a [`DriverFixture`]: a place without factories, and drivers on it as several
//! coordinators would have them. The macro [`driver_conformance!`](crate::driver_conformance) makes a test of each.

pub mod members;

use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::{FactoryId, PoolSettings};
use giga_ports::{PoolDriver, StartOrder, StopOrder};

/// One value is one place; a test makes its own.
#[async_trait]
pub trait DriverFixture: Send + Sync {
    /// As one process of many would have it: nothing of an earlier one is remembered in it.
    fn open(&self) -> Arc<dyn PoolDriver>;

    /// Of a pool of this driver.
    fn settings(&self) -> PoolSettings;

    /// How many of this factory are there, seen without the driver.
    async fn count(&self, factory: &FactoryId) -> usize;

    /// It ends by itself, without anybody telling the driver. Returns when it has.
    async fn end(&self, factory: &FactoryId);
}

/// What a credential of these tests is.
pub const CREDENTIAL: &str = "giga_pool_not-a-real-one";

pub(crate) fn to_start(world: &impl DriverFixture, factory: &str) -> StartOrder {
    StartOrder {
        pool: "gpu".parse().unwrap(),
        settings: world.settings(),
        factory: factory.parse().unwrap(),
        url: "http://127.0.0.1:7717".to_owned(),
        credential: CREDENTIAL.to_owned(),
    }
}

pub(crate) fn to_stop(world: &impl DriverFixture, factory: &str, handle: Option<&str>) -> StopOrder {
    StopOrder {
        pool: "gpu".parse().unwrap(),
        settings: world.settings(),
        factory: factory.parse().unwrap(),
        handle: handle.map(str::to_owned),
    }
}

include!(concat!(env!("OUT_DIR"), "/driver.rs"));
