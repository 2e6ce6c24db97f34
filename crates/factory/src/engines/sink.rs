//! Sends an engine's output and events to the listener: redacted, bounded, and without blocking the engine.
//!
//! A listener that is slow is waited for, up to a limit; one that is stuck or gone costs it lines, never the run.

use std::time::Duration;

use tokio::sync::mpsc;

use super::engine::{EngineEvent, EngineRequest, Question, Secret, Stream};
use super::redact::Redactor;

/// Longest line that is forwarded.
const LINE_BYTES: usize = 64 * 1024;
/// How long a listener may take for one event before lines are dropped.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct EventSink {
    events: mpsc::Sender<EngineEvent>,
    redactor: Redactor,
    limit: u64,
    forwarded: u64,
    full: bool,
    /// Lines lost since the listener got stuck.
    dropped: u64,
}

impl EventSink {
    /// `own` are secrets that the engine itself was given.
    pub(super) fn new(request: &EngineRequest, own: &[Secret], events: mpsc::Sender<EngineEvent>) -> Self {
        Self {
            events,
            redactor: Redactor::new(&request.secrets, request.redact.iter().chain(own)),
            limit: request.output_limit,
            forwarded: 0,
            full: false,
            dropped: 0,
        }
    }

    /// Another one to the same listener, which begins to count anew.
    pub(super) fn again(&self) -> Self {
        let (events, redactor) = (self.events.clone(), self.redactor.clone());
        Self { events, redactor, limit: self.limit, forwarded: 0, full: false, dropped: 0 }
    }

    pub(super) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    /// `lost` bytes of the line are already gone.
    pub(super) async fn line(&mut self, stream: Stream, line: &str, lost: u64) {
        if self.full {
            return;
        }
        let clean = self.redact(line);
        let kept = &clean[..clean.floor_char_boundary(LINE_BYTES)];
        let cut = lost + (clean.len() - kept.len()) as u64;
        self.forwarded += kept.len() as u64 + 1;
        if self.forwarded > self.limit {
            self.full = true;
            let limit = self.limit;
            let note =
                format!("the output passed {limit} bytes; the engine goes on, but no more of it is kept");
            self.send(EngineEvent::Note(note)).await;
            return;
        }
        self.send(EngineEvent::Output { stream, line: kept.to_owned() }).await;
        if cut > 0 {
            self.note(&format!("the line before was longer; {cut} bytes of it are not kept")).await;
        }
    }

    pub(super) async fn note(&mut self, note: &str) {
        let note = self.redact(note);
        self.send(EngineEvent::Note(note)).await;
    }

    pub(super) async fn event(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::Note(note) => self.note(&note).await,
            EngineEvent::Output { stream, line } => self.line(stream, &line, 0).await,
            EngineEvent::Question(question) => {
                let Question { id, kind, text, options, default } = question;
                let text = self.redact(&text);
                let options = options.iter().map(|option| self.redact(option)).collect();
                let default = default.map(|default| self.redact(&default));
                self.send(EngineEvent::Question(Question { id, kind, text, options, default })).await;
            }
            other => self.send(other).await,
        }
    }

    async fn send(&mut self, event: EngineEvent) {
        if self.dropped == 0 {
            if tokio::time::timeout(PATIENCE, self.events.send(event)).await.is_err() {
                self.dropped = 1;
            }
            return;
        }
        let missing =
            EngineEvent::Note(format!("{} events were dropped: the listener was too slow", self.dropped));
        if self.events.try_send(missing).is_err() {
            self.dropped += 1;
            return;
        }
        // There may be room for the note only.
        self.dropped = u64::from(self.events.try_send(event).is_err());
    }
}
