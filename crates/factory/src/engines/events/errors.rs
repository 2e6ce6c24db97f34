//! From an engine's error message to a reason. Messages are all there is: engines have no common error codes.
//!
//! Only used on what an engine says about itself (an error event, its standard error at the end), never on the text
//! that it writes about the job.

use std::time::Duration;

use giga_domain::FailReason;

use super::super::engine::EngineFailure;

const SIGNED_OUT: [&str; 14] = [
    "not logged in",
    "not authenticated",
    "please run /login",
    "login required",
    "please log in",
    "invalid api key",
    "incorrect api key",
    "missing api key",
    "api key not valid",
    "api_key_invalid",
    "authentication",
    "unauthorized",
    "providerautherror",
    "auth method",
];

/// A window of the account is used up: waiting for a moment does not help.
const OUT_OF_QUOTA: [&str; 12] = [
    "usage limit",
    "usage_limit",
    "hit your limit",
    "hit your session limit",
    "hit your weekly limit",
    "daily quota",
    "quota will reset",
    "exceeded your current quota",
    "insufficient_quota",
    "terminalquotaerror",
    "out of credits",
    "credit balance is too low",
];

/// The provider asks for a moment.
const BUSY: [&str; 8] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "at capacity",
    "resource_exhausted",
    "resource has been exhausted",
];

const BUSY_CODES: [&str; 2] = ["429", "529"];

const CONTEXT: [&str; 9] = [
    "context window",
    "context_window",
    "context length",
    "context_length",
    "contextoverflowerror",
    "maximum context length",
    "prompt is too long",
    "input token count",
    "input is too long",
];

const REFUSED: [&str; 13] = [
    "blocked due to safety",
    "blocked due to recitation",
    "blocked by safety",
    "response was blocked",
    "prompt was blocked",
    "contentfiltererror",
    "content filter",
    "can't help with this",
    "has been flagged",
    "was flagged for possible",
    "policy violation",
    "violate our usage policy",
    "limited access to this content for safety",
];

const NETWORK: [&str; 13] = [
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
    "api error: terminated",
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
    if names(message, &CONTEXT, &[]) {
        EngineFailure::lasting(FailReason::ContextTooLong, message)
    } else if names(message, &REFUSED, &[]) {
        EngineFailure::lasting(FailReason::Refused, message)
    } else if names(message, &OUT_OF_QUOTA, &[]) {
        out_of_quota(message)
    } else if names(message, &BUSY, &BUSY_CODES) {
        EngineFailure::passing(FailReason::Infrastructure, message)
    } else if names(message, &SIGNED_OUT, &["401", "403"]) {
        EngineFailure::passing(FailReason::SignedOut, message)
    } else if names(message, &NETWORK, &["500", "502", "503", "504"]) {
        EngineFailure::passing(FailReason::Infrastructure, message)
    } else if message.to_lowercase().contains("quota") {
        out_of_quota(message)
    } else {
        EngineFailure::lasting(FailReason::Crash, message)
    }
}

/// With the time that the message itself names, if it does.
pub(in super::super) fn out_of_quota(message: &str) -> EngineFailure {
    let resets_in = names_a_wait(message);
    EngineFailure { resets_in, ..EngineFailure::passing(FailReason::OutOfQuota, message) }
}

/// Whether the account refused the run: such a run costs nothing.
pub(in super::super) fn is_account_refusal(failure: &EngineFailure) -> bool {
    let by_reason =
        matches!(failure.reason, FailReason::NoEngine | FailReason::SignedOut | FailReason::OutOfQuota);
    by_reason || names(&failure.detail, &BUSY, &BUSY_CODES)
}

