//! The append-only history: what happened, from which stage to which, why and by whom.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{EventSeq, FactoryId, FeedPos, JobId, ProductId, Stage, Timestamp, TokenId};

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind { $($(#[$doc])* $variant,)* }

        impl EventKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl FromStr for EventKind {
            type Err = crate::id::IdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(crate::id::IdError {
                        what: "event type",
                        given: text.chars().take(80).flat_map(char::escape_default).collect(),
                        rule: "see docs/events.md for the types",
                    }),
                }
            }
        }
    };
}

event_kinds! {
    Submitted = "job.submitted",
    Unblocked = "job.unblocked",
    /// The scheduler chose a factory.
    Targeted = "job.targeted",
    Assigned = "job.assigned",
    Started = "job.started",
    Checkpointed = "job.checkpointed",
    Reported = "job.reported",
    Failed = "job.failed",
    Retried = "job.retried",
    Released = "job.released",
    LeaseExpired = "job.lease_expired",
    Preempted = "job.preempted",
    DeadLettered = "job.dead_lettered",
    Approved = "job.approved",
    ChangesRequested = "job.changes_requested",
    Rejected = "job.rejected",
    Requeued = "job.requeued",
    Shipped = "job.shipped",
    Cancelled = "job.cancelled",
    FactoryEnrolled = "factory.enrolled",
    /// What it advertises changed: capabilities, repos, seats, health.
    FactoryChanged = "factory.changed",
    FactoryDraining = "factory.draining",
    FactoryResumed = "factory.resumed",
    FactoryDeregistered = "factory.deregistered",
    TokenIssued = "token.issued",
    TokenRevoked = "token.revoked",
    FlagChanged = "flag.changed",
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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
