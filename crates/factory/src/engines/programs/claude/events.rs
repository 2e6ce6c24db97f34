//! `claude -p --output-format stream-json --verbose --include-partial-messages`.
//!
//! Never trusts `subtype` alone: without an account the result says `success` and `is_error` together. The total of a result
//! covers the session or the run, as it happens to know (seen with 2.1.326: the session, where the operator's own
//! `.claude.json` is from the run before); what was used since the last result covers exactly that.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{LineEvent, classify, count, dollars, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<LineEvent> {
    let mut events: Vec<LineEvent> = Vec::new();
    match text(event, "/type") {
        Some("system") if text(event, "/subtype") == Some("init") => {
            events.extend(session(event));
            events.extend(text(event, "/model").map(|model| LineEvent::Model(model.to_owned())));
        }
        Some("assistant") => assistant(event, &mut events),
        Some("stream_event") => progress(event, &mut events),
        Some("rate_limit_event") => events.extend(rate_limit(event)),
        Some("result") => {
            events.extend(session(event));
            events.push(used(event));
            if let Some(message) = text(event, "/result") {
                events.push(LineEvent::Reply(message.to_owned()));
            }
            events.push(LineEvent::Ended(ended(event)));
        }
        _ => {}
    }
    events
}

fn session(event: &Value) -> Option<LineEvent> {
    text(event, "/session_id").map(|id| LineEvent::Session(id.to_owned()))
}

/// Parts of an answer as they come. What it costs is in the first one, and in the last one before its end.
fn progress(event: &Value, events: &mut Vec<LineEvent>) {
    let (id, usage) = match text(event, "/event/type") {
        Some("message_start") => {
            events.extend([LineEvent::Began, LineEvent::Answered]);
            (text(event, "/event/message/id"), event.pointer("/event/message/usage"))
        }
        Some("message_delta") => (text(event, "/api_message_id"), event.pointer("/event/usage")),
        _ => return,
    };
    if let (Some(id), Some(usage)) = (id, usage) {
        events.push(LineEvent::Message { id: id.to_owned(), tokens: of_usage(usage) });
    }
}

pub(super) fn is_progress(event: &Value) -> bool {
    match text(event, "/type") {
        Some("stream_event") => true,
        Some("system") => text(event, "/subtype") == Some("status"),
        _ => false,
    }
}

fn assistant(event: &Value, events: &mut Vec<LineEvent>) {
    events.push(LineEvent::Began);
    // Its own words about an error are no answer, and cost nothing.
    let is_answer = event.get("is_api_error_message").and_then(Value::as_bool) != Some(true);
    if let Some(id) = text(event, "/message/id").filter(|_| is_answer) {
        let usage = event.pointer("/message/usage").unwrap_or(&Value::Null);
        events.push(LineEvent::Message { id: id.to_owned(), tokens: of_usage(usage) });
    }
    // Words of a helper that the engine started are not the engine's answer.
    let of_helper = text(event, "/parent_tool_use_id").is_some();
    let blocks = event.pointer("/message/content").and_then(Value::as_array).filter(|_| !of_helper);
    let message = blocks.into_iter().flatten().filter_map(|block| text(block, "/text")).next_back();
    if let Some(error) = text(event, "/error") {
        events.push(LineEvent::Error(cause(event, message.unwrap_or(error))));
    }
    if is_answer {
        events.extend(message.map(|message| LineEvent::Reply(message.to_owned())));
    }
}

fn of_usage(usage: &Value) -> Tokens {
    Tokens {
        input: count(usage, "/input_tokens") + count(usage, "/cache_creation_input_tokens"),
        cached_input: count(usage, "/cache_read_input_tokens"),
        output: count(usage, "/output_tokens"),
    }
}

/// By model, which counts helpers on other models too; older versions have only the sum of the session or the run.
fn used(event: &Value) -> LineEvent {
    if let Some(models) = event.get("model_usage_since_last_result").and_then(Value::as_object) {
        let usd = models.values().filter_map(|model| dollars(model, "/costUSD")).sum();
        return LineEvent::RunPart { tokens: by_model(models.values()), usd: Some(usd) };
    }
    let models = event.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    let tokens = match models {
        None => of_usage(event.get("usage").unwrap_or(&Value::Null)),
        Some(models) => by_model(models.values()),
    };
    LineEvent::SessionTotal { tokens, usd: dollars(event, "/total_cost_usd") }
}

fn by_model<'a>(models: impl Iterator<Item = &'a Value>) -> Tokens {
    models.fold(Tokens::default(), |sum, usage| {
        sum.plus(Tokens {
            input: count(usage, "/inputTokens") + count(usage, "/cacheCreationInputTokens"),
            cached_input: count(usage, "/cacheReadInputTokens"),
            output: count(usage, "/outputTokens"),
        })
    })
}

fn rate_limit(event: &Value) -> Vec<LineEvent> {
    let status = text(event, "/rate_limit_info/status").unwrap_or_default();
    if !matches!(status, "rejected" | "denied") {
        return Vec::new();
    }
    let which = text(event, "/rate_limit_info/rateLimitType").unwrap_or("unnamed");
    let message = format!("the account's {which} rate limit is used up");
    let error = EngineFailure::passing(FailReason::OutOfQuota, message.clone());
    let mut events = vec![LineEvent::Note(message), LineEvent::Error(error)];
    let resets_at = count(event, "/rate_limit_info/resetsAt");
    events.extend((resets_at > 0).then_some(LineEvent::ResetsAt(resets_at)));
    events
}

/// By what the event says of the provider's answer, and by its words where it says nothing.
fn cause(event: &Value, message: &str) -> EngineFailure {
    if text(event, "/stop_reason").or_else(|| text(event, "/message/stop_reason")) == Some("refusal") {
        return EngineFailure::lasting(FailReason::Refused, message);
    }
    let status = count(event, "/api_error_status");
    match (text(event, "/api_error"), text(event, "/error"), status) {
        (Some("usage_limit_reached"), ..) => EngineFailure::passing(FailReason::OutOfQuota, message),
        (_, Some("authentication_failed"), _) | (.., 401 | 403) => {
            EngineFailure::passing(FailReason::SignedOut, message)
        }
        (_, Some("billing_error"), _) => EngineFailure::passing(FailReason::OutOfQuota, message),
        (.., 500..) => EngineFailure::passing(FailReason::Infrastructure, message),
        _ => classify(message),
    }
}

fn ended(event: &Value) -> Result<(), EngineFailure> {
    let subtype = text(event, "/subtype").unwrap_or("(no subtype)");
    let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if subtype == "success" && !is_error {
        return Ok(());
    }
    let errors = event.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    let message = match (text(event, "/result"), errors.is_empty()) {
        (Some(message), _) => message.to_owned(),
        (None, false) => errors.join("; "),
        (None, true) => format!("claude ended with {subtype}"),
    };
    Err(match subtype {
        "error_max_budget_usd" | "error_max_turns" => {
            EngineFailure::lasting(FailReason::BudgetExceeded, format!("claude stopped by itself: {subtype}"))
        }
        "error_during_execution" => {
            let cause = cause(event, &message);
            EngineFailure { retryable: cause.retryable || cause.reason == FailReason::Crash, ..cause }
        }
        _ => cause(event, &message),
    })
}
