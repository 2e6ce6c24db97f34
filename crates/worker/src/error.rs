//! What can go wrong between us and the coordinator. The texts name the remedy where there is one, and never the token.

use thiserror::Error;
use tonic::{Code, Status};

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Something that the caller set is not usable. Nothing was sent.
    #[error("{field}: {problem}")]
    Setting { field: &'static str, problem: String },

    /// There is nobody at that address, or no secure connection to them.
    #[error("cannot connect to the coordinator at {url}; is it running, and is this its address?")]
    Connect { url: String, source: tonic::transport::Error },

    /// The coordinator understood the call and refused it; the same call would be refused again.
    #[error("the coordinator refused {call}: {message} ({code})")]
    Refused { call: &'static str, code: Code, message: String },

    /// The call did not get through, or not back; it may work later.
    #[error("{call} did not reach the coordinator or its answer was lost: {message} ({code})")]
    Unavailable { call: &'static str, code: Code, message: String },
}

impl Error {
    /// Whether the same call may work later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Unavailable { .. })
    }

    pub(crate) fn setting(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting { field, problem: problem.into() }
    }

    pub(crate) fn from_status(call: &'static str, status: &Status) -> Self {
        let (code, message) = (status.code(), status.message().to_owned());
        if is_final(code) {
            Self::Refused { call, code, message }
        } else {
            Self::Unavailable { call, code, message }
        }
    }
}

/// Whether a repetition of the same call would get the same answer. A broken connection shows as several of the others
/// (unavailable, unknown, cancelled, internal), so what is listed here is only what the coordinator itself decides.
pub(crate) fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::Unauthenticated
            | Code::PermissionDenied
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
    )
}
