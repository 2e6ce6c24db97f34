//! One command per type: what it looks at, and what it does to what it finds.

mod artifacts;
mod budgets;
mod dispatch;
mod effects;
mod factories;
mod graph;
mod jobs;
mod merges;
mod products;
mod profiles;
mod submit;
mod sweeps;
mod tokens;
mod webhooks;

pub(super) use artifacts::{Delete as DeleteArtifact, Put as PutArtifact};
pub(super) use budgets::{ChangeBudget, EvictJobs};
pub(super) use dispatch::{Diverged, Lead, MakeOffers, Note, Sent, StepDown};
pub(super) use effects::{AddEffect, RetireEffects, ReviveEffect, SettleEffect, TakeEffects};
pub(super) use factories::{Advertise, Deregister, Enroll, Prune, SetFactoryState, StreamLost, Touch};
pub(super) use graph::Reconsider;
pub(super) use jobs::{ClaimJob, Hold, Steer};
pub(super) use merges::{Settle, TakeMerge};
pub(super) use products::{SetProduct, ShareSecret};
pub(super) use profiles::AddProfile;
pub(super) use submit::Submit;
pub(super) use sweeps::{ExpireLeases, Retire};
pub(super) use tokens::{IssueToken, RevokeFactoryTokens, RevokeToken, RotateToken, SetFlag};
pub(super) use webhooks::{AddWebhook, FanOut, RemoveWebhook};
