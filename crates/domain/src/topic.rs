//! Topic jobs: plain work for handlers in other people's processes, and the one function that moves them.
//!
//! ```text
//!   enqueue ──▶ scheduled ──due──▶ ready ──claim──▶ running ──success──▶ done
//!                   ▲                ▲                │ │ │
//!                   └──── failure, tries left ────────┘ │ └─ failure, none left ──▶ dead
//!                                    └── release, lease ended (tries left) ┘          │
//!                                    └────────────────── operator: retry ─────────────┘
//! ```
//!
//! A claim and the end of a lease raise the epoch; a holder's word counts only with the current one. The stores write
//! the two hot steps (claim, success) set-wise; the conformance suite holds them to [`step`].

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::job::RetryPolicy;
use crate::word::words;
use crate::{Epoch, JobId, Priority, ProductId, Timestamp, TopicName, WorkerId};

/// The retries of a job that sets none: soon, and not for ever.
pub const DEFAULT_RETRY: RetryPolicy = RetryPolicy { max: 5, backoff_ms: 1_000 };

/// A topic belongs to a product; two products may use the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicKey {
    pub product: ProductId,
    pub topic: TopicName,
}

impl fmt::Display for TopicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.product, self.topic)
    }
}

words! {
    "state",
    pub enum TopicStage {
        Scheduled,
        Ready,
        Running,
        Done,
        Dead,
    }
}

impl TopicStage {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Dead)
    }
}

/// A stage together with what only that stage has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicState {
    Scheduled { due: Timestamp },
    Ready,
    Running { worker: WorkerId, until: Timestamp },
    Done { at: Timestamp },
    Dead { at: Timestamp },
}

impl TopicState {
    pub const fn stage(&self) -> TopicStage {
        match self {
            Self::Scheduled { .. } => TopicStage::Scheduled,
            Self::Ready => TopicStage::Ready,
            Self::Running { .. } => TopicStage::Running,
            Self::Done { .. } => TopicStage::Done,
            Self::Dead { .. } => TopicStage::Dead,
        }
    }
}

/// The part of a topic job that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicHead {
    pub state: TopicState,
    pub epoch: Epoch,
    /// Failed attempts. Releases do not count.
    pub attempts: u32,
    pub retry: RetryPolicy,
    /// Of the last failed attempt.
    pub last_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicJob {
    pub id: JobId,
    pub key: TopicKey,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub idempotency_key: Option<String>,
    pub created_at: Timestamp,
    pub head: TopicHead,
}

/// What the holder says became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Failure {
        error: String,
        retryable: bool,
    },
    /// Released untouched; this uses no attempt.
    Release,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicCommand {
    Claim {
        worker: WorkerId,
        lease: Duration,
    },
    Settle {
        epoch: Epoch,
        outcome: Outcome,
    },
    Renew {
        epoch: Epoch,
        lease: Duration,
    },
    /// The lease has ended.
    Expire,
    /// The time has come.
    Promote,
    /// An operator retries a dead job; its attempts start over.
    Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TopicRefusal {
    #[error("fenced: epoch {given} does not hold the job, which is {stage} at epoch {current}")]
    Fenced { given: Epoch, current: Epoch, stage: TopicStage },
    #[error("the job is {0}")]
    NotNow(TopicStage),
}

/// The first state of a new job.
pub fn first_state(run_at: Option<Timestamp>, now: Timestamp) -> TopicState {
    match run_at {
        Some(due) if due > now => TopicState::Scheduled { due },
        _ => TopicState::Ready,
    }
}

/// What becomes of the job. A holder's word that was heard before changes nothing and is no error; another word than
/// the one that was heard is.
pub fn step(head: &TopicHead, command: &TopicCommand, now: Timestamp) -> Result<TopicHead, TopicRefusal> {
    let mut next = head.clone();
    let stage = head.state.stage();
    match (command, &head.state) {
        (TopicCommand::Claim { worker, lease }, TopicState::Ready) => {
            next.epoch = head.epoch.next();
            next.state = TopicState::Running { worker: worker.clone(), until: now.plus(*lease) };
        }
        (TopicCommand::Settle { epoch, .. } | TopicCommand::Renew { epoch, .. }, _)
            if *epoch != head.epoch =>
        {
            return Err(TopicRefusal::Fenced { given: *epoch, current: head.epoch, stage });
        }
        (TopicCommand::Settle { outcome, .. }, TopicState::Running { .. }) => settle(&mut next, outcome, now),
        // The epoch is the last holder's and nobody holds the job: perhaps it reported this before.
        (TopicCommand::Settle { outcome, .. }, _) if was_reported(head, outcome) => {}
        (TopicCommand::Renew { lease, .. }, TopicState::Running { worker, until }) => {
            let until = (*until).max(now.plus(*lease));
            next.state = TopicState::Running { worker: worker.clone(), until };
        }
        (TopicCommand::Settle { epoch, .. } | TopicCommand::Renew { epoch, .. }, _) => {
            return Err(TopicRefusal::Fenced { given: *epoch, current: head.epoch, stage });
        }
        (TopicCommand::Expire, TopicState::Running { worker, until }) if *until <= now => {
            next.epoch = head.epoch.next();
            let error = format!("{worker} did not renew its lease in time");
            use_up_attempt(&mut next, error, TopicState::Ready, now);
        }
        (TopicCommand::Promote, TopicState::Scheduled { due }) if *due <= now => {
            next.state = TopicState::Ready;
        }
        (TopicCommand::Retry, TopicState::Dead { .. }) => {
            next.state = TopicState::Ready;
            next.attempts = 0;
        }
        _ => return Err(TopicRefusal::NotNow(stage)),
    }
    Ok(next)
}

/// Whether the last holder's word could have brought the job, which nobody holds, to where it is. A failure is still
/// known after the job became ready again, because its time came or an operator gave it another chance.
fn was_reported(head: &TopicHead, outcome: &Outcome) -> bool {
    if head.epoch == Epoch::ZERO {
        return false;
    }
    match (outcome, head.state.stage()) {
        (Outcome::Success, TopicStage::Done) | (Outcome::Release, TopicStage::Ready) => true,
        (Outcome::Failure { .. }, TopicStage::Scheduled | TopicStage::Ready | TopicStage::Dead) => {
            head.last_error.is_some()
        }
        _ => false,
    }
}

fn settle(next: &mut TopicHead, outcome: &Outcome, now: Timestamp) {
    match outcome {
        Outcome::Success => next.state = TopicState::Done { at: now },
        Outcome::Release => next.state = TopicState::Ready,
        Outcome::Failure { error, retryable: true } => {
            let again = TopicState::Scheduled { due: now.plus(next.retry.backoff(next.attempts + 1)) };
            use_up_attempt(next, error.clone(), again, now);
        }
        Outcome::Failure { error, retryable: false } => {
            next.attempts += 1;
            next.last_error = Some(error.clone());
            next.state = TopicState::Dead { at: now };
        }
    }
}

fn use_up_attempt(next: &mut TopicHead, error: String, again: TopicState, now: Timestamp) {
    next.attempts += 1;
    next.last_error = Some(error);
    next.state = if next.retry.exhausted(next.attempts) { TopicState::Dead { at: now } } else { again };
}
