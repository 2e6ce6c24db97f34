//! The words of Gigafactory as pure values: ids, stages, jobs, manifests, events, limits.
//!
//! This crate never reads a clock, draws a random number, touches a file or awaits. Whatever it decides
//! follows from its arguments alone, so every store, route, simulation and test can share it.

pub mod artifact;
pub mod capability;
pub mod dispatch;
pub mod event;
pub mod factory;
pub mod flag;
pub mod id;
pub mod job;
pub mod limits;
pub mod manifest;
pub mod run;
pub mod stage;
pub mod time;
pub mod token;
pub mod topic;
pub mod transition;

pub use artifact::{Artifact, ArtifactKey, ArtifactName};
pub use capability::{Capability, CapabilitySet};
pub use dispatch::{Delivery, Leadership, Offer};
pub use event::{Actor, Event, EventKind, NewEvent};
pub use factory::{Factory, FactoryState, Health};
pub use id::{
    ArtifactId, DispatchSeq, Epoch, EventSeq, FactoryId, FeedPos, JobId, NodeId, ProductId, RequestId, Rev,
    Term, TokenId, TopicName, WorkerId,
};
pub use job::{
    Checkpoint, FailReason, Failure, Job, JobKind, JobResult, JobSpec, Lease, Merge, Missed, Priority,
    Settled, SettledHow, State, Target,
};
pub use run::{Run, RunOutcome, RunReport};
pub use stage::Stage;
pub use time::Timestamp;
pub use transition::{
    Command, Holder, HolderAction, MergeOutcome, OperatorAction, Refusal, Transition, Verdict, transition,
};