/// A length of time after "in": `try again in 1 day 3 hours 5 minutes`, `resets in 3600s`.
fn names_a_wait(message: &str) -> Option<Duration> {
    let lower = message.to_lowercase();
    let (_, after) = ["again in ", "resets in ", "reset in ", "retry in ", "retry after ", "reset after "]
        .iter()
        .find_map(|mark| lower.split_once(mark))?;
    let mut seconds = 0.0;
    let mut rest = after.trim_start();
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        seconds += number
            * match &rest[..letters] {
                "d" | "day" | "days" => 86_400.0,
                "h" | "hour" | "hours" => 3_600.0,
                "m" | "min" | "minute" | "minutes" => 60.0,
                "s" | "sec" | "second" | "seconds" => 1.0,
                "ms" => 0.001,
                _ => return None,
            };
        rest = rest[letters..].trim_start().trim_start_matches(',').trim_start();
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
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
        use FailReason::{ContextTooLong, Crash, Infrastructure, OutOfQuota, Refused, SignedOut};
        for (message, reason, retryable) in [
            ("Not logged in · Please run /login", SignedOut, true),
            ("unexpected status 401 Unauthorized", SignedOut, true),
            ("FatalAuthenticationError: set an auth method", SignedOut, true),
            ("[API Error: {\"error\":{\"message\":\"API key not valid.\"}}]", SignedOut, true),
            ("You've hit your limit · resets 2pm", OutOfQuota, true),
            ("You’ve hit your usage limit. Try again at 8:05 AM.", OutOfQuota, true),
            ("[API Error: You have exhausted your daily quota on this model.]", OutOfQuota, true),
            ("exceeded retry limit, last status: 429 Too Many Requests", Infrastructure, true),
            ("Selected model is at capacity. Please try a different model.", Infrastructure, true),
            ("API Error: 529 overloaded_error", Infrastructure, true),
            ("stream disconnected before completion", Infrastructure, true),
            ("[API Error: terminated]", Infrastructure, true),
            ("HTTP 503", Infrastructure, true),
            ("Codex ran out of room in the model's context window.", ContextTooLong, false),
            ("The input token count exceeds the maximum number of tokens allowed", ContextTooLong, false),
            ("The model response was blocked due to safety settings.", Refused, false),
            ("This request has been flagged for possible cybersecurity risk.", Refused, false),
            ("Prompt is too long · the request is ~250000 tokens (limit 200000)", ContextTooLong, false),
            ("API Error: Sonnet 4.5 can't help with this. Start a new session", Refused, false),
            ("ContentFilterError: The response was blocked by the provider's content filter", Refused, false),
            ("the model does not exist", Crash, false),
            ("line 4291 is wrong", Crash, false),
        ] {
            let failure = classify(message);
            assert_eq!((failure.reason, failure.retryable), (reason, retryable), "{message}");
        }
    }

    #[test]
    fn when_an_account_opens_again() {
        let quota = |after: &str| classify(&format!("You have exhausted your quota. {after}")).resets_in;
        assert_eq!(quota("Your quota will reset after 3h12m5s."), Some(Duration::from_secs(11_525)));
        assert_eq!(quota("Your quota will reset after 90s."), Some(Duration::from_secs(90)));
        assert_eq!(quota("Your quota will reset after a while."), None);
        assert_eq!(quota("\nSuggested retry after 3600s."), Some(Duration::from_hours(1)), "Gemini CLI");
        assert_eq!(quota(""), None);
    }

    #[test]
    fn waits() {
        for (message, seconds) in [
            ("You've hit your usage limit. Try again in 1 day 3 hours 5 minutes.", Some(97_500)),
            ("usage limit reached, resets in 3600s", Some(3_600)),
            ("usage limit: try again in 2h 5m", Some(7_500)),
            ("usage limit: try again in a while", None),
            ("usage limit: try again in 3 moons", None),
            ("usage limit. Try again later.", None),
        ] {
            assert_eq!(classify(message).resets_in, seconds.map(Duration::from_secs), "{message}");
        }
    }

    #[test]
    fn sessions_of_another_machine() {
        assert!(names_an_unknown_session("No conversation found with session ID: 1234"));
        assert!(names_an_unknown_session("Error: Session not found"));
        assert!(!names_an_unknown_session("file not found"));
    }
}
