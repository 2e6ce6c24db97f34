//! One command per type: what it looks at, and what it does to what it finds.

mod artifacts;
mod dispatch;
mod factories;
mod jobs;
mod merges;
mod sweeps;
mod tokens;

pub(super) use artifacts::{Delete as DeleteArtifact, Put as PutArtifact};
pub(super) use dispatch::{Diverged, Lead, MakeOffers, Note, Sent, StepDown};
pub(super) use factories::{Advertise, Deregister, Enroll, Prune, SetFactoryState, StreamLost, Touch};
pub(super) use jobs::{ClaimJob, Hold, Steer, Submit};
pub(super) use merges::{Settle, TakeMerge};
pub(super) use sweeps::{ExpireLeases, Retire, Unblock};
pub(super) use tokens::{IssueToken, RevokeFactoryTokens, RevokeToken, RotateToken, SetFlag};
