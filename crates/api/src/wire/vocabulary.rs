//! Every closed set of words on the wire. What people read for them is the core's.
//!
//! An enum here has its own list of variants: a word that the core adds does not reach outsiders by itself, it is a
//! compile error here first. Words never change; labels may.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// An enum with its words in snake_case. `[of T]` makes it the mirror of an enum of the core, in both directions.
macro_rules! words {
    ($(#[$about:meta])* $name:ident [of $source:ty] { $($(#[$on:meta])* $variant:ident,)+ }) => {
        words! { $(#[$about])* $name { $($(#[$on])* $variant,)+ } }

        impl From<$source> for $name {
            fn from(value: $source) -> Self {
                match value { $(<$source>::$variant => Self::$variant,)+ }
            }
        }

        impl From<$name> for $source {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant,)+ }
            }
        }
    };
    ($(#[$about:meta])* $name:ident { $($(#[$on:meta])* $variant:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[derive(Display, EnumString, IntoStaticStr, VariantArray)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case", const_into_str)]
        pub enum $name { $($(#[$on])* $variant,)+ }

        impl $name {
            pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

            /// The word itself.
            pub const fn as_str(self) -> &'static str {
                self.into_str()
            }
        }
    };
}

words! {
    /// Where a job stands.
    Stage [of domain::Stage] {
        Queued,
        Blocked,
        Assigned,
        Building,
        Review,
        Testing,
        Shipping,
        Shipped,
        Failed,
        DeadLetter,
        Cancelled,
    }
}

impl Stage {
    /// Nothing happens to the job any more.
    pub fn is_terminal(self) -> bool {
        domain::Stage::from(self).is_terminal()
    }

    pub fn phase(self) -> domain::Phase {
        domain::Stage::from(self).phase()
    }

    /// A factory has it.
    pub fn is_held(self) -> bool {
        domain::Stage::from(self).is_held()
    }
}

words! {
    /// Most urgent first.
    Priority [of domain::Priority] { Critical, High, Normal, Low, }
}

words! {
    /// `agent` runs an engine on a factory; `composite` groups its children.
    JobKind [of domain::JobKind] { Agent, Composite, }
}

words! {
    /// Whether a job waits for all of its deps or for any one of them.
    DepsMode [of domain::job::DepsMode] { All, Any, }
}

words! {
    /// Why a run or a job failed. A holder may name those up to `infrastructure`; the others are the coordinator's.
    FailReason [of domain::FailReason] {
        VerifyFailed,
        BudgetExceeded,
        Timeout,
        Crash,
        CapabilityMismatch,
        NoEngine,
        SignedOut,
        OutOfQuota,
        Refused,
        ContextTooLong,
        Secret,
        Infrastructure,
        LeaseExpired,
        Unanswered,
        Rejected,
        DependencyFailed,
        ChildFailed,
        MergeConflict,
        MergeChecksFailed,
        MergeRefused,
        RequestClosed,
    }
}

words! {
    /// Whether the account of an engine takes work; if not, whether time or somebody has to open it.
    #[derive(Default)]
    AccountState [of domain::AccountState] { #[default] Open, OutOfQuota, SignedOut, }
}

words! {
    /// Why a run is not done with an engine that its job prefers.
    EngineNotUsed { Missing, SignedOut, OutOfQuota, }
}

words! {
    /// What a question is: anything, or a request for permission, which is answered with one of its options.
    #[derive(Default)]
    QuestionKind [of domain::QuestionKind] { #[default] Question, Permission, }
}

words! {
    /// What an engine may do without asking, least first.
    Permissions [of domain::Permissions] { Ask, Edit, Commands, All, }
}

words! {
    /// Whether a question is open, or how it was closed. `withdrawn`: its job ended, or goes on without the answer.
    QuestionState { Open, Answered, Defaulted, Expired, Withdrawn, }
}

words! {
    /// How a run ended, or `running`.
    RunOutcome { Running, Succeeded, Failed, Expired, Released, Preempted, Cancelled, }
}

impl From<&domain::RunOutcome> for RunOutcome {
    fn from(outcome: &domain::RunOutcome) -> Self {
        match outcome {
            domain::RunOutcome::Running => Self::Running,
            domain::RunOutcome::Succeeded => Self::Succeeded,
            domain::RunOutcome::Failed { .. } => Self::Failed,
            domain::RunOutcome::Expired => Self::Expired,
            domain::RunOutcome::Released => Self::Released,
            domain::RunOutcome::Preempted => Self::Preempted,
            domain::RunOutcome::Cancelled => Self::Cancelled,
        }
    }
}

words! {
    /// How far the result of a job is on its way into its branch. `sent_back`: it was done again, or failed.
    MergeState { Waiting, Merging, Pushing, Proposed, Merged, SentBack, }
}

words! {
    /// What became of a merge. `unreachable`: nobody knows whether a push arrived; `outrun`: somebody else moved the
    /// branch; `proposed`: it is on the branch of its pull request.
    MergeOutcome { Merged, Conflict, ChecksFailed, Refused, Unreachable, Outrun, Proposed, }
}

words! {
    /// How a result comes into its branch. `rebase`: its own commits, made again on top; `fast_forward`: as it is, where the
    /// branch has not moved.
    MergeStrategy [of domain::job::MergeStrategy] { Merge, Squash, Rebase, FastForward, }
}

words! {
    /// Who moves the branch: the merge queue, or somebody who merges a pull request.
    MergeBy [of domain::job::MergeBy] { Push, PullRequest, }
}

words! {
    /// What a request for changes, or failed checks, on a pull request lead to: an event, or another run with the words.
    MergeFeedback [of domain::job::MergeFeedback] { Events, Changes, }
}

words! {
    /// How far jobs may reach at most: as far as the factory lets them, what it lists, or nothing but the coordinator and
    /// their engine's own hosts.
    NetworkLevel [of domain::NetworkLevel] { Open, List, None, }
}

words! {
    ReviewVerdict [of domain::Verdict] { Approve, RequestChanges, Reject, }
}

words! {
    /// What an operator can do to a job.
    OperatorAction [of domain::OperatorAction] { Ship, Requeue, Reject, Cancel, }
}

words! {
    /// How jobs reach a factory.
    Delivery [of domain::Delivery] { Poll, Shadow, Stream, Broker, SelfSelect, }
}

words! {
    #[derive(Default)]
    Health [of domain::Health] {
        #[default]
        Ok,
        Degraded,
        Down,
    }
}

words! {
    /// A factory that is draining finishes what it holds and is given nothing new.
    FactoryState [of domain::FactoryState] { Active, Draining, }
}

words! {
    /// What a factory has to do: `cancel` stops the run, `preempt` saves a checkpoint and releases the job, `drain`
    /// takes no new jobs, `input` reads what people said, `park` is as `preempt`: a question has been open for too long.
    Directive { Cancel, Preempt, Drain, Input, Park, }
}

words! {
    /// What a person's or program's token may do, least first. `worker` serves topics and reads nothing.
    Role [of domain::token::Role] { Worker, Viewer, Submitter, Operator, Admin, }
}

words! {
    /// Whose token it is.
    TokenKind { User, Factory, }
}

words! {
    /// Who starts and stops the factories of a pool; `keda`: somebody else, who asks how many are wanted.
    PoolDriver [of domain::DriverKind] { Process, Command, Kubernetes, Keda, }
}

words! {
    /// A factory of a pool: on its way, enrolled, or being taken away.
    MemberState [of domain::MemberState] { Starting, Running, Stopping, }
}

words! {
    /// What a pool is doing, or why it starts nothing.
    PoolStatus { Quiet, Working, Starting, Full, Paused, BackingOff, OutOfBudget, }
}

words! {
    /// What a credential of a pool is for: factories enroll with it, or a scaler asks how many are wanted.
    PoolCredentialKind { Enroll, Scaler, }
}

words! {
    /// A role, or `factory` for the token of a factory, `pool` and `scaler` for credentials of a pool.
    TokenRole { Worker, Viewer, Submitter, Operator, Admin, Factory, Pool, Scaler, }
}

impl TokenRole {
    /// Whether a token of this role has the right. That of a factory is for the factory's own calls alone.
    pub fn may(self, right: domain::token::Right) -> bool {
        let role = match self {
            Self::Worker => Role::Worker,
            Self::Viewer => Role::Viewer,
            Self::Submitter => Role::Submitter,
            Self::Operator => Role::Operator,
            Self::Admin => Role::Admin,
            Self::Factory | Self::Pool | Self::Scaler => return false,
        };
        domain::token::Role::from(role).may(right)
    }
}

impl From<Role> for TokenRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Worker => Self::Worker,
            Role::Viewer => Self::Viewer,
            Role::Submitter => Self::Submitter,
            Role::Operator => Self::Operator,
            Role::Admin => Self::Admin,
        }
    }
}

words! {
    /// What a limit is for: a day, a week from Monday or a month by UTC, or all time.
    Period [of domain::Period] { Day, Week, Month, Total, }
}

words! {
    /// `operator` lasts until somebody resumes it, `ceiling` until its period is over or the limit is raised.
    PauseCause { Operator, Ceiling, }
}

words! {
    /// How a message to the world outside stands. One that is `dead` is given up.
    EffectState [of domain::EffectStateName] { Pending, Delivered, Dead, }
}

words! {
    TopicJobState [of domain::topic::TopicStage] { Scheduled, Ready, Running, Done, Dead, }
}

words! {
    AlertCode [of domain::AlertKind] {
        DeadLetters,
        BudgetExhausted,
        FactoryDown,
        MergeConflict,
        EffectsGivenUp,
        NeedsInput,
        NoEligibleFactory,
        Starvation,
        StaleFactory,
        AccountSignedOut,
        AccountOutOfQuota,
        PoolStartFailed,
        BudgetNear,
        BudgetPaused,
        EffectsWaiting,
    }
}

words! {
    /// How bad an alert is, worst first.
    Severity [of domain::Severity] { Critical, Warning, Info, }
}

words! {
    /// What stands in a job's way. Up to `unfit` they are the filters that a factory is held to.
    BlockerCode {
        Draining,
        Stale,
        Down,
        Product,
        Capabilities,
        Repo,
        Quota,
        Seats,
        InUse,
        NotReady,
        Paused,
        Budget,
        Concurrency,
        Offered,
        Excluded,
        Unfit,
        NoFactories,
        Order,
        Pool,
        Preemption,
        Dependency,
        Child,
        Question,
        Review,
        Ship,
        Merge,
        Failed,
    }
}

words! {
    /// What a score is made of; the keys of a product's weights.
    ScoreTerm [of domain::ScoreTerm] {
        #[serde(rename = "capabilityFit")]
        #[strum(serialize = "capabilityFit")]
        CapabilityFit,
        Affinity,
        Load,
        #[serde(rename = "costFit")]
        #[strum(serialize = "costFit")]
        CostFit,
        Health,
        #[serde(rename = "engineFit")]
        #[strum(serialize = "engineFit")]
        EngineFit,
        Starvation,
    }
}

words! {
    RemedyMethod {
        #[serde(rename = "POST")]
        #[strum(serialize = "POST")]
        Post,
        #[serde(rename = "PUT")]
        #[strum(serialize = "PUT")]
        Put,
    }
}

words! {
    /// What programs decide by; each has one status and one title for ever.
    #[derive(Default)]
    ProblemCode {
        InvalidRequest,
        InvalidManifest,
        Unauthenticated,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        RequestTimeout,
        Fenced,
        IllegalTransition,
        ResultMismatch,
        UnseenChanges,
        NotYours,
        QuestionClosed,
        LogGap,
        IdempotencyConflict,
        FactoryExists,
        FactoryInUse,
        NotExpected,
        PoolInUse,
        NoHeartbeat,
        RepoOwned,
        RevMismatch,
        PayloadTooLarge,
        RangeNotSatisfiable,
        UnsupportedMediaType,
        Unroutable,
        TooManyRequests,
        #[default]
        Internal,
        Unavailable,
        StorageFull,
        NoSecret,
        SecretKey,
    }
}

macro_rules! event_type {
    ($($variant:ident = $text:tt, $about:tt;)*) => {
        words! {
            /// See `docs/events.md`; also the SSE event's name.
            EventType [of domain::EventKind] {
                $(#[serde(rename = $text)] #[strum(serialize = $text)] $variant,)*
            }
        }
    };
}

domain::event_kinds!(event_type);

macro_rules! labels {
    ($($name:ident),+) => {
        $(impl $name {
            /// What people read for it.
            pub fn label(self) -> &'static str {
                domain::$name::from(self).label()
            }
        })+
    };
}

labels!(Stage, FailReason, Period, ScoreTerm, AccountState);

#[cfg(test)]
mod tests {
    use super::*;

    /// Outsiders rely on the words; the core's enums have the same ones.
    #[test]
    fn a_word_is_the_same_in_the_core_on_the_wire_and_as_text() {
        macro_rules! same {
            ($($name:ident = $source:ty;)+) => {
                $(for value in $name::ALL.iter().copied() {
                    assert_eq!(serde_json::to_value(value).unwrap(), value.as_str());
                    assert_eq!(value.as_str().parse(), Ok(value));
                    assert_eq!(<$source>::from(value).as_str(), value.as_str());
                    assert_eq!($name::from(<$source>::from(value)), value);
                })+
            };
        }
        same! {
            Stage = domain::Stage;
            Priority = domain::Priority;
            JobKind = domain::JobKind;
            QuestionKind = domain::QuestionKind;
            Permissions = domain::Permissions;
            DepsMode = domain::job::DepsMode;
            FailReason = domain::FailReason;
            ReviewVerdict = domain::Verdict;
            OperatorAction = domain::OperatorAction;
            Delivery = domain::Delivery;
            Health = domain::Health;
            FactoryState = domain::FactoryState;
            Role = domain::token::Role;
            Period = domain::Period;
            EffectState = domain::EffectStateName;
            TopicJobState = domain::topic::TopicStage;
            AlertCode = domain::AlertKind;
            ScoreTerm = domain::ScoreTerm;
            EventType = domain::EventKind;
        }
        assert_eq!(serde_json::to_value(RemedyMethod::Put).unwrap(), RemedyMethod::Put.as_str());
    }

    #[test]
    fn a_token_has_the_role_that_it_was_given() {
        for role in Role::ALL {
            assert_eq!(TokenRole::from(*role).as_str(), role.as_str());
        }
    }
}
