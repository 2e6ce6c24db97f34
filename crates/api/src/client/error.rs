//! What can go wrong between asking and understanding the answer.

use std::time::Duration;

use reqwest::Url;
use thiserror::Error;

use crate::wire::{Problem, ProblemCode};

#[derive(Debug, Error)]
pub enum ClientError {
    /// The coordinator understood the call and refused it.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// Nobody answered. Whether the call took effect is not known, unless no connection was made.
    #[error("cannot reach the coordinator at {url}: {reason}")]
    Unreachable {
        url: String,
        reason: String,
        #[source]
        source: Option<reqwest::Error>,
    },
    /// Somebody answered, but not a coordinator of this version.
    #[error("{url} answered {status} with something that this version does not understand: {reason}")]
    BadAnswer { url: String, status: u16, reason: String },
    #[error("`{url}` is not the address of a coordinator: {reason}")]
    BadUrl { url: String, reason: String },
    /// Nothing was sent.
    #[error("a token is not sent to {url} over plain HTTP: everyone on the way could read it")]
    PlainHttp { url: String },
    #[error("the file of CA certificates has no certificate in it")]
    CaCert,
    /// The token or the product cannot stand in an HTTP header.
    #[error("the {0} has characters that cannot be sent")]
    Unsendable(&'static str),
}

impl ClientError {
    pub(super) fn unreachable(base: &Url, source: reqwest::Error) -> Self {
        let source = source.without_url();
        Self::Unreachable {
            url: base.as_str().trim_end_matches('/').to_owned(),
            reason: root_cause(&source),
            source: Some(source),
        }
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            _ => None,
        }
    }

    /// Nothing was done, and the coordinator says when to try again.
    pub(super) fn asks_to_wait(&self) -> Option<Duration> {
        match self {
            Self::Problem(problem) if problem.status == 429 => {
                problem.retry_after_ms.map(Duration::from_millis)
            }
            _ => None,
        }
    }

    /// The same call may go through later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Problem(problem) => matches!(problem.status, 429 | 503 | 507),
            Self::Unreachable { .. } => true,
            _ => false,
        }
    }
}

/// The last of a chain says what happened ("Connection refused"); the others only say where.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
