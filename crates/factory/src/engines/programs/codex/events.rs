//! `codex exec --json`.
//!
//! An `error` event is no end: Codex tells of lost connections that it then gets over. Only `turn.failed` is final.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{LineEvent, classify, count, out_of_quota, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<LineEvent> {
    match text(event, "/type") {
        Some("thread.started") => {
            text(event, "/thread_id").map(|id| LineEvent::Session(id.to_owned())).into_iter().collect()
        }
        Some("turn.started") => vec![LineEvent::Began],
        // The usage is that of the whole thread, what a resumed one brought along included.
        Some("turn.completed") => {
            vec![LineEvent::SessionTotal { tokens: usage(&event["usage"]), usd: None }, LineEvent::Completed]
        }
        Some("turn.failed") => {
            let message = text(event, "/error/message").unwrap_or("the turn failed");
            vec![LineEvent::Ended(Err(classify(message)))]
        }
        Some("error") => {
            text(event, "/message").map(|message| LineEvent::Error(classify(message))).into_iter().collect()
        }
        Some("item.completed") => item(event),
        _ => Vec::new(),
    }
}

fn usage(usage: &Value) -> Tokens {
    let cached_input = count(usage, "/cached_input_tokens");
    Tokens {
        input: count(usage, "/input_tokens").saturating_sub(cached_input),
        cached_input,
        // Reasoning is part of it.
        output: count(usage, "/output_tokens"),
    }
}

/// A line of `sessions/…/rollout-*.jsonl`, as 0.169 writes it.
pub(super) fn read_journal(entry: &Value) -> Vec<LineEvent> {
    let payload = &entry["payload"];
    match (text(entry, "/type"), text(payload, "/type")) {
        (Some("turn_context"), _) => {
            text(payload, "/model").map(|model| LineEvent::Model(model.to_owned())).into_iter().collect()
        }
        (Some("token_usage_record"), _) => {
            let Some(id) = text(payload, "/response_id") else { return Vec::new() };
            let tokens = usage(&payload["usage"]);
            let before = usage(&payload["thread_token_usage"]).less(tokens);
            // Helpers have threads of their own, each with answers that it counts from nothing.
            let id = format!("{} {id}", text(payload, "/thread_id").unwrap_or_default());
            vec![LineEvent::SessionBefore(before), LineEvent::Response { id, model: None, tokens }]
        }
        (Some("event_msg"), Some("token_count")) => windows(&payload["rate_limits"]),
        (Some("event_msg"), Some("task_complete")) => {
            let message = text(payload, "/error/message").unwrap_or("the turn failed");
            error_code(&payload["error"]).and_then(|code| by_code(code, message)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Of the windows that are used up, when each opens again.
fn windows(limits: &Value) -> Vec<LineEvent> {
    let window = |name: &str| {
        let used = limits.pointer(&format!("/{name}/used_percent")).and_then(Value::as_f64)?;
        let unix_seconds = count(limits, &format!("/{name}/resets_at"));
        (used >= 100.0 && unix_seconds > 0).then_some(LineEvent::ResetsAt(unix_seconds))
    };
    ["primary", "secondary"].into_iter().filter_map(window).collect()
}

/// A word, or an object with the word as its only key.
fn error_code(error: &Value) -> Option<&str> {
    let code = error.get("codex_error_info")?;
    code.as_str().or_else(|| code.as_object()?.keys().next().map(String::as_str))
}

fn by_code(code: &str, message: &str) -> Option<LineEvent> {
    let failure = match code {
        "usage_limit_exceeded" | "quota_exceeded" => out_of_quota(message),
        "server_overloaded" | "policy_capacity_unavailable" | "internal_server_error" => {
            EngineFailure::passing(FailReason::Infrastructure, message)
        }
        "http_connection_failed"
        | "connection_failed"
        | "response_stream_failed"
        | "response_stream_connection_failed"
        | "response_stream_disconnected" => EngineFailure::passing(FailReason::Infrastructure, message),
        "context_window_exceeded" => EngineFailure::lasting(FailReason::ContextTooLong, message),
        "unauthorized" | "usage_not_included" => EngineFailure::passing(FailReason::SignedOut, message),
        "cyber_policy" | "bio_policy" | "misalignment_policy_violation" | "content_policy_violation" => {
            EngineFailure::lasting(FailReason::Refused, message)
        }
        _ => return None,
    };
    Some(LineEvent::Error(failure))
}

fn item(event: &Value) -> Vec<LineEvent> {
    // Earlier versions wrote `item_type`.
    let kind = text(event, "/item/type").or_else(|| text(event, "/item/item_type"));
    let sign = match kind {
        Some("agent_message" | "assistant_message") => {
            text(event, "/item/text").map(|message| LineEvent::Reply(message.to_owned()))
        }
        Some("error") => text(event, "/item/message").map(|message| LineEvent::Note(message.to_owned())),
        Some("reasoning") => Some(LineEvent::Answered),
        // Commands, edits.
        _ => Some(LineEvent::Acted),
    };
    sign.into_iter().collect()
}
