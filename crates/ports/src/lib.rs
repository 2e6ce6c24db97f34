//! The traits that the orchestration core asks the world through, and their errors.
//!
//! No driver, no SQL, no HTTP: an implementation lives in its own crate and passes the suite in `giga-testkit`.

pub mod blobs;
pub mod broker;
pub mod clock;
pub mod effects;
pub mod pool_driver;
pub mod secret_keys;
pub mod store;
pub mod topics;

pub use blobs::{Artifacts, BlobError, Logs};
pub use broker::{Broker, BrokerError};
pub use clock::{Clock, Randomness};
pub use effects::{Effects, EffectsError};
pub use pool_driver::{DriverError, PoolDriver, PoolDrivers, StartOrder, StopOrder};
pub use secret_keys::{NoSecretKeys, SecretKey, SecretKeyError, SecretKeyRing, SecretKeys};
pub use store::{Intercept, InterceptReads, Store, StoreError, StoreReads};
pub use topics::{InterceptTopics, TopicStore};
