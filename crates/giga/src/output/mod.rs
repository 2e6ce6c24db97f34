//! Data on stdout in one of four formats; talk on stderr.
//!
//! Nothing that came from outside reaches a terminal with its control characters. `json` is what the API answered,
//! not what this program made of it.

mod chart;
mod table;
mod words;

use std::io::{self, IsTerminal, Write};

use giga_domain::Timestamp;
use serde_json::Value;

pub(crate) use chart::{bar, columns};
pub(crate) use table::{Columns, stage_cell};
pub(crate) use words::{ago, dash, joined, millis, or_dash, printable, span};

use crate::exit::CliError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    /// One line of JSON per item.
    JsonLines,
    /// Ids only, one per line.
    Name,
}

impl Format {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "table" => Self::Table,
            "json" => Self::Json,
            "jsonl" => Self::JsonLines,
            "name" => Self::Name,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// For "3m ago".
    pub(crate) now: Timestamp,
}

type Written = Result<(), CliError>;

impl Output {
    /// One thing. `id` is the path of its id in the JSON.
    pub(crate) fn one(&self, json: &Value, id: &str, people: impl FnOnce() -> String) -> Written {
        match self.format {
            Format::Table => self.text(&people()),
            Format::Json => self.text(&pretty(json)),
            Format::JsonLines => self.text(&json.to_string()),
            Format::Name => self.text(text_at(json, id)),
        }
    }

    /// A list that stands under `items` in the JSON. `none` is shown when it is empty.
    pub(crate) fn list(
        &self,
        json: &Value,
        (items, id): (&str, &str),
        none: &str,
        people: impl FnOnce() -> String,
    ) -> Written {
        let list = json.pointer(items).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match self.format {
            Format::Json => self.text(&pretty(json)),
            Format::JsonLines => list.iter().try_for_each(|item| self.text(&item.to_string())),
            Format::Name => list.iter().try_for_each(|item| self.text(text_at(item, id))),
            Format::Table if list.is_empty() => {
                say(none);
                Ok(())
            }
            Format::Table => self.text(&people()),
        }
    }

    /// As it is, with or without an end of line.
    #[expect(clippy::unused_self, reason = "only who has an output may write to it")]
    pub(crate) fn raw(&self, text: &str) -> Written {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        Ok(())
    }

    /// As it is, whatever it is.
    #[expect(clippy::unused_self, reason = "only who has an output may write to it")]
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Written {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// To stdout at once, so that a reader of a pipe sees it now.
    #[expect(clippy::unused_self, reason = "only who has an output may write to it")]
    pub(crate) fn text(&self, text: &str) -> Written {
        let mut stdout = anstream::stdout().lock();
        writeln!(stdout, "{}", text.trim_end_matches('\n'))?;
        stdout.flush()?;
        Ok(())
    }
}

fn pretty(json: &Value) -> String {
    serde_json::to_string_pretty(json).expect("JSON that was read can be written")
}

fn text_at<'a>(json: &'a Value, path: &str) -> &'a str {
    json.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The one line on stdout of something that runs on: who started it waits for it.
pub(crate) fn announce(line: &str) -> Written {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        // Nobody waits for it; that is no reason not to run.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Adds a page to those before it: its items, and the cursor that it ends with.
pub(crate) fn append_page(json: &mut Value, next: Value, items: &str, cursor: &str) {
    let (Value::Object(json), Value::Object(mut next)) = (json, next) else { return };
    if let (Some(Value::Array(list)), Some(Value::Array(more))) = (json.get_mut(items), next.remove(items)) {
        list.extend(more);
    }
    json.shift_remove(cursor);
    json.extend(next.remove_entry(cursor));
}

/// A line for people, on stderr. Nobody reading is no reason to stop.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

pub(crate) fn warn(text: &str) {
    say(&format!("\x1b[1;33mwarning:\x1b[0m {}", printable(text)));
}

/// Something on the way: only for somebody who watches.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        say(&format!("\x1b[2m{}\x1b[0m", printable(text)));
    }
}
