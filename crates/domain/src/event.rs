//! The append-only history: what happened, from which stage to which, why and by whom.

mod wording;

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
            Submitted = "job.submitted", "A job was submitted; it is queued, or blocked by its deps.";
            Unblocked = "job.unblocked", "Its deps are satisfied; it is queued.";
            Targeted = "job.targeted", "The scheduler offered it to a factory: `factoryId`, `dispatchSeq`.";
            Assigned = "job.assigned", "A claim won: `factoryId`, `leaseEpoch`.";
            Diverged = "job.diverged", "In shadow mode the dispatcher would have sent it elsewhere: `routedTo`, `claimedBy`, `lagMs`.";
            EnginePassedOver = "job.engine_passed_over", "Its run uses another engine than the one that it prefers: `engine`, `model`, `passedOver` (each with `engine`, `reason` and, where it is known, `until`).";
            Started = "job.started", "Its holder began to work.";
            Checkpointed = "job.checkpointed", "Its holder saved a checkpoint, from which the work can be resumed.";
            ArtifactAdded = "job.artifact_added", "Its holder uploaded a file: `artifactId`, `name`, `size`.";
            ArtifactRemoved = "job.artifact_removed", "An operator deleted a file: `artifactId`, `name`.";
            Reported = "job.reported", "Its holder reported success; the gates decided where it goes.";
            Failed = "job.failed", "A failure that is not retried automatically: `reason`, `detail`.";
            Retried = "job.retried", "A failure that is retried: `reason`, `detail`, `readyAt`.";
            AccountClosed = "job.account_closed", "The account of its engine is out of quota or signed out; it is queued again, and no attempt is used: `reason`, `detail`, `readyAt`.";
            Released = "job.released", "Its holder released it; this uses no attempt.";
            Parked = "job.parked", "Its holder released it while a question is open (`question`); it is queued and waits for the answer. This uses no attempt.";
            QuestionAsked = "job.question_asked", "It asks people something: `question`, `kind`, `text`, `options`, `default`, `deadline`.";
            QuestionAnswered = "job.question_answered", "A question has its answer: `question`, `answer`, and `by`; without `by` it is the default, because nobody answered in time.";
            QuestionExpired = "job.question_expired", "Nobody answered a question in time, and it has no default: `question`.";
            MessageSent = "job.message_sent", "Somebody said something to it: `by`, `text`.";
            MessageDelivered = "job.message_delivered", "Its engine was given what people said: `leaseEpoch`, `count`.";
            LeaseExpired = "job.lease_expired", "Its holder (`factoryId`) stopped renewing its lease; the epoch rises and the job is queued again.";
            EvictionAsked = "job.eviction_asked", "Its holder is asked to save a checkpoint and release it: for `forJob`, or because its budget is paused.";
            Preempted = "job.preempted", "It gave its seat to a more urgent job (`forJob`), or its budget was paused; this uses no attempt.";
            DeadLettered = "job.dead_lettered", "No retries are left.";
            ReviewRequested = "job.review_requested", "A review was requested: `quorum`, `reviewers`.";
            Approved = "job.approved", "A reviewer approved: `reviewer`. With the quorum complete it goes on.";
            ChangesRequested = "job.changes_requested", "A reviewer requested changes: `reviewer`. It is queued for another run.";
            Rejected = "job.rejected", "A reviewer or an operator rejected it.";
            Requeued = "job.requeued", "An operator queued it again; its attempts start over.";
            ChildrenDone = "job.children_done", "All children of a composite have shipped; the gates decide where it goes.";
            ChildrenRetried = "job.children_retried", "A composite that failed with a child follows its children again: all of them have shipped or still can.";
            Shipping = "job.shipping", "It is to be merged; see `merge` of the job for how far it is.";
            Shipped = "job.shipped", "It is done: its result, if it has one, is in the branch: `commit`, `into`.";
            MergeStarted = "job.merge_started", "A factory merges the result and checks the merged tree: `factoryId`, `attempt`.";
            MergeChecked = "job.merge_checked", "The merged tree passed its checks and is pushed: `commit`, `tip`, `into`.";
            Merged = "job.merged", "The result is in the branch: `commit`, `into`, `repo` where the job has several, and `note` where its owner should know more.";
            MergeSentBack = "job.merge_sent_back", "It conflicts, or its checks fail on the merged tree; it is done again: `reason`, `detail`.";
            MergeConflict = "job.merge_conflict", "It conflicts, or its checks fail on the merged tree, and it is not done again: `reason`, `detail`.";
            MergeFailed = "job.merge_failed", "The repository refused the merge or could not be reached: `detail`, and `readyAt` where it is tried again.";
            MergeProposed = "job.merge_proposed", "The result is on the branch of its pull request, which is opened or updated: `commit`, `into`, `branch`.";
            RequestOpened = "job.request_opened", "Its pull request is open: `number`, `url`. It waits for somebody to merge it.";
            RequestComment = "job.request_comment", "Somebody said something on its pull request: `by`, `comment`, and `verdict` where it is a review.";
            RequestChecks = "job.request_checks", "The checks of its pull request are done: `passed`, `detail`.";
            RequestClosed = "job.request_closed", "Somebody closed its pull request without merging it: `by`.";
            Cancelled = "job.cancelled", "An operator cancelled it, or its parent ended without it.";
            CostReported = "job.settled_up", "The holder of a cancelled run reported its final cost: `usdMicros`.";
            FactoryEnrolled = "factory.enrolled", "A factory was enrolled: `factoryId`.";
            FactoryChanged = "factory.changed", "A factory changed its capabilities, repos, seats or health, or lost its stream: `factoryId`.";
            FactoryDraining = "factory.draining", "A factory finishes its jobs and takes no new ones: `factoryId`.";
            FactoryResumed = "factory.resumed", "A factory takes jobs again: `factoryId`.";
            FactoryDeregistered = "factory.deregistered", "A factory was removed and its tokens were revoked: `factoryId`.";
            PoolChanged = "pool.changed", "A pool was made or changed: `pool`.";
            PoolRemoved = "pool.removed", "A pool was removed: `pool`.";
            PoolStarting = "pool.starting", "A factory of a pool is being started: `pool`, `factoryId`.";
            PoolJoined = "pool.joined", "A factory of a pool has enrolled: `pool`, `factoryId`, `tookMs` from the order to start it.";
            PoolStartFailed = "pool.start_failed", "A factory of a pool did not start: `pool`, `factoryId`, `detail`, `retryAt`.";
            PoolStopping = "pool.stopping", "A factory of a pool has left or is given up: `pool`, `factoryId`, `detail`.";
            PoolLeft = "pool.left", "Nothing of a factory of a pool is left: `pool`, `factoryId`, and `usdMicros` where its hours cost something.";
            TokenIssued = "token.issued", "A token was issued: `tokenId`, `label`, and `role` or `factoryId`.";
            TokenRenewed = "token.renewed", "A token got another end: `tokenId`, `label`, `expiresAt` (missing: never), and `role` or `factoryId`.";
            TokenRevoked = "token.revoked", "A token was revoked: `tokenId`, `label`, and `role` or `factoryId`.";
            SignedIn = "token.signed_in", "Somebody signed in with the identity provider and got a token: `tokenId`, `label`, `issuer`, `subject`, `role`, `products` (empty: every product), `via` (`page` or `terminal`).";
            TopicPaused = "topic.paused", "A topic was paused: `topic`; all topics where it is missing.";
            TopicResumed = "topic.resumed", "A topic was resumed: `topic`; all topics where it is missing.";
            TopicRetried = "topic.retried", "An operator retried dead topic jobs: `topic`, `count`.";
            LeaderChanged = "dispatch.leader_changed", "Another coordinator is the leader now: `nodeId`, `term`.";
            BudgetChanged = "budget.changed", "A budget was set or corrected: `productId`.";
            BudgetPaused = "budget.paused", "An operator paused a budget: `productId`. No job of the product is started.";
            BudgetResumed = "budget.resumed", "A budget was resumed: `productId`.";
            BudgetExhausted = "budget.exhausted", "A limit is reached: `productId`, `period`, `spentUsdMicros`, `ceilingUsdMicros` (the limit). No job of the product is started until the period ends or the limit is raised.";
            ProductChanged = "product.changed", "A product's share, weights or repositories changed: `productId`.";
            ProfileAdded = "profile.added", "A profile has a new version: `productId`, `name`, `version`.";
            SecretSet = "secret.set", "A secret was set: `productId`, `name`, `version`. No event has its value.";
            SecretRemoved = "secret.removed", "A secret was removed: `productId`, `name`.";
            SecretRekeyed = "secret.rekeyed", "A secret was encrypted again with another key: `productId`, `name`, `keyId`.";
            WebhookAdded = "webhook.added", "A webhook was added: `webhookId`, `url`.";
            WebhookRemoved = "webhook.removed", "A webhook was removed: `webhookId`, `url`.";
            EffectGivenUp = "effect.given_up", "A delivery failed for good: `effectId`, `target`, `detail`.";
            EffectRevived = "effect.revived", "An operator retried a failed delivery: `effectId`.";
            FlagChanged = "flag.changed", "A flag was changed: `name`, `from`, `to`.";
            KeyRotated = "key.rotated", "A signing key was replaced: `name`. What the one before it signed stays good until the next time.";
            Unknown = "event.unknown", "Something that a newer version wrote and this one has no name for, as during an upgrade. Its sentence and data are kept.";
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

/// An event before the store has given it its places in the job's history and in the feed. Made in `wording` alone.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    pub kind: EventKind,
    pub from: Option<Stage>,
    pub to: Option<Stage>,
    /// One line for people.
    pub cause: String,
    pub data: Map<String, Value>,
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
