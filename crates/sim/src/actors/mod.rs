//! Who takes part. Each actor runs until the simulation ends, draws from a source of its own, and knows the others only
//! through calls that may be lost.

mod coordinator;
mod factory;
mod holder;
mod merger;
mod operator;
mod provider;
mod reader;
mod session;
mod submitter;
mod topics;

pub(crate) use coordinator::Cluster;
pub(crate) use factory::Host;
pub(crate) use operator::Operator;
pub(crate) use provider::{Accounts, Provider};
pub(crate) use reader::Reader;
pub(crate) use submitter::Submitter;
pub(crate) use topics::{Producer, Worker};

use std::time::Duration;

use crate::prng::Prng;

async fn nap(prng: &mut Prng, low_ms: u64, high_ms: u64) {
    tokio::time::sleep(Duration::from_millis(prng.between(low_ms, high_ms))).await;
}
