//! `gemini -o stream-json`.
//!
//! Some failures (no account, bad settings) happen before the first event and show in the exit status only.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{LineEvent, classify, count, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<LineEvent> {
    match text(event, "/type") {
        Some("init") => {
            let session = text(event, "/session_id").map(|id| LineEvent::Session(id.to_owned()));
            let model = text(event, "/model").map(|model| LineEvent::Model(model.to_owned()));
            session.into_iter().chain(model).collect()
        }
        Some("message") if text(event, "/role") == Some("assistant") => {
            let message = text(event, "/content").unwrap_or_default().to_owned();
            let goes_on = event.get("delta").and_then(Value::as_bool).unwrap_or(false);
            vec![if goes_on { LineEvent::ReplyPart(message) } else { LineEvent::Reply(message) }]
        }
        // The text so far led to a tool and was not the answer.
        Some("tool_use") => vec![LineEvent::Reply(String::new()), LineEvent::Acted],
        Some("error") => {
            let message = text(event, "/message").unwrap_or("an error without a message");
            if let Some(failure) = stopped_by_itself(message) {
                vec![LineEvent::Spoiled(failure)]
            } else if text(event, "/severity") == Some("error") {
                vec![LineEvent::Error(classify(message))]
            } else {
                vec![LineEvent::Note(message.to_owned())]
            }
        }
        Some("result") => {
            let mut events = Vec::new();
            if event.get("stats").is_some_and(Value::is_object) {
                events.push(LineEvent::RunTotal(by_model(event)));
            }
            events.push(match ended(event) {
                Ok(()) => LineEvent::Completed,
                Err(failure) => LineEvent::Ended(Err(failure)),
            });
            events
        }
        _ => Vec::new(),
    }
}

/// It gives up, and says success all the same.
fn stopped_by_itself(message: &str) -> Option<EngineFailure> {
    if message.starts_with("Loop detected") {
        return Some(EngineFailure::passing(FailReason::Crash, format!("gemini went in circles: {message}")));
    }
    message
        .starts_with("Maximum session turns")
        .then(|| EngineFailure::lasting(FailReason::BudgetExceeded, message))
}

/// A line of `tmp/<project>/chats/session-*.jsonl`, as 0.61 writes it. Answers to side questions are not there; they are in
/// the sum at the end.
pub(super) fn read_journal(entry: &Value) -> Vec<LineEvent> {
    if text(entry, "/type") != Some("gemini") {
        return Vec::new();
    }
    let Some(id) = text(entry, "/id") else { return Vec::new() };
    let input = count(entry, "/tokens/input");
    let cached_input = count(entry, "/tokens/cached").min(input);
    let output = count(entry, "/tokens/output") + count(entry, "/tokens/thoughts");
    let output = count(entry, "/tokens/total").saturating_sub(input).max(output);
    let tokens = Tokens { input: input - cached_input, cached_input, output };
    let model = text(entry, "/model").map(str::to_owned);
    vec![LineEvent::Response { id: id.to_owned(), model, tokens }]
}

fn by_model(event: &Value) -> Vec<(String, Tokens)> {
    match event.pointer("/stats/models").and_then(Value::as_object).filter(|models| !models.is_empty()) {
        Some(models) => models.iter().map(|(name, stats)| (name.clone(), tokens(stats))).collect(),
        None => vec![("unnamed".to_owned(), tokens(&event["stats"]))],
    }
}

fn tokens(stats: &Value) -> Tokens {
    let input = count(stats, "/input_tokens");
    let cached_input = count(stats, "/cached").min(input);
    // Thoughts are billed as output and are only in the total.
    let output = count(stats, "/total_tokens").saturating_sub(input).max(count(stats, "/output_tokens"));
    Tokens { input: input - cached_input, cached_input, output }
}

fn ended(event: &Value) -> Result<(), EngineFailure> {
    if text(event, "/status") == Some("success") {
        return Ok(());
    }
    let kind = text(event, "/error/type").unwrap_or("error");
    let message = text(event, "/error/message").unwrap_or("gemini ended without a message");
    if kind == "FatalTurnLimitedError" {
        return Err(EngineFailure::lasting(FailReason::BudgetExceeded, message));
    }
    Err(classify(&format!("{kind}: {message}")))
}

pub(super) fn exit_failure(code: i32) -> Option<EngineFailure> {
    use FailReason::{BudgetExceeded, Crash, Infrastructure, NoEngine, SignedOut};
    Some(match code {
        41 => EngineFailure::passing(SignedOut, "gemini is not signed in"),
        42 => EngineFailure::lasting(Crash, "gemini refused its input"),
        44 => EngineFailure::lasting(Infrastructure, "gemini's sandbox does not work"),
        52 => EngineFailure::lasting(NoEngine, "gemini's settings are wrong"),
        53 => EngineFailure::lasting(BudgetExceeded, "gemini used up the turns that its settings allow"),
        54 => EngineFailure::passing(Infrastructure, "a tool of gemini met a fatal error"),
        55 => EngineFailure::lasting(NoEngine, "gemini does not trust the folder"),
        130 => EngineFailure::passing(Crash, "gemini was interrupted"),
        _ => return None,
    })
}
