//! The words of Gigafactory as pure values: ids, stages, jobs, manifests, events, limits.
//!
//! This crate never reads a clock, draws a random number, touches a file or awaits. Whatever it decides
//! follows from its arguments alone, so every store, route, simulation and test can share it.

pub mod account;
pub mod alert;
pub mod artifact;
pub mod backoff;
pub mod budget;
pub mod capability;
pub mod conversation;
pub mod dispatch;
pub mod effect;
pub mod engine;
pub mod event;
pub mod exit;
pub mod factory;
pub mod flag;
pub mod graph;
pub mod id;
pub mod job;
pub mod job_token;
pub mod limits;
pub mod manifest;
mod merge;
pub mod merge_message;
pub mod policy_floor;
pub mod pool;
pub mod product;
pub mod profile;
pub mod rate;
pub mod repo;
pub mod run;
pub mod score;
pub mod secret;
pub mod sign_in;
pub mod stage;
pub mod text;
pub mod time;
pub mod token;
pub mod topic;
pub mod transition;
pub mod usd;
mod word;

pub use account::{Account, AccountState, AccountWindow, ClosedAccounts, ClosedEngine};
pub use alert::{AlertKind, Severity};
pub use artifact::{Artifact, ArtifactKey, ArtifactName};
pub use budget::{Budget, BudgetChange, BudgetSettings, Charge, ChargeHow, Period, Spend};
pub use capability::{Capability, CapabilitySet, UnitsInUse};
pub use conversation::{
    Ask, AskPolicy, Conversation, Message, Permissions, Question, QuestionKind, TalkError,
};
pub use dispatch::{Delivery, Leadership, Offer};
pub use effect::{
    Effect, EffectOutcome, EffectReceiver, EffectState, EffectStateName, EffectTarget, NewEffect, SigningKey,
    Webhook,
};
pub use engine::{Access, Chosen, EngineChoice, EngineHere, EnginePick, EngineUse, NotUsed, PassedOver};
pub use event::{Actor, Event, EventKind, NewEvent};
pub use factory::{Factory, FactoryState, Health};
pub use id::{
    AccountId, ArtifactId, DispatchSeq, EffectId, Epoch, EventSeq, FactoryId, FeedPos, JobId, NodeId,
    PoolName, ProductId, RequestId, Rev, Term, TokenId, TopicName, WebhookId, WorkerId,
};
pub use job::{
    Assumed, Checkpoint, Evict, FailReason, Failure, Job, JobKind, JobResult, JobSpec, Lease, LeaseEnd,
    LeaseEndHow, Merge, MergeState, Missed, Priority, ReviewNote, Setback, Target,
};
pub use job_token::JobToken;
pub use policy_floor::{NetworkLevel, PolicyFloor, TreeLimits};
pub use pool::{DriverKind, Member, MemberState, Pool, PoolError, PoolRecord, PoolSettings, PoolTemplate};
pub use product::{Product, ProductSettings};
pub use profile::{Profile, ProfileContent};
pub use run::{Check, RepoCommit, Run, RunOutcome, RunReport};
pub use score::{PerTerm, ScoreTerm, Weights};
pub use secret::{SealedSecret, Secret, SecretName, SecretPlace, SecretUse};
pub use stage::{PerStage, Phase, Stage, State};
pub use time::Timestamp;
pub use transition::{
    Command, Holder, HolderAction, Judgement, MergeAction, MergeOutcome, OperatorAction, Refusal, Relations,
    RequestChange, RequestNews, Transition, Verdict, transition,
};
pub use usd::Usd;
