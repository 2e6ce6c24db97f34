//! `opencode run --format json`.
//!
//! Old versions have no closing event at all and exit 0 for a session that does not exist, so the end is a finished
//! step that asks for no tool, and silence is never success.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{LineEvent, classify, count, dollars, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<LineEvent> {
    let mut events = Vec::new();
    events.extend(text(event, "/sessionID").map(|id| LineEvent::Session(id.to_owned())));
    match text(event, "/type") {
        Some("step_start") => events.extend([LineEvent::Began, LineEvent::Answered]),
        Some("text") => {
            events.extend(text(event, "/part/text").map(|message| LineEvent::Reply(message.to_owned())));
        }
        Some("step_finish") => {
            // It says 0 of a model whose price it does not know.
            let usd = dollars(event, "/part/cost").filter(|usd| !usd.is_zero());
            events.push(LineEvent::Step { tokens: tokens(event), usd });
            events.extend(step_end(text(event, "/part/reason")).map(LineEvent::Ended));
        }
        Some("error") => {
            let name = text(event, "/error/name").unwrap_or("error");
            let message = text(event, "/error/data/message").or_else(|| text(event, "/error/message"));
            let message = message.map_or(name.to_owned(), |message| format!("{name}: {message}"));
            events.push(LineEvent::Ended(Err(classify(&message))));
        }
        Some("done") => {
            let refused = event.get("rejected").and_then(Value::as_array).into_iter().flatten();
            let refused: Vec<&str> = refused.filter_map(Value::as_str).collect();
            if !refused.is_empty() {
                events.push(LineEvent::Note(format!(
                    "opencode was refused permissions: {}",
                    refused.join(", ")
                )));
            }
            events.push(LineEvent::Idle);
        }
        _ => {}
    }
    events
}

/// A line of its log: `… message="stream error" … error.error="AI_APICallError: The usage limit has been reached"`. It tries
/// again after each of them, for ever; a window of the account that is used up is not waited for.
pub(super) fn read_log(line: &str) -> Vec<LineEvent> {
    if !line.contains(r#"message="stream error""#) {
        return Vec::new();
    }
    let Some((_, message)) = line.split_once("error.error=\"") else { return Vec::new() };
    let failure = classify(message.rsplit_once('"').map_or(message, |(message, _)| message));
    match failure.reason {
        FailReason::OutOfQuota => vec![LineEvent::Error(failure.clone()), LineEvent::Hopeless(failure)],
        _ => vec![LineEvent::Error(failure)],
    }
}

fn tokens(event: &Value) -> Tokens {
    Tokens {
        input: count(event, "/part/tokens/input") + count(event, "/part/tokens/cache/write"),
        cached_input: count(event, "/part/tokens/cache/read"),
        output: count(event, "/part/tokens/output") + count(event, "/part/tokens/reasoning"),
    }
}

/// `None` when more steps follow.
fn step_end(reason: Option<&str>) -> Option<Result<(), EngineFailure>> {
    match reason {
        Some("tool-calls") => None,
        // The first versions named no reason.
        None | Some("stop") => Some(Ok(())),
        Some(other) => Some(Err(EngineFailure::lasting(
            FailReason::Crash,
            format!("opencode's last step ended because of `{other}`"),
        ))),
    }
}
