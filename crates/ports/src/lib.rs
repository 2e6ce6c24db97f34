//! The traits that the orchestration core asks the world through, and their errors.
//!
//! No driver, no SQL, no HTTP: an implementation lives in its own crate and passes the suite in `giga-testkit`.

pub mod blobs;
pub mod clock;
pub mod store;

pub use blobs::{Artifacts, BlobError, Logs};
pub use clock::{Clock, Randomness};
pub use store::{Store, StoreError, StoreReads};
