//! Gemini's API.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Call, Refused, Request, data, folder_in, list_of, text_of};
use crate::script::{TroubleKind, Turn, Usage};

/// `model` and whether it streams stand in the address.
pub(crate) fn read(body: &Value, model: &str, streams: bool) -> Request {
    let contents = list_of(body, "contents");
    let words = |content: &Value| -> String {
        list_of(content, "parts").iter().map(|part| text_of(part, "text")).collect::<Vec<_>>().join("\n")
    };
    let tools = list_of(body, "tools").iter().flat_map(|tool| list_of(tool, "functionDeclarations"));
    Request {
        turn: contents.iter().filter(|content| text_of(content, "role") == "model").count(),
        model: model.to_owned(),
        streams,
        tools: tools.map(|tool| text_of(tool, "name").to_owned()).collect(),
        folder: contents.iter().find_map(|content| folder_in(&words(content))),
    }
}

pub(crate) fn whole(request: &Request, turn: &Turn, calls: &[Call]) -> Value {
    let mut parts = Vec::new();
    if !turn.say.is_empty() {
        parts.push(json!({ "text": turn.say }));
    }
    parts.extend(
        calls.iter().map(|call| json!({ "functionCall": { "name": call.tool, "args": call.input } })),
    );
    answer(request, parts, "STOP", turn.usage)
}

fn answer(request: &Request, parts: Vec<Value>, finish: &str, usage: Usage) -> Value {
    let input = usage.input + usage.cache_read;
    json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts }, "finishReason": finish }],
        "usageMetadata": {
            "promptTokenCount": input, "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output, "totalTokenCount": input + usage.output,
        },
        "modelVersion": request.model, "responseId": format!("gemini-{}", request.turn),
    })
}

pub(crate) fn stream(request: &Request, turn: &Turn, calls: &[Call]) -> (String, String) {
    (String::new(), data(&whole(request, turn, calls)))
}

/// Side questions want an object: who speaks next, how hard it is, whether it goes in circles.
pub(crate) fn side_answer(request: &Request, usage: Usage) -> Value {
    let object = json!({
        "reasoning": "scripted", "next_speaker": "user", "model_choice": "pro", "complexity_score": 1,
        "complexity_reasoning": "scripted", "unproductive_state_analysis": "scripted",
        "unproductive_state_confidence": 0.0, "confidence": 0.0,
    });
    answer(request, vec![json!({ "text": object.to_string() })], "STOP", usage)
}

pub(crate) fn refusal(request: &Request, usage: Usage) -> String {
    data(&answer(request, Vec::new(), "SAFETY", usage))
}

pub(crate) fn more_words(request: &Request) -> String {
    let part = json!({ "text": "and so on " });
    data(&json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] } }],
        "modelVersion": request.model,
    }))
}

pub(crate) fn refused(kind: TroubleKind, _now: u64) -> Option<Refused> {
    let (status, word, message) = match kind {
        TroubleKind::SignedOut => {
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        }
        TroubleKind::RateLimited { .. } => (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted"),
        TroubleKind::QuotaExhausted { .. } => (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
        TroubleKind::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        TroubleKind::ContextTooLong => {
            (400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed")
        }
        TroubleKind::Refusal | TroubleKind::Silence | TroubleKind::Endless | TroubleKind::Cut => return None,
    };
    let mut details = Vec::new();
    if kind == TroubleKind::SignedOut {
        details.push(
            json!({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID" }),
        );
    }
    let violation = |id: &str| json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{ "quotaId": id }] });
    let retry = |reset: u64| json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{reset}s") });
    match kind {
        TroubleKind::RateLimited { reset_secs } => {
            details.push(violation("GenerateRequestsPerMinutePerProjectPerModel"));
            details.extend(reset_secs.map(retry));
        }
        TroubleKind::QuotaExhausted { reset_secs } => {
            details.push(violation("GenerateRequestsPerDayPerProjectPerModel"));
            details.extend(reset_secs.map(retry));
        }
        _ => {}
    }
    let body = json!({ "error": { "code": status, "message": message, "status": word, "details": details } });
    Some(Refused { status: StatusCode::from_u16(status).ok()?, headers: Vec::new(), body })
}
