//! From a session's updates to lines that people read.
//!
//! A chunk is no line: words are held until their line ends or something else happens.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, PlanEntryStatus, SessionUpdate, ToolCallStatus, ToolKind,
};

/// The most that is held of a line that does not end.
const HELD_BYTES: usize = 64 << 10;
/// Calls that are remembered.
const CALLS: usize = 1_000;
/// The most that is kept of a reply.
const REPLY_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Reader {
    held: Option<(Voice, String)>,
    reply: String,
    /// The lines of calls, by their names.
    calls: HashMap<String, String>,
    /// The agent did something after what it said last.
    acted: bool,
    pub(super) answered: bool,
    /// Chunks that are the agent's own warnings, and nothing that a model said.
    is_notice: Option<fn(&str) -> bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Says,
    Thinks,
}

impl Reader {
    pub(super) fn new(is_notice: Option<fn(&str) -> bool>) -> Self {
        Self { is_notice, ..Self::default() }
    }

    /// Whole lines, in order.
    pub(super) fn read(&mut self, update: SessionUpdate) -> Vec<String> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let text = text_of(chunk.content);
                if let (Some(text), Some(is_notice)) = (&text, self.is_notice)
                    && is_notice(text)
                {
                    let mut lines = self.flush();
                    lines.extend(line(Voice::Says, text));
                    return lines;
                }
                self.answered = true;
                let Some(text) = text else { return Vec::new() };
                // Some begin with nothing.
                if !text.is_empty() && std::mem::take(&mut self.acted) {
                    self.reply.clear();
                }
                let room = REPLY_BYTES.saturating_sub(self.reply.len());
                self.reply.push_str(&text[..text.floor_char_boundary(room)]);
                self.words(Voice::Says, &text)
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.answered = true;
                let Some(text) = text_of(chunk.content) else { return Vec::new() };
                self.words(Voice::Thinks, &text)
            }
            SessionUpdate::ToolCall(call) => {
                self.answered = true;
                self.acted = true;
                let mut lines = self.flush();
                lines.extend(self.call(call.tool_call_id.to_string(), call.kind, &call.title));
                lines
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.acted = true;
                let mut lines = self.flush();
                let fields = update.fields;
                if let Some(title) = &fields.title {
                    let kind = fields.kind.unwrap_or_default();
                    lines.extend(self.call(update.tool_call_id.to_string(), kind, title));
                }
                if fields.status == Some(ToolCallStatus::Failed) {
                    lines.push(format!("failed: {}", one_line(fields.title.as_deref().unwrap_or("a tool"))));
                }
                lines
            }
            SessionUpdate::Plan(plan) => {
                let mut lines = self.flush();
                lines.extend(plan.entries.into_iter().map(|entry| {
                    let mark = match entry.status {
                        PlanEntryStatus::Completed => "x",
                        PlanEntryStatus::InProgress => ">",
                        _ => " ",
                    };
                    format!("plan: [{mark}] {}", one_line(&entry.content))
                }));
                lines
            }
            _ => Vec::new(),
        }
    }

    /// A call that has got another title is told again: many begin as the bare name of a tool.
    fn call(&mut self, id: String, kind: ToolKind, title: &str) -> Option<String> {
        let line = format!("{}: {}", kind_word(kind), one_line(title));
        if self.calls.len() >= CALLS {
            self.calls.clear();
        }
        let told = self.calls.insert(id, line.clone());
        (told.as_ref() != Some(&line) && !title.is_empty()).then_some(line)
    }

    fn words(&mut self, voice: Voice, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.held.as_ref().is_some_and(|(held, _)| *held != voice) {
            lines = self.flush();
        }
        let mut held = self.held.take().map(|(_, text)| text).unwrap_or_default();
        held.push_str(text);
        while let Some(end) = held.find('\n') {
            let rest = held.split_off(end + 1);
            lines.extend(line(voice, &held));
            held = rest;
        }
        if held.len() > HELD_BYTES {
            lines.extend(line(voice, &held));
            held.clear();
        }
        if !held.is_empty() {
            self.held = Some((voice, held));
        }
        lines
    }

    /// What is held of a line.
    pub(super) fn flush(&mut self) -> Vec<String> {
        self.held.take().and_then(|(voice, text)| line(voice, &text)).into_iter().collect()
    }

    /// What it said last.
    pub(super) fn reply(&self) -> Option<&str> {
        Some(self.reply.trim()).filter(|text| !text.is_empty())
    }
}

fn line(voice: Voice, text: &str) -> Option<String> {
    let text = text.trim_end();
    match voice {
        _ if text.is_empty() => None,
        Voice::Says => Some(text.to_owned()),
        Voice::Thinks => Some(format!("thinks: {text}")),
    }
}

fn text_of(content: ContentBlock) -> Option<String> {
    if let ContentBlock::Text(text) = content { Some(text.text) } else { None }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

const fn kind_word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "reads",
        ToolKind::Edit => "edits",
        ToolKind::Delete => "deletes",
        ToolKind::Move => "moves",
        ToolKind::Search => "searches",
        ToolKind::Execute => "runs",
        ToolKind::Think => "plans",
        ToolKind::Fetch => "fetches",
        _ => "tool",
    }
}
