//! `claude -p --output-format stream-json --verbose`.
//!
//! Never trusts `subtype` alone: without an account the result says `success` and `is_error` together.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{Sign, classify, count, dollars, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<Sign> {
    let mut signs: Vec<Sign> = Vec::new();
    match text(event, "/type") {
        Some("system") if text(event, "/subtype") == Some("init") => {
            signs.extend(session(event));
            signs.extend(text(event, "/model").map(|model| Sign::Model(model.to_owned())));
        }
        Some("assistant") => assistant(event, &mut signs),
        Some("rate_limit_event") => signs.extend(rate_limit(event)),
        Some("result") => {
            signs.extend(session(event));
            signs.push(Sign::SessionTotal { tokens: total(event), usd: dollars(event, "/total_cost_usd") });
            if let Some(words) = text(event, "/result") {
                signs.push(Sign::Said(words.to_owned()));
            }
            signs.push(Sign::Ended(ended(event)));
        }
        _ => {}
    }
    signs
}

fn session(event: &Value) -> Option<Sign> {
    text(event, "/session_id").map(|id| Sign::Session(id.to_owned()))
}

fn assistant(event: &Value, signs: &mut Vec<Sign>) {
    signs.push(Sign::Began);
    if let Some(id) = text(event, "/message/id") {
        let usage = event.pointer("/message/usage").unwrap_or(&Value::Null);
        signs.push(Sign::Message { id: id.to_owned(), tokens: of_usage(usage) });
    }
    if let Some(error) = text(event, "/error") {
        signs.push(Sign::Trouble(classify(error)));
    }
    // Words of a helper that the engine started are not the engine's answer.
    let of_helper = text(event, "/parent_tool_use_id").is_some();
    let blocks = event.pointer("/message/content").and_then(Value::as_array).filter(|_| !of_helper);
    let words = blocks.into_iter().flatten().filter_map(|block| text(block, "/text")).next_back();
    signs.extend(words.map(|words| Sign::Said(words.to_owned())));
}

fn of_usage(usage: &Value) -> Tokens {
    Tokens {
        input: count(usage, "/input_tokens") + count(usage, "/cache_creation_input_tokens"),
        cached_input: count(usage, "/cache_read_input_tokens"),
        output: count(usage, "/output_tokens"),
    }
}

/// `modelUsage` counts helpers on other models too; older versions have only `usage`.
fn total(event: &Value) -> Tokens {
    match event.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty()) {
        None => of_usage(event.get("usage").unwrap_or(&Value::Null)),
        Some(models) => models.values().fold(Tokens::default(), |sum, usage| {
            sum.plus(Tokens {
                input: count(usage, "/inputTokens") + count(usage, "/cacheCreationInputTokens"),
                cached_input: count(usage, "/cacheReadInputTokens"),
                output: count(usage, "/outputTokens"),
            })
        }),
    }
}

fn rate_limit(event: &Value) -> Vec<Sign> {
    let status = text(event, "/rate_limit_info/status").unwrap_or_default();
    if !matches!(status, "rejected" | "denied") {
        return Vec::new();
    }
    let which = text(event, "/rate_limit_info/rateLimitType").unwrap_or("unnamed");
    let until = match count(event, "/rate_limit_info/resetsAt") {
        0 => String::new(),
        seconds => format!(", until {seconds} (Unix time)"),
    };
    let words = format!("the account's {which} rate limit is used up{until}");
    let trouble = EngineFailure::passing(FailReason::Infrastructure, words.clone());
    vec![Sign::Note(words), Sign::Trouble(trouble)]
}

fn ended(event: &Value) -> Result<(), EngineFailure> {
    let subtype = text(event, "/subtype").unwrap_or("(no subtype)");
    let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if subtype == "success" && !is_error {
        return Ok(());
    }
    let errors = event.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    let words = match (text(event, "/result"), errors.is_empty()) {
        (Some(words), _) => words.to_owned(),
        (None, false) => errors.join("; "),
        (None, true) => format!("claude ended with {subtype}"),
    };
    Err(match subtype {
        "error_max_budget_usd" | "error_max_turns" => {
            EngineFailure::lasting(FailReason::BudgetExceeded, format!("claude stopped by itself: {subtype}"))
        }
        "error_during_execution" => {
            let cause = classify(&words);
            EngineFailure { retryable: cause.retryable || cause.reason == FailReason::Crash, ..cause }
        }
        _ => classify(&words),
    })
}
