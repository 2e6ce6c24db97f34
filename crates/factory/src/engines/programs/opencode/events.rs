//! `opencode run --format json`.
//!
//! Old versions have no closing event at all and exit 0 for a session that does not exist, so the end is a finished
//! step that asks for no tool, and silence is never success.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{Sign, classify, count, dollars, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<Sign> {
    let mut signs = Vec::new();
    signs.extend(text(event, "/sessionID").map(|id| Sign::Session(id.to_owned())));
    match text(event, "/type") {
        Some("step_start") => signs.push(Sign::Began),
        Some("text") => signs.extend(text(event, "/part/text").map(|words| Sign::Said(words.to_owned()))),
        Some("step_finish") => {
            signs.push(Sign::Step { tokens: tokens(event), usd: dollars(event, "/part/cost") });
            signs.extend(step_end(text(event, "/part/reason")).map(Sign::Ended));
        }
        Some("error") => {
            let name = text(event, "/error/name").unwrap_or("error");
            let words = text(event, "/error/data/message").or_else(|| text(event, "/error/message"));
            let words = words.map_or(name.to_owned(), |words| format!("{name}: {words}"));
            signs.push(Sign::Ended(Err(classify(&words))));
        }
        Some("done") => {
            let refused = event.get("rejected").and_then(Value::as_array).into_iter().flatten();
            let refused: Vec<&str> = refused.filter_map(Value::as_str).collect();
            if !refused.is_empty() {
                signs.push(Sign::Note(format!("opencode was refused permissions: {}", refused.join(", "))));
            }
            signs.push(Sign::Idle);
        }
        _ => {}
    }
    signs
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
