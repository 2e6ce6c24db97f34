//! The append-only history: what happened, from which stage to which, why and by whom.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::id::IdError;
use crate::word::words;
use crate::{EventSeq, FactoryId, FeedPos, JobId, ProductId, Stage, Timestamp, TokenId};

/// Calls a macro with every kind of event: its variant, its word and one sentence about it. The wire's enum is made
/// from the same list.
#[macro_export]
macro_rules! event_kinds {
    ($callback:ident) => {
        $callback! {
            Submitted = "job.submitted", "A job was made; it is queued, or blocked by its deps.";
            Unblocked = "job.unblocked", "Its deps are satisfied; it is queued.";
            Targeted = "job.targeted", "The scheduler offered it to a factory: `factoryId`, `dispatchSeq`.";
            Assigned = "job.assigned", "A claim won: `factoryId`, `leaseEpoch`.";
            Diverged = "job.diverged", "In shadow mode the dispatcher would have sent it elsewhere: `routedTo`, `claimedBy`, `lagMs`.";
            Started = "job.started", "Its holder began to work.";
            Checkpointed = "job.checkpointed", "Its holder said where the work can be resumed.";
            ArtifactAdded = "job.artifact_added", "Its holder left a file: `artifactId`, `name`, `size`.";
            ArtifactRemoved = "job.artifact_removed", "An operator removed a file: `artifactId`, `name`.";
            Reported = "job.reported", "Its holder reported success; the gates decided where it goes.";
            Failed = "job.failed", "A failure that is not tried again by itself: `reason`, `detail`.";
            Retried = "job.retried", "A failure that is tried again: `reason`, `detail`, `readyAt`.";
            Released = "job.released", "Its holder gave it back; no attempt is used up.";
            LeaseExpired = "job.lease_expired", "Its holder (`factoryId`) went silent; the epoch rose and the job is queued again.";
            EvictionAsked = "job.eviction_asked", "Its holder is asked to save its work and let go: `forJob`, or its budget is paused.";
            Preempted = "job.preempted", "It gave its seat up for a more urgent job, or its budget was paused; no attempt is used up.";
            DeadLettered = "job.dead_lettered", "Its retries are used up; nobody will try again.";
            ReviewRequested = "job.review_requested", "Somebody asked for a review: `quorum`, `reviewers`.";
            Approved = "job.approved", "A reviewer approved: `reviewer`. With the quorum complete it goes on.";
            ChangesRequested = "job.changes_requested", "A reviewer asked for changes: `reviewer`. It is queued for another run.";
            Rejected = "job.rejected", "A reviewer or an operator rejected it.";
            Requeued = "job.requeued", "An operator gave it another chance; its attempts start over.";
            ChildrenDone = "job.children_done", "All children of a composite have shipped; the gates decide where it goes.";
            Shipped = "job.shipped", "It is done.";
            MergeStarted = "job.merge_started", "A factory carries out the order to merge: `factoryId`, `attempt`.";
            Merged = "job.merged", "The result is merged: `commit`.";
            MergeConflict = "job.merge_conflict", "The result cannot be merged by itself; somebody has to look.";
            MergeFailed = "job.merge_failed", "Merging failed; it is tried again, or given up after many attempts.";
            Cancelled = "job.cancelled", "An operator cancelled it, or its parent ended without it.";
            CostReported = "job.settled_up", "The holder of a cancelled run told what it really cost: `usdMicros`.";
            FactoryEnrolled = "factory.enrolled", "A factory may join: `factoryId`.";
            FactoryChanged = "factory.changed", "A factory advertises something new: capabilities, repos, seats, health; or its stream was lost.";
            FactoryDraining = "factory.draining", "A factory finishes what it holds and takes nothing new.";
            FactoryResumed = "factory.resumed", "A factory takes jobs again.";
            FactoryDeregistered = "factory.deregistered", "A factory is forgotten and its tokens are revoked.";
            TokenIssued = "token.issued", "A token was made: `tokenId`, `label`, and `role` or `factoryId`.";
            TokenRevoked = "token.revoked", "A token ended: `tokenId`, `label`, and `role` or `factoryId`.";
            TopicPaused = "topic.paused", "A gate was closed: `topic`, or everything where it is missing. Nothing is handed out.";
            TopicResumed = "topic.resumed", "A gate was opened: `topic`, or everything where it is missing.";
            TopicRetried = "topic.retried", "An operator gave dead topic jobs another chance: `topic`, `count`.";
            LeaderChanged = "dispatch.leader_changed", "Another coordinator dispatches from here on: `nodeId`, `term`.";
            BudgetChanged = "budget.changed", "A budget was set or corrected: `productId`.";
            BudgetPaused = "budget.paused", "An operator closed a budget: `productId`. Nothing of the product is started.";
            BudgetResumed = "budget.resumed", "A budget is open again: `productId`.";
            BudgetExhausted = "budget.exhausted", "A ceiling is reached: `productId`, `period`, `spentUsdMicros`, `ceilingUsdMicros`. Nothing of the product is started until the period ends or the ceiling rises.";
            ProductChanged = "product.changed", "A product's share, weights or repositories changed: `productId`.";
            ProfileAdded = "profile.added", "A profile has a new version: `productId`, `name`, `version`.";
            WebhookAdded = "webhook.added", "Somebody wants to be told what happens: `webhookId`, `url`.";
            WebhookRemoved = "webhook.removed", "A webhook is gone: `webhookId`, `url`.";
            EffectGivenUp = "effect.given_up", "The world outside could not be told: `effectId`, `target`, `detail`.";
            EffectRevived = "effect.revived", "An operator gave it another chance: `effectId`.";
            FlagChanged = "flag.changed", "A flag has another value: `name`, `from`, `to`.";
        }
    };
}

macro_rules! declare {
    ($($variant:ident = $text:tt, $about:tt;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Display, EnumString, IntoStaticStr, VariantArray)]
        #[strum(const_into_str, parse_err_ty = IdError, parse_err_fn = Self::unknown)]
        pub enum EventKind { $(#[doc = $about] #[strum(serialize = $text)] $variant,)* }

        impl EventKind {
            /// One sentence for the reference in `docs/events.md`.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

event_kinds!(declare);
words!(EventKind, "event type");

/// Who caused it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "lowercase")]
pub enum Actor {
    /// A person or program with a token; the id names the token, it is not the token.
    Token(TokenId),
    Factory(FactoryId),
    /// A reconciler of the coordinator: `reaper`, `dispatcher`, `retention`, …
    System(String),
}

impl Actor {
    pub fn system(name: &str) -> Self {
        Self::System(name.to_owned())
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => write!(f, "token {id}"),
            Self::Factory(id) => write!(f, "factory {id}"),
            Self::System(name) => f.write_str(name),
        }
    }
}

/// An event before the store has given it its places in the job's history and in the feed.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    pub kind: EventKind,
    pub from: Option<Stage>,
    pub to: Option<Stage>,
    /// One line for people.
    pub cause: String,
    pub data: Map<String, Value>,
}

impl NewEvent {
    pub fn new(kind: EventKind, cause: impl Into<String>) -> Self {
        Self { kind, from: None, to: None, cause: cause.into(), data: Map::new() }
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub pos: FeedPos,
    /// `None` for fleet events, which belong to no product: only tokens for every product see them.
    pub product: Option<ProductId>,
    /// The job and the event's place in its history.
    pub job: Option<(JobId, EventSeq)>,
    pub at: Timestamp,
    pub actor: Actor,
    pub kind: EventKind,
    pub from: Option<Stage>,
    pub to: Option<Stage>,
    pub cause: String,
    pub data: Map<String, Value>,
}
