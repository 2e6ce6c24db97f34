//! OpenAI's Chat Completions, which most other providers speak too.

use serde_json::{Value, json};

use super::{Call, Request, data, folder_in, list_of, text_of};
use crate::script::{Turn, Usage};

pub(crate) fn read(body: &Value) -> Request {
    let messages = list_of(body, "messages");
    let words = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
            parts.iter().map(|part| text_of(part, "text")).collect::<Vec<_>>().join("\n")
        }
    };
    Request {
        turn: messages.iter().filter(|message| text_of(message, "role") == "assistant").count(),
        model: text_of(body, "model").to_owned(),
        streams: body["stream"] == true,
        tools: list_of(body, "tools")
            .iter()
            .map(|tool| text_of(&tool["function"], "name").to_owned())
            .collect(),
        folder: messages.iter().find_map(|message| folder_in(&words(message))),
    }
}

pub(crate) fn whole(request: &Request, turn: &Turn, calls: &[Call]) -> Value {
    let message = json!({ "role": "assistant", "content": turn.say, "tool_calls": tools(calls) });
    let mut whole = chunk(request, "message", message, Some(stop(calls)));
    whole["object"] = "chat.completion".into();
    whole["usage"] = usage(turn.usage);
    whole
}

fn stop(calls: &[Call]) -> &'static str {
    if calls.is_empty() { "stop" } else { "tool_calls" }
}

fn tools(calls: &[Call]) -> Vec<Value> {
    let tool = |(index, call): (usize, &Call)| {
        json!({
            "index": index, "id": call.id, "type": "function",
            "function": { "name": call.tool, "arguments": call.input.to_string() },
        })
    };
    calls.iter().enumerate().map(tool).collect()
}

fn usage(usage: Usage) -> Value {
    let input = usage.input + usage.cache_read;
    json!({
        "prompt_tokens": input, "prompt_tokens_details": { "cached_tokens": usage.cache_read },
        "completion_tokens": usage.output, "total_tokens": input + usage.output,
    })
}

fn chunk(request: &Request, part: &str, content: Value, finish: Option<&str>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", request.turn), "object": "chat.completion.chunk", "created": 0,
        "model": request.model, "choices": [{ "index": 0, part: content, "finish_reason": finish }],
    })
}

pub(crate) fn stream(request: &Request, turn: &Turn, calls: &[Call]) -> (String, String) {
    let start = data(&chunk(request, "delta", json!({ "role": "assistant", "content": "" }), None));
    let mut rest = String::new();
    if !turn.say.is_empty() {
        rest += &data(&chunk(request, "delta", json!({ "content": turn.say }), None));
    }
    if !calls.is_empty() {
        rest += &data(&chunk(request, "delta", json!({ "tool_calls": tools(calls) }), None));
    }
    (start, rest + &ending(request, stop(calls), turn.usage))
}

fn ending(request: &Request, finish: &str, used: Usage) -> String {
    let mut last = chunk(request, "delta", json!({}), Some(finish));
    last["usage"] = usage(used);
    data(&last) + "data: [DONE]\n\n"
}

pub(crate) fn refusal(request: &Request, used: Usage) -> String {
    let words = chunk(request, "delta", json!({ "refusal": "I cannot help with that." }), None);
    data(&words) + &ending(request, "content_filter", used)
}

pub(crate) fn more_words(request: &Request) -> String {
    data(&chunk(request, "delta", json!({ "content": "and so on " }), None))
}
