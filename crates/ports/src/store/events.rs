//! The history: of each job, and of the fleet in commit order.

use giga_domain::{Actor, Event, EventSeq, FeedPos, JobId, NewEvent};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! events {
    ($make:ident) => {
        $make! {
            writes EventStore {
                /// An event of the fleet: something was done that has no row of its own here.
                note(Note) -> ();
            }
            reads EventReads {
                job_events(job: JobId, after: EventSeq, limit: usize) -> Vec<Event>;

                /// The fleet-wide feed in commit order. A reader that goes on from the last position it saw misses nothing
                /// and sees nothing twice, also while several writers commit. Positions may be skipped, never reused.
                feed(after: FeedPos, limit: usize) -> Vec<Event>;

                /// Backwards from `before`, or from the end: what happened last comes first.
                history(of: &HistoryOf, before: Option<FeedPos>, limit: usize) -> Vec<Event>;

                /// The last position that a reader can see now.
                feed_head() -> FeedPos;
            }
        }
    };
}
events!(traits);
pub(super) use events;

/// Which part of the history: each is found without looking at the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOf {
    Everything,
    /// Whatever was done with a token of a person or a program.
    People,
    /// What is about no job: tokens, flags, budgets, factories and the like.
    NoJob,
    Job(JobId),
}

impl HistoryOf {
    pub fn includes(self, event: &Event) -> bool {
        match self {
            Self::Everything => true,
            Self::People => matches!(event.actor, Actor::Token(_)),
            Self::NoJob => event.job.is_none(),
            Self::Job(job) => event.job.is_some_and(|(id, _)| id == job),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Note {
    pub event: NewEvent,
    pub actor: Actor,
}
