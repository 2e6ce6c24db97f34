//! Which factory runs which job, and why.
//!
//! Pure: this crate never does I/O, reads a clock or draws randomness; the same input gives the same plan.
//! `plan` is feasible → score → rank → select; `explain` runs the same filters and terms for one job and keeps
//! every answer. It decides, it never applies: whoever applies a placement does so by compare-and-set.

pub mod demand;
pub mod explain;
mod feasible;
mod fits;
mod fleet;
mod order;
pub mod plan;
pub mod policy;
pub mod preempt;
pub mod queue;
pub mod routable;
pub mod scale;
pub mod score;
mod select;
pub mod snapshot;
pub mod summary;

pub use demand::{Demand, PoolDemand, PoolView, demand};
pub use explain::{Blocker, BlockerCode, Explanation, FactoryVerdict, Fix, Remedy, explain};
pub use feasible::{Filter, Rejection, can_run, runs_but_for};
pub use plan::{Placement, Plan, Unplaced, plan, plan_offers};
pub use policy::{Limit, ProductPolicy};
pub use preempt::{Eviction, evictions, preemption_victim};
pub use queue::ReadyQueue;
pub use routable::{MissingCapability, Unroutable, routable};
pub use scale::{Idle, PoolNow, Scale, scale};
pub use score::{Score, Terms};
pub use snapshot::{Earlier, FactoryView, JobView, Policy, RunningJob, Snapshot, Weights};
