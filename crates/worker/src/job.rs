//! A job as its submitter describes it. Limits are the coordinator's to judge; here is only what shapes the call.

use std::time::{Duration, SystemTime};

use giga_proto::v1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    Critical,
    High,
    #[default]
    Normal,
    Low,
}

impl Priority {
    fn to_wire(self) -> v1::Priority {
        match self {
            Self::Critical => v1::Priority::Critical,
            Self::High => v1::Priority::High,
            Self::Normal => v1::Priority::Normal,
            Self::Low => v1::Priority::Low,
        }
    }

    /// A priority that this version does not know yet is taken as an ordinary one.
    pub(crate) fn from_wire(priority: v1::Priority) -> Self {
        match priority {
            v1::Priority::Critical => Self::Critical,
            v1::Priority::High => Self::High,
            v1::Priority::Unspecified | v1::Priority::Normal => Self::Normal,
            v1::Priority::Low => Self::Low,
        }
    }
}

/// How often a failed job is tried again, and how long the first wait is; it doubles each time, up to an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Tries after the first.
    pub max: u32,
    pub backoff: Duration,
}

/// A job to be enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a job does nothing until it is given to `Client::enqueue`"]
pub struct Job {
    topic: String,
    payload: Vec<u8>,
    priority: Priority,
    run_at: Option<SystemTime>,
    key: Option<String>,
    retry: Option<Retry>,
}

impl Job {
    /// The payload is yours: bytes that come to the handler as they are, at most 256 KiB.
    pub fn new(topic: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        let (topic, payload) = (topic.into(), payload.into());
        Self { topic, payload, priority: Priority::Normal, run_at: None, key: None, retry: None }
    }

    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Not before this time.
    pub fn run_at(mut self, time: SystemTime) -> Self {
        self.run_at = Some(time);
        self
    }

    /// Unique within the topic for as long as the job is kept: enqueueing the same key and payload again is the same job.
    /// With a key, a call whose answer was lost can simply be repeated.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Roughly what it takes on the wire.
    pub(crate) fn size(&self) -> usize {
        self.payload.len() + self.topic.len() + self.key.as_ref().map_or(0, String::len) + 32
    }

    pub(crate) fn into_wire(self) -> v1::NewJob {
        v1::NewJob {
            topic: self.topic,
            payload: self.payload,
            priority: self.priority.to_wire().into(),
            run_at: self.run_at.map(Into::into),
            idempotency_key: self.key.unwrap_or_default(),
            retry: self.retry.map(|retry| v1::Retry {
                max: retry.max,
                backoff_ms: u32::try_from(retry.backoff.as_millis()).unwrap_or(u32::MAX),
            }),
        }
    }
}
