//! From an engine's error message to a reason. Messages are all there is: engines have no common error codes.
//!
//! Only used on what an engine says about itself (an error event, its standard error at the end), never on the text
//! that it writes about the job.

use giga_domain::FailReason;

use super::super::engine::EngineFailure;

const SIGNED_OUT: [&str; 12] = [
    "not logged in",
    "not authenticated",
    "please run /login",
    "login required",
    "please log in",
    "invalid api key",
    "incorrect api key",
    "missing api key",
    "authentication",
    "unauthorized",
    "providerautherror",
    "auth method",
];

/// A window of the account is used up: it opens again, later than an engine waits by itself.
const OUT_OF_QUOTA: [&str; 4] =
    ["usage limit", "usage_limit", "hit your limit", "exceeded your current quota"];

const BUSY: [&str; 7] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "quota",
    "resource_exhausted",
];

const BUSY_CODES: [&str; 2] = ["429", "529"];

const NETWORK: [&str; 12] = [
    "network",
    "connection",
    "connect error",
    "stream disconnected",
    "timed out",
    "timeout",
    "enotfound",
    "econnrefused",
    "econnreset",
    "fetch failed",
    "service unavailable",
    "bad gateway",
];

const UNKNOWN_SESSION: [&str; 7] = [
    "no conversation found",
    "session not found",
    "no rollout found",
    "thread not found",
    "no session found",
    "invalid session identifier",
    "error resuming session",
];

pub(in super::super) fn classify(message: &str) -> EngineFailure {
    if names(message, &OUT_OF_QUOTA, &[]) {
        EngineFailure::passing(FailReason::OutOfQuota, message)
    } else if names(message, &BUSY, &BUSY_CODES) {
        EngineFailure::passing(FailReason::Infrastructure, message)
    } else if names(message, &SIGNED_OUT, &["401", "403"]) {
        EngineFailure::lasting(FailReason::NoEngine, message)
    } else if names(message, &NETWORK, &["500", "502", "503", "504"]) {
        EngineFailure::passing(FailReason::Infrastructure, message)
    } else {
        EngineFailure::lasting(FailReason::Crash, message)
    }
}

/// Whether the account refused the run: such a run costs nothing.
pub(in super::super) fn is_account_refusal(failure: &EngineFailure) -> bool {
    failure.reason == FailReason::NoEngine
        || failure.reason.is_of_the_account()
        || names(&failure.detail, &BUSY, &BUSY_CODES)
}

fn names(message: &str, phrases: &[&str], codes: &[&str]) -> bool {
    let lower = message.to_lowercase();
    phrases.iter().any(|phrase| lower.contains(phrase))
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| codes.contains(&word))
}

/// Sessions live on one machine: a job that moved asks for one that this machine does not have.
pub(in super::super) fn names_an_unknown_session(message: &str) -> bool {
    let lower = message.to_lowercase();
    UNKNOWN_SESSION.iter().any(|phrase| lower.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        use FailReason::{Crash, Infrastructure, NoEngine, OutOfQuota};
        for (message, reason, retryable) in [
            ("Not logged in · Please run /login", NoEngine, false),
            ("unexpected status 401 Unauthorized", NoEngine, false),
            ("FatalAuthenticationError: set an auth method", NoEngine, false),
            ("You've hit your limit · resets 2pm", OutOfQuota, true),
            ("exceeded retry limit, last status: 429 Too Many Requests", Infrastructure, true),
            ("API Error: 529 overloaded_error", Infrastructure, true),
            ("stream disconnected before completion", Infrastructure, true),
            ("HTTP 503", Infrastructure, true),
            ("the model does not exist", Crash, false),
            ("line 4291 is wrong", Crash, false),
        ] {
            let failure = classify(message);
            assert_eq!((failure.reason, failure.retryable), (reason, retryable), "{message}");
        }
    }

    #[test]
    fn sessions_of_another_machine() {
        assert!(names_an_unknown_session("No conversation found with session ID: 1234"));
        assert!(names_an_unknown_session("Error: Session not found"));
        assert!(!names_an_unknown_session("file not found"));
    }
}
