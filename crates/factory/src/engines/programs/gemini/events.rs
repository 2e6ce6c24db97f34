//! `gemini -o stream-json`.
//!
//! Some failures (no account, bad settings) happen before the first event and are told by the exit status only.

use giga_domain::FailReason;
use serde_json::Value;

use crate::engines::engine::EngineFailure;
use crate::engines::events::{Sign, classify, count, text};
use crate::engines::prices::Tokens;

pub(super) fn read(event: &Value) -> Vec<Sign> {
    match text(event, "/type") {
        Some("init") => {
            let session = text(event, "/session_id").map(|id| Sign::Session(id.to_owned()));
            let model = text(event, "/model").map(|model| Sign::Model(model.to_owned()));
            session.into_iter().chain(model).collect()
        }
        Some("message") if text(event, "/role") == Some("assistant") => {
            let words = text(event, "/content").unwrap_or_default().to_owned();
            let goes_on = event.get("delta").and_then(Value::as_bool).unwrap_or(false);
            vec![if goes_on { Sign::SaidMore(words) } else { Sign::Said(words) }]
        }
        // What was said so far led to a tool and was not the answer.
        Some("tool_use") => vec![Sign::Said(String::new())],
        Some("error") => {
            let words = text(event, "/message").unwrap_or("an error without words");
            if text(event, "/severity") == Some("error") {
                vec![Sign::Trouble(classify(words))]
            } else {
                vec![Sign::Note(words.to_owned())]
            }
        }
        Some("result") => {
            let mut signs = Vec::new();
            if event.get("stats").is_some_and(Value::is_object) {
                signs.push(Sign::RunTotal(by_model(event)));
            }
            signs.push(Sign::Ended(ended(event)));
            signs
        }
        _ => Vec::new(),
    }
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
    let words = text(event, "/error/message").unwrap_or("gemini said no more");
    if kind == "FatalTurnLimitedError" {
        return Err(EngineFailure::lasting(FailReason::BudgetExceeded, words));
    }
    Err(classify(&format!("{kind}: {words}")))
}

pub(super) fn exit_failure(code: i32) -> Option<EngineFailure> {
    use FailReason::{BudgetExceeded, Crash, Infrastructure, NoEngine};
    Some(match code {
        41 => EngineFailure::lasting(NoEngine, "gemini is not signed in"),
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
