//! OpenAI's Responses, as Codex uses them.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Call, Refused, Request, event, folder_in, list_of, text_of};
use crate::script::{TroubleKind, Turn, Usage};

pub(crate) fn read(body: &Value) -> Request {
    let items = list_of(body, "input");
    // What the model said and called in one go is one turn.
    let is_model = |item: &Value| match text_of(item, "type") {
        "function_call" | "custom_tool_call" | "local_shell_call" | "reasoning" => true,
        _ => text_of(item, "role") == "assistant",
    };
    let mut turn = 0;
    let mut before = false;
    for item in items {
        let now = is_model(item);
        turn += usize::from(now && !before);
        before = now;
    }
    let words = |item: &Value| -> String {
        list_of(item, "content").iter().map(|part| text_of(part, "text")).collect::<Vec<_>>().join("\n")
    };
    Request {
        turn,
        model: text_of(body, "model").to_owned(),
        streams: body["stream"] == true,
        tools: tools_in(list_of(body, "tools"))
            .chain(items.iter().flat_map(|item| tools_in(list_of(item, "tools"))))
            .collect(),
        folder: items.iter().find_map(|item| folder_in(&words(item))),
    }
}

/// They stand in namespaces, or alone. That of a server is kept, as `mcp__giga/save`.
fn tools_in(tools: &[Value]) -> impl Iterator<Item = String> {
    tools.iter().flat_map(|tool| {
        let space = Some(text_of(tool, "name")).filter(|name| name.starts_with("mcp__"));
        let inner = match list_of(tool, "tools") {
            [] => return vec![text_of(tool, "name").to_owned()],
            inner => inner.iter().map(|tool| text_of(tool, "name")),
        };
        match space {
            Some(space) => inner.map(|name| format!("{space}/{name}")).collect(),
            None => inner.map(str::to_owned).collect(),
        }
    })
}

pub(crate) fn whole(request: &Request, turn: &Turn, calls: &[Call]) -> Value {
    response(request, "completed", items(request, turn, calls), turn.usage)
}

fn items(request: &Request, turn: &Turn, calls: &[Call]) -> Vec<Value> {
    let mut items = Vec::new();
    if !turn.say.is_empty() {
        items.push(json!({
            "type": "message", "id": format!("msg_{}", request.turn), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": turn.say, "annotations": [] }],
        }));
    }
    items.extend(calls.iter().map(|call| {
        // What takes text instead of an object is a custom tool.
        if let Value::String(text) = &call.input {
            json!({
                "type": "custom_tool_call", "id": format!("ctc_{}", call.id), "call_id": call.id,
                "name": call.tool, "input": text, "status": "completed",
            })
        } else {
            let (space, name) =
                call.tool.split_once('/').map_or((None, &*call.tool), |(space, name)| (Some(space), name));
            let mut item = json!({
                "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": name,
                "arguments": call.input.to_string(), "status": "completed",
            });
            if let Some(space) = space {
                item["namespace"] = space.into();
            }
            item
        }
    }));
    items
}

fn response(request: &Request, status: &str, output: Vec<Value>, usage: Usage) -> Value {
    let input = usage.input + usage.cache_read;
    json!({
        "id": format!("resp_{}", request.turn), "object": "response", "status": status, "model": request.model,
        "output": output,
        "usage": {
            "input_tokens": input, "input_tokens_details": { "cached_tokens": usage.cache_read },
            "output_tokens": usage.output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + usage.output,
        },
    })
}

pub(crate) fn stream(request: &Request, turn: &Turn, calls: &[Call]) -> (String, String) {
    let created = json!({
        "type": "response.created",
        "response": { "id": format!("resp_{}", request.turn), "object": "response", "status": "in_progress" },
    });
    let items = items(request, turn, calls);
    let mut rest = String::new();
    for (index, item) in items.iter().enumerate() {
        let step = |word: &str| json!({ "type": word, "output_index": index, "item": item });
        rest += &event("response.output_item.added", &step("response.output_item.added"));
        rest += &event("response.output_item.done", &step("response.output_item.done"));
    }
    let done = json!({ "type": "response.completed", "response": response(request, "completed", items, turn.usage) });
    (event("response.created", &created), rest + &event("response.completed", &done))
}

pub(crate) fn refusal(request: &Request, usage: Usage) -> String {
    let item = json!({
        "type": "message", "id": format!("msg_{}", request.turn), "role": "assistant", "status": "completed",
        "content": [{ "type": "refusal", "refusal": "I cannot help with that." }],
    });
    let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
    let whole = json!({ "type": "response.completed", "response": response(request, "completed", vec![item], usage) });
    event("response.output_item.done", &done) + &event("response.completed", &whole)
}

pub(crate) fn more_words(first: bool) -> String {
    let item = json!({ "type": "message", "id": "msg_endless", "role": "assistant", "content": [] });
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": item });
    let delta = json!({
        "type": "response.output_text.delta", "item_id": "msg_endless", "output_index": 0, "content_index": 0,
        "delta": "and so on ",
    });
    let start = if first { event("response.output_item.added", &added) } else { String::new() };
    start + &event("response.output_text.delta", &delta)
}

/// The same for Chat Completions.
pub(crate) fn refused(kind: TroubleKind, now: u64) -> Option<Refused> {
    let (status, word, message) = match kind {
        TroubleKind::SignedOut => (401, "invalid_api_key", "Incorrect API key provided"),
        TroubleKind::RateLimited { .. } => (429, "rate_limit_exceeded", "Rate limit reached for requests"),
        TroubleKind::QuotaExhausted { .. } => {
            (429, "usage_limit_reached", "The usage limit has been reached")
        }
        TroubleKind::Overloaded => (503, "server_is_overloaded", "Our servers are currently overloaded"),
        TroubleKind::ContextTooLong => {
            (400, "context_length_exceeded", "Your input exceeds the context window of this model")
        }
        TroubleKind::Refusal | TroubleKind::Silence | TroubleKind::Endless | TroubleKind::Cut => return None,
    };
    let mut error = json!({ "type": word, "code": word, "message": message });
    let mut headers = Vec::new();
    if let TroubleKind::RateLimited { reset_secs: Some(reset) } = kind {
        headers.push(("retry-after", reset.to_string()));
        error["message"] = format!("{message}. Please try again in {reset}s.").into();
    }
    if let TroubleKind::QuotaExhausted { reset_secs: Some(reset) } = kind {
        error["resets_in_seconds"] = reset.into();
        error["resets_at"] = (now + reset).into();
        headers.extend([
            ("x-codex-primary-used-percent", "100".to_owned()),
            ("x-codex-primary-window-minutes", "300".to_owned()),
            ("x-codex-primary-reset-at", (now + reset).to_string()),
        ]);
    }
    Some(Refused { status: StatusCode::from_u16(status).ok()?, headers, body: json!({ "error": error }) })
}
