//! How a run ended, and what is tried again.

use giga_domain::FailReason;

use super::lease::StopCause;
use crate::engines::EngineFailure;
use crate::workspace::WorkspaceError;

/// What is reported of a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunFailure {
    pub(super) reason: FailReason,
    pub(super) detail: String,
    pub(super) retryable: bool,
}

#[derive(Debug)]
pub(super) enum Ending {
    Succeeded(Box<giga_api::wire::RunReport>),
    Failed(RunFailure),
    Stopped(StopCause),
}

impl RunFailure {
    pub(super) fn new(reason: FailReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), retryable: may_help(reason) }
    }
}

/// Whether the same job, unchanged, may well succeed somewhere else or a little later. A failed verification or a spent
/// budget would only fail and spend again.
const fn may_help(reason: FailReason) -> bool {
    match reason {
        FailReason::Infrastructure
        | FailReason::Crash
        | FailReason::NoEngine
        | FailReason::SignedOut
        | FailReason::OutOfQuota
        | FailReason::CapabilityMismatch
        | FailReason::LeaseExpired => true,
        FailReason::VerifyFailed
        | FailReason::Refused
        | FailReason::ContextTooLong
        | FailReason::Unanswered
        | FailReason::BudgetExceeded
        | FailReason::Secret
        | FailReason::Timeout
        | FailReason::Rejected
        | FailReason::DependencyFailed
        | FailReason::ChildFailed
        | FailReason::MergeConflict
        | FailReason::MergeChecksFailed
        | FailReason::MergeRefused
        | FailReason::RequestClosed => false,
    }
}

impl From<EngineFailure> for RunFailure {
    fn from(failure: EngineFailure) -> Self {
        Self { reason: failure.reason, detail: failure.detail, retryable: failure.retryable }
    }
}

impl From<WorkspaceError> for RunFailure {
    fn from(error: WorkspaceError) -> Self {
        Self { reason: error.fail_reason(), retryable: error.is_retryable(), detail: error.to_string() }
    }
}

impl From<WorkspaceError> for Ending {
    fn from(error: WorkspaceError) -> Self {
        match error {
            // The origin knows of a newer epoch before the lease keeper does.
            WorkspaceError::Superseded { .. } => Self::Stopped(StopCause::LeaseLost),
            other => Self::Failed(other.into()),
        }
    }
}
