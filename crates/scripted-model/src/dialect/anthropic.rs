//! Anthropic's Messages, as Claude Code and opencode use them.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Call, Refused, Request, event, folder_in, list_of, text_of};
use crate::script::{TroubleKind, Turn, Usage};

pub(crate) fn read(body: &Value) -> Request {
    let messages = list_of(body, "messages");
    Request {
        turn: messages.iter().filter(|message| text_of(message, "role") == "assistant").count(),
        model: text_of(body, "model").to_owned(),
        streams: body["stream"] == true,
        tools: list_of(body, "tools").iter().map(|tool| text_of(tool, "name").to_owned()).collect(),
        folder: folder_in(&texts(&body["system"]))
            .or_else(|| messages.iter().find_map(|m| folder_in(&texts(&m["content"])))),
    }
}

/// All words of a text or a list of blocks.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().map(|block| text_of(block, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

pub(crate) fn whole(request: &Request, turn: &Turn, calls: &[Call]) -> Value {
    let mut content = Vec::new();
    if !turn.say.is_empty() {
        content.push(json!({ "type": "text", "text": turn.say }));
    }
    content.extend(
        calls
            .iter()
            .map(|call| json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": call.input })),
    );
    let mut message = head(request, turn.usage, turn.usage.output);
    message["content"] = content.into();
    message["stop_reason"] = stop(calls).into();
    message
}

fn stop(calls: &[Call]) -> &'static str {
    if calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn head(request: &Request, usage: Usage, output: u64) -> Value {
    json!({
        "id": format!("msg_{}", request.turn), "type": "message", "role": "assistant", "model": request.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cache_read, "output_tokens": output,
        },
    })
}

/// The beginning of an answer, and its rest.
pub(crate) fn stream(request: &Request, turn: &Turn, calls: &[Call]) -> (String, String) {
    let start =
        event("message_start", &json!({ "type": "message_start", "message": head(request, turn.usage, 1) }));
    let mut rest = String::new();
    let mut block = |index: usize, start: Value, delta: Value| {
        let steps = [
            ("content_block_start", json!({ "index": index, "content_block": start })),
            ("content_block_delta", json!({ "index": index, "delta": delta })),
            ("content_block_stop", json!({ "index": index })),
        ];
        for (name, mut data) in steps {
            data["type"] = name.into();
            rest += &event(name, &data);
        }
    };
    let said = usize::from(!turn.say.is_empty());
    if said > 0 {
        block(0, json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": turn.say }));
    }
    for (place, call) in calls.iter().enumerate() {
        let tool = json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": {} });
        block(
            said + place,
            tool,
            json!({ "type": "input_json_delta", "partial_json": call.input.to_string() }),
        );
    }
    rest += &ending(stop(calls), turn.usage.output);
    (start, rest)
}

fn ending(stop: &str, output: u64) -> String {
    let delta = json!({
        "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
        "usage": { "output_tokens": output },
    });
    event("message_delta", &delta) + &event("message_stop", &json!({ "type": "message_stop" }))
}

/// What the model says when it declines.
pub(crate) fn refusal(request: &Request, usage: Usage) -> String {
    let start = json!({ "type": "message_start", "message": head(request, usage, 1) });
    event("message_start", &start) + &ending("refusal", usage.output)
}

/// Some of many words.
pub(crate) fn more_words(first: bool) -> String {
    let start =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
    let delta = json!({
        "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "and so on " },
    });
    let start = if first { event("content_block_start", &start) } else { String::new() };
    start + &event("content_block_delta", &delta)
}

pub(crate) fn refused(kind: TroubleKind, now: u64) -> Option<Refused> {
    let (status, word, message) = match kind {
        TroubleKind::SignedOut => (401, "authentication_error", "invalid x-api-key"),
        TroubleKind::RateLimited { .. } => {
            (429, "rate_limit_error", "This request would exceed your rate limit")
        }
        TroubleKind::QuotaExhausted { .. } => (429, "rate_limit_error", "You have reached your usage limit"),
        TroubleKind::Overloaded => (529, "overloaded_error", "Overloaded"),
        TroubleKind::ContextTooLong => {
            (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
        }
        TroubleKind::Refusal | TroubleKind::Silence | TroubleKind::Endless | TroubleKind::Cut => return None,
    };
    let mut headers = Vec::new();
    match kind {
        TroubleKind::RateLimited { reset_secs: Some(reset) } => {
            headers.push(("retry-after", reset.to_string()));
        }
        TroubleKind::QuotaExhausted { reset_secs: Some(reset) } => {
            headers.push(("retry-after", reset.to_string()));
            // As for a subscription, whose window of five hours is used up.
            let at = (now + reset).to_string();
            headers.push(("anthropic-ratelimit-unified-status", "rejected".to_owned()));
            headers.push(("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()));
            headers.push(("anthropic-ratelimit-unified-5h-status", "rejected".to_owned()));
            headers.push(("anthropic-ratelimit-unified-5h-utilization", "1.0".to_owned()));
            headers.push(("anthropic-ratelimit-unified-5h-reset", at.clone()));
            headers.push(("anthropic-ratelimit-unified-reset", at));
        }
        _ => {}
    }
    let body = json!({ "type": "error", "error": { "type": word, "message": message } });
    Some(Refused { status: StatusCode::from_u16(status).ok()?, headers, body })
}
