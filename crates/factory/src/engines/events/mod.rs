//! Reading what engines print: a pure function per program, from a line to [`LineEvent`]s.
//!
//! A parser never fails and never remembers: a line that is no JSON, an unknown type or a missing field means
//! nothing, because engines add events with every release. [`Tally`] adds the events up.

mod errors;
mod tally;
mod transcript;

use giga_domain::Usd;
use serde_json::Value;

use super::config::EventFormat;
use super::engine::{EngineFailure, QuotaWindow};
use super::prices::Tokens;

pub(super) use errors::{classify, is_account_refusal, names_an_unknown_session, out_of_quota};
pub(super) use tally::{Exit, Tally};
pub use transcript::Transcript;

/// What a line of output means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LineEvent {
    Session(String),
    Model(String),
    /// What is used of a window of the account.
    Window(QuotaWindow),
    /// Work goes on: whatever looked like the end before was not.
    Began,
    /// The model has answered something: what follows is no failure to reach it.
    Answered,
    /// The model has used a tool.
    Acted,
    /// The tokens of one message. The same message may be repeated, with the same or higher numbers.
    Message {
        id: String,
        tokens: Tokens,
    },
    /// One step more.
    Step {
        tokens: Tokens,
        usd: Option<Usd>,
    },
    /// Everything since the session began, earlier runs included.
    SessionTotal {
        tokens: Tokens,
        usd: Option<Usd>,
    },
    /// One answer of the model, as the session's own file has it. It may be told again.
    Response {
        id: String,
        model: Option<String>,
        tokens: Tokens,
    },
    /// What the session had used before this run, as its own file has it.
    SessionBefore(Tokens),
    /// What was used since the last such event, or since the run began.
    RunPart {
        tokens: Tokens,
        usd: Option<Usd>,
    },
    /// Everything of this run, by model.
    RunTotal(Vec<(String, Tokens)>),
    /// The engine's latest reply; later ones replace it.
    Reply(String),
    /// A piece that continues the latest reply.
    ReplyPart(String),
    Note(String),
    /// An error that the engine may get over.
    Error(EngineFailure),
    /// When the account's used-up window opens again, in seconds since 1970. Of several the latest counts.
    ResetsAt(u64),
    /// The engine will try again and again, and there is no use in it.
    Hopeless(EngineFailure),
    Ended(Result<(), EngineFailure>),
    /// It failed, whatever it says about its end.
    Spoiled(EngineFailure),
    /// The work is done, unless the model neither said nor did anything: then it declined.
    Completed,
    /// Nothing more to do. It may have succeeded or failed.
    Idle,
}

impl EventFormat {
    pub(super) fn read(self, line: &str) -> Vec<LineEvent> {
        match self {
            Self::Text if line.trim().is_empty() => Vec::new(),
            Self::Text => vec![LineEvent::Reply(line.trim().to_owned())],
            Self::Program(program) => {
                object(line).map(|event| program.cli().read(&event)).unwrap_or_default()
            }
        }
    }

    /// What a line of the session's own file means.
    pub(super) fn read_journal(self, line: &str) -> Vec<LineEvent> {
        match self {
            Self::Text => Vec::new(),
            Self::Program(program) => {
                object(line).map(|entry| program.cli().read_journal(&entry)).unwrap_or_default()
            }
        }
    }

    /// What an exit status means, for engines that give it a meaning of its own.
    pub(super) fn exit_failure(self, code: i32) -> Option<EngineFailure> {
        match self {
            Self::Text => None,
            Self::Program(program) => program.cli().exit_failure(code),
        }
    }

    /// Whether a run without an answer of the model shows as such.
    pub(super) fn shows_answers(self) -> bool {
        match self {
            Self::Text => false,
            Self::Program(program) => program.cli().shows_answers(),
        }
    }

    pub(super) fn counts_as_it_goes(self) -> bool {
        match self {
            Self::Text => false,
            Self::Program(program) => program.cli().counts_as_it_goes(),
        }
    }

    pub(super) fn read_stderr(self, line: &str) -> Vec<LineEvent> {
        match self {
            Self::Text => Vec::new(),
            Self::Program(program) => program.cli().read_stderr(line),
        }
    }

    /// Whether the log can do without the line.
    pub(super) fn is_progress(self, line: &str) -> bool {
        match self {
            Self::Text => false,
            Self::Program(program) => object(line).is_some_and(|event| program.cli().is_progress(&event)),
        }
    }

    /// Whether the exit status alone decides: there is no event that could.
    pub(super) const fn exit_decides(self) -> bool {
        matches!(self, Self::Text)
    }
}

fn object(line: &str) -> Option<Value> {
    let line = line.trim();
    if !line.starts_with('{') {
        return None;
    }
    serde_json::from_str(line).ok()
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn count(value: &Value, pointer: &str) -> u64 {
    // Some engines write counts as floats.
    match value.pointer(pointer) {
        Some(number) => number.as_u64().or_else(|| number.as_f64().map(|n| n as u64)).unwrap_or(0),
        None => 0,
    }
}

pub(super) fn dollars(value: &Value, pointer: &str) -> Option<Usd> {
    Usd::from_f64(value.pointer(pointer)?.as_f64()?).filter(|usd| !usd.is_negative())
}
