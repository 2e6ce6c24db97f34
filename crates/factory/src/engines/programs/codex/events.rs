//! `codex exec --json`.
//!
//! An `error` event is no end: Codex tells of lost connections that it then gets over. Only `turn.failed` is final.

use serde_json::Value;

use crate::engines::events::{Sign, classify, count, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<Sign> {
    match text(event, "/type") {
        Some("thread.started") => {
            text(event, "/thread_id").map(|id| Sign::Session(id.to_owned())).into_iter().collect()
        }
        Some("turn.started") => vec![Sign::Began],
        // The usage is that of the whole thread, what a resumed one brought along included.
        Some("turn.completed") => {
            vec![Sign::SessionTotal { tokens: usage(event), usd: None }, Sign::Ended(Ok(()))]
        }
        Some("turn.failed") => {
            let words = text(event, "/error/message").unwrap_or("the turn failed");
            vec![Sign::Ended(Err(classify(words)))]
        }
        Some("error") => {
            text(event, "/message").map(|words| Sign::Trouble(classify(words))).into_iter().collect()
        }
        Some("item.completed") => item(event),
        _ => Vec::new(),
    }
}

fn usage(event: &Value) -> Tokens {
    let cached_input = count(event, "/usage/cached_input_tokens");
    Tokens {
        input: count(event, "/usage/input_tokens").saturating_sub(cached_input),
        cached_input,
        // Reasoning is part of it.
        output: count(event, "/usage/output_tokens"),
    }
}

fn item(event: &Value) -> Vec<Sign> {
    // Earlier versions wrote `item_type`.
    let kind = text(event, "/item/type").or_else(|| text(event, "/item/item_type"));
    let sign = match kind {
        Some("agent_message" | "assistant_message") => {
            text(event, "/item/text").map(|words| Sign::Said(words.to_owned()))
        }
        Some("error") => text(event, "/item/message").map(|words| Sign::Note(words.to_owned())),
        // Commands, edits, thoughts.
        _ => Some(Sign::Answered),
    };
    sign.into_iter().collect()
}
