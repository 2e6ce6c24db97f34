//! Reads what a process prints, passes it to the tally and to the listener, and raises the alarm when a budget is spent.
//!
//! Reads both streams to their end whatever happens to the listener: a pipe that nobody empties would stop the
//! engine. Every line is read for its meaning, also those that are no longer forwarded.

use std::collections::VecDeque;

use giga_domain::FailReason;
use giga_domain::job::BudgetCaps;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lines::{Line, Lines};
use crate::engines::engine::{EngineEvent, EngineFailure, Stream, Usage};
use crate::engines::events::Tally;
use crate::engines::sink::EventSink;

/// Longest line that is read for its meaning.
const LINE_BYTES: usize = 1024 * 1024;
/// Lines buffered between the pipes and the reader; few, because one may be long.
pub(super) const WAITING_LINES: usize = 8;
/// Of standard error, kept to explain a failure.
const STDERR_LINES: usize = 5;
const STDERR_BYTES: usize = 400;

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Printed(Stream),
    /// The file in which the program keeps its session.
    Journal,
    /// Nothing more is printed to one of the two streams.
    Ended,
}

/// Of everything that is read, in the order in which it came.
pub(super) type LineChannel = (mpsc::Sender<(Source, Line)>, mpsc::Receiver<(Source, Line)>);

pub(super) struct OutputReader {
    pub(super) tally: Tally,
    pub(super) sink: EventSink,
    pub(super) budget: BudgetCaps,
    /// The cap was passed, and the model was asked for another answer all the same.
    pub(super) overspent: Option<EngineFailure>,
    /// How many answers the session's file had named when the cap was passed.
    passed_at: Option<usize>,
    session: watch::Sender<Option<String>>,
    stderr_tail: VecDeque<String>,
    alarm: mpsc::Sender<EngineFailure>,
}

impl OutputReader {
    pub(super) fn new(
        tally: Tally,
        sink: EventSink,
        budget: BudgetCaps,
        alarm: mpsc::Sender<EngineFailure>,
    ) -> Self {
        Self {
            tally,
            sink,
            budget,
            overspent: None,
            passed_at: None,
            session: watch::Sender::new(None),
            stderr_tail: VecDeque::new(),
            alarm,
        }
    }

    /// The name of the session, once the program has told it.
    pub(super) fn session(&self) -> watch::Receiver<Option<String>> {
        self.session.subscribe()
    }

    /// Until both streams and the journal have ended, or `give_up`.
    pub(super) async fn run(
        mut self,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stderr: impl AsyncRead + Unpin + Send + 'static,
        last_output: watch::Sender<Instant>,
        give_up: CancellationToken,
        (lines, mut incoming): LineChannel,
        journal_may_end: CancellationToken,
    ) -> Self {
        let mut open_streams = 2;
        // The readers end with this set, also when a pipe is held open by someone who slipped away.
        let mut readers = JoinSet::new();
        readers.spawn(read(Stream::Stdout, stdout, lines.clone(), last_output.clone()));
        readers.spawn(read(Stream::Stderr, stderr, lines, last_output));
        loop {
            let next = tokio::select! {
                next = incoming.recv() => next,
                () = give_up.cancelled() => None,
            };
            match next {
                Some((Source::Printed(stream), line)) => self.line(stream, line).await,
                // What was printed is known by now, the session's name too: the journal is looked at once more.
                Some((Source::Ended, _)) => {
                    open_streams -= 1;
                    if open_streams == 0 {
                        journal_may_end.cancel();
                    }
                }
                Some((Source::Journal, line)) => {
                    let changes = self.tally.journal_line(&line.text);
                    self.count_answers_past_the_cap();
                    self.pass_on(changes).await;
                }
                None => return self,
            }
        }
    }

    async fn line(&mut self, stream: Stream, line: Line) {
        if stream == Stream::Stderr || !self.tally.is_progress(&line.text) {
            self.sink.line(stream, &line.text, line.lost).await;
        }
        let events = if stream == Stream::Stderr {
            self.remember(&line.text);
            self.tally.stderr_line(&line.text)
        } else {
            self.tally.line(&line.text)
        };
        if let Some(failure) = self.tally.hopeless() {
            let _raised = self.alarm.try_send(failure.clone());
        }
        self.pass_on(events).await;
    }

    async fn pass_on(&mut self, changes: Vec<EngineEvent>) {
        for event in changes {
            match &event {
                EngineEvent::Usage(usage) => self.guard_budget(*usage),
                EngineEvent::Session { id, .. } => {
                    self.session.send_replace(Some(id.clone()));
                }
                _ => {}
            }
            self.sink.event(event).await;
        }
    }

    fn remember(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.stderr_tail.len() == STDERR_LINES {
            self.stderr_tail.pop_front();
        }
        // Redacted before it is cut, so that no half of a secret stays.
        let clean = self.sink.redact(line);
        self.stderr_tail.push_back(clean[..clean.floor_char_boundary(STDERR_BYTES)].to_owned());
    }

    /// The last lines of standard error.
    pub(super) fn stderr_tail(&self) -> String {
        self.stderr_tail.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// The answer that passes a cap is paid for. One more is too much, also of a program that was done before anybody looked.
    fn count_answers_past_the_cap(&mut self) {
        let (count, usage) = self.tally.responses();
        let Some(overrun) = overrun(usage, &self.budget) else { return };
        if count > *self.passed_at.get_or_insert(count) {
            self.overspent = Some(EngineFailure::lasting(FailReason::BudgetExceeded, overrun));
        }
    }

    fn guard_budget(&self, usage: Usage) {
        // What is done is paid for: stopping now would save nothing and lose the work.
        if self.tally.ended_well() {
            return;
        }
        if let Some(overrun) = overrun(usage, &self.budget) {
            // A full channel means that the alarm was already raised.
            let _raised = self.alarm.try_send(EngineFailure::lasting(FailReason::BudgetExceeded, overrun));
        }
    }
}

/// In words, what was used up.
pub(in crate::engines) fn overrun(usage: Usage, budget: &BudgetCaps) -> Option<String> {
    match (budget.tokens, budget.usd, usage.cost) {
        (Some(cap), _, _) if usage.tokens > cap => {
            Some(format!("{} tokens are used, the job's cap is {cap}", usage.tokens))
        }
        (_, Some(cap), Some(cost)) if cost > cap => Some(format!("{cost} are spent, the job's cap is {cap}")),
        _ => None,
    }
}

async fn read(
    which: Stream,
    stream: impl AsyncRead + Unpin,
    to: mpsc::Sender<(Source, Line)>,
    last_output: watch::Sender<Instant>,
) {
    let mut lines = Lines::new(stream, LINE_BYTES);
    let alive = || {
        last_output.send_replace(Instant::now());
    };
    while let Some(line) = lines.next(alive).await {
        if to.send((Source::Printed(which), line)).await.is_err() {
            return;
        }
    }
    // Whoever listened may be gone.
    let _ = to.send((Source::Ended, Line { text: String::new(), lost: 0 })).await;
}
