//! The ports of one coordinator, each behind the turnstile: what they do is the product's own code on the shared memory
//! stores, what may go wrong on the way is here. Planted bugs live here too and nowhere else.

mod backend;
mod blobs;
mod broker;
mod budget_audit;
mod outside;
mod repositories;
mod store;
mod topics;

pub(crate) use backend::NodeBackend;
pub(crate) use blobs::NoBlobs;
pub(crate) use broker::{NodeBroker, SeenJobs};
pub(crate) use budget_audit::BudgetAudit;
pub(crate) use outside::NodeEffects;
pub(crate) use repositories::{Branch, Landed, Push, Repositories, conflicts, pass_together};
pub(crate) use store::NodeStore;
pub(crate) use topics::NodeTopics;

use giga_ports::StoreError;

fn cut_off(what: &str) -> StoreError {
    StoreError::Unavailable { reason: format!("simulated: {what} was cut off"), source: None }
}
