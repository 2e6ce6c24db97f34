//! A job as a handler sees it, and how the handler reports a failure.

use std::any::Any;
use std::fmt;
use std::time::{Duration, SystemTime};

use giga_proto::v1;
use tokio_util::sync::CancellationToken;

use crate::Priority;

/// The coordinator cuts error texts there.
const ERROR_CHARS: usize = 4_000;

/// A job, assigned to this worker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Task {
    pub job_id: String,
    pub topic: String,
    /// 1 for the first try. With `job_id` it is the key for "have I done this before".
    pub attempt: u32,
    /// Rises with every grant of the job; of two holders the one with the higher epoch is the right one. Hand it on to
    /// whatever can refuse a stale writer.
    pub epoch: u64,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub created_at: Option<SystemTime>,
    pub(crate) lease: Duration,
    pub(crate) lost: CancellationToken,
}

impl Task {
    /// Cancelled when the job is no longer this worker's. The result will be dropped, so there is no use in going on.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    pub(crate) fn from_wire(assignment: v1::Assignment) -> Self {
        Self {
            priority: Priority::from_wire(assignment.priority()),
            created_at: assignment.created_at.and_then(|time| time.try_into().ok()),
            job_id: assignment.job_id,
            topic: assignment.topic,
            attempt: assignment.attempt,
            epoch: assignment.epoch,
            payload: assignment.payload,
            lease: Duration::from_millis(assignment.lease_ms.into()),
            lost: CancellationToken::new(),
        }
    }
}

/// Why a handler failed. Any error turns into one by `?`; then the job is tried again as its retry policy says.
pub struct JobError {
    text: String,
    permanent: bool,
}

/// Marks an error that no repetition can cure: `.map_err(Permanent)?` sends the job straight to the dead letters.
#[derive(Debug, Clone, Copy)]
pub struct Permanent<E>(pub E);

impl JobError {
    pub fn new(text: impl fmt::Display) -> Self {
        Self { text: text.to_string(), permanent: false }
    }

    pub fn permanent(text: impl fmt::Display) -> Self {
        Self { text: text.to_string(), permanent: true }
    }

    pub(crate) fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::new(format!("the handler panicked: {}", message.unwrap_or("no message")))
    }

    pub(crate) fn into_wire(self) -> v1::Failure {
        let end = self.text.char_indices().nth(ERROR_CHARS).map(|(at, _)| at);
        let mut error = self.text;
        error.truncate(end.unwrap_or(error.len()));
        v1::Failure { error, permanent: self.permanent }
    }
}

/// The error and what caused it, in one line.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Many errors repeat their cause in their own text.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self { text: with_causes(error.into().as_ref()), permanent: false }
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<Permanent<E>> for JobError {
    fn from(Permanent(error): Permanent<E>) -> Self {
        Self { text: with_causes(error.into().as_ref()), permanent: true }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobError").field("text", &self.text).field("permanent", &self.permanent).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(result: Result<(), JobError>) -> v1::Failure {
        result.unwrap_err().into_wire()
    }

    fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
        text.parse()
    }

    #[test]
    fn any_error_is_a_failure_and_a_marked_one_a_permanent_one() {
        let plain = failure(parse("x").map(drop).map_err(JobError::from));
        assert_eq!((plain.error.as_str(), plain.permanent), ("invalid digit found in string", false));
        let marked = failure(parse("x").map(drop).map_err(Permanent).map_err(JobError::from));
        assert_eq!((marked.error.as_str(), marked.permanent), ("invalid digit found in string", true));
        assert!(failure(Err(Permanent("no such address").into())).permanent);
        assert!(!failure(Err("later".into())).permanent);
    }

    #[test]
    fn causes_are_listed_once_each() {
        #[derive(Debug, thiserror::Error)]
        #[error("the mail was not sent")]
        struct Outer(#[source] std::io::Error);
        let outer = Outer(std::io::Error::other("connection refused"));
        assert_eq!(failure(Err(outer.into())).error, "the mail was not sent: connection refused");
        let anyhow = anyhow::Error::msg("disk full").context("not saved");
        assert_eq!(failure(Err(anyhow.into())).error, "not saved: disk full");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ü".repeat(ERROR_CHARS + 1);
        assert_eq!(failure(Err(JobError::new(long))).error.chars().count(), ERROR_CHARS);
    }

    #[test]
    fn a_panic_keeps_its_message() {
        let words: Box<dyn Any + Send> = Box::new("out of ink");
        assert_eq!(JobError::from_panic(words.as_ref()).to_string(), "the handler panicked: out of ink");
        let owned: Box<dyn Any + Send> = Box::new(String::from("out of paper"));
        assert_eq!(JobError::from_panic(owned.as_ref()).to_string(), "the handler panicked: out of paper");
    }
}
