//! `codex exec --json`.
//!
//! An `error` event is no end: Codex tells of lost connections that it then gets over. Only `turn.failed` is final.

use serde_json::Value;

use crate::engines::events::{LineEvent, classify, count, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<LineEvent> {
    match text(event, "/type") {
        Some("thread.started") => {
            text(event, "/thread_id").map(|id| LineEvent::Session(id.to_owned())).into_iter().collect()
        }
        Some("turn.started") => vec![LineEvent::Began],
        // The usage is that of the whole thread, what a resumed one brought along included.
        Some("turn.completed") => {
            vec![LineEvent::SessionTotal { tokens: usage(event), usd: None }, LineEvent::Ended(Ok(()))]
        }
        Some("turn.failed") => {
            let message = text(event, "/error/message").unwrap_or("the turn failed");
            vec![LineEvent::Ended(Err(classify(message)))]
        }
        Some("error") => {
            text(event, "/message").map(|message| LineEvent::Error(classify(message))).into_iter().collect()
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

fn item(event: &Value) -> Vec<LineEvent> {
    // Earlier versions wrote `item_type`.
    let kind = text(event, "/item/type").or_else(|| text(event, "/item/item_type"));
    let sign = match kind {
        Some("agent_message" | "assistant_message") => {
            text(event, "/item/text").map(|message| LineEvent::Reply(message.to_owned()))
        }
        Some("error") => text(event, "/item/message").map(|message| LineEvent::Note(message.to_owned())),
        // Commands, edits, thoughts.
        _ => Some(LineEvent::Answered),
    };
    sign.into_iter().collect()
}
