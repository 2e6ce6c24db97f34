//! The order to merge a shipped job's result: given out, carried out by a factory, settled.
//!
//! The stage never changes here: a shipped job is shipped, and what its repository makes of it is recorded beside it.

use std::time::Duration;

use super::{Refusal, Transition};
use crate::{FactoryId, Merge, NewEvent, Timestamp, backoff};

/// Whoever ran the job has its repository at hand and goes first.
const HEAD_START: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    Merged {
        commit: String,
    },
    Conflict {
        detail: String,
    },
    /// The origin could not be reached or refused; another attempt may succeed.
    Failed {
        detail: String,
    },
}

pub(super) fn take(
    next: &mut Transition,
    factory: &FactoryId,
    lease: Duration,
    now: Timestamp,
) -> Result<(), Refusal> {
    let attempt = match &next.job.merge {
        Some(Merge::Waiting { attempt, due }) if *due <= now => *attempt,
        Some(Merge::Taken { attempt, until, .. }) if *until <= now => attempt + 1,
        _ => return Err(Refusal::NotClaimable("there is nothing to merge now")),
    };
    let ran_here = next.job.last_factory.as_ref() == Some(factory);
    if !ran_here && now.since(next.job.updated_at) < HEAD_START {
        return Err(Refusal::NotClaimable("the factory that ran the job goes first"));
    }
    next.job.merge = Some(Merge::Taken { attempt, factory: factory.clone(), until: now.plus(lease) });
    next.note(NewEvent::merge_started(factory, attempt));
    Ok(())
}

pub(super) fn settle(
    next: &mut Transition,
    factory: &FactoryId,
    attempt: u32,
    outcome: &MergeOutcome,
    now: Timestamp,
) -> Result<(), Refusal> {
    match (&next.job.merge, outcome) {
        // The same words again, after a lost reply.
        (Some(Merge::Done { commit: known }), MergeOutcome::Merged { commit }) if known == commit => {
            return Ok(());
        }
        (Some(Merge::Conflict { .. }), MergeOutcome::Conflict { .. }) => return Ok(()),
        (Some(Merge::Taken { attempt: taken, factory: by, .. }), _) if *taken == attempt && by == factory => {
        }
        _ => return Err(Refusal::NotClaimable("the order is not this factory's to settle")),
    }
    match outcome {
        MergeOutcome::Merged { commit } => {
            next.job.merge = Some(Merge::Done { commit: commit.clone() });
            next.note(NewEvent::merged(commit));
        }
        MergeOutcome::Conflict { detail } => {
            next.job.merge = Some(Merge::Conflict { detail: detail.clone() });
            next.note(NewEvent::merge_conflict(detail));
        }
        MergeOutcome::Failed { detail } if attempt >= ATTEMPTS => {
            next.job.merge = Some(Merge::Failed { detail: detail.clone() });
            next.note(NewEvent::merge_failed(attempt, true, detail));
        }
        MergeOutcome::Failed { detail } => {
            let pause = backoff::doubling(FIRST_PAUSE, attempt, LONGEST_PAUSE);
            next.job.merge = Some(Merge::Waiting { attempt: attempt + 1, due: now.plus(pause) });
            next.note(NewEvent::merge_failed(attempt, false, detail));
        }
    }
    Ok(())
}
