//! Runs one program that is talked to while it runs: over its standard input and output, line by line.
//!
//! The same sandbox, watchdogs and end as for a program that only prints. Whoever talks decides when it is over; whatever cuts
//! the run short tells them first, so that they can take their leave, and then ends the program.

use std::collections::VecDeque;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(in crate::engines) use super::lines::Line;
use super::lines::Lines;
use super::{
    DRAIN, End, EngineFailure, EngineRequest, EventSink, Launch, Sandbox, Started, Wound, breach, exit_of,
    spawn_with, tell_refused, watchdogs, wind_down, wipe,
};
use crate::engines::engine::Stream;
use giga_domain::exit::exit_words;

/// Longest message; a longer one is cut, and then is none.
const LINE_BYTES: usize = 16 << 20;
const WAITING_LINES: usize = 8;
/// Of standard error, kept to explain a failure.
const STDERR_LINES: usize = 5;
const STDERR_BYTES: usize = 400;
/// How long taking leave may take where nobody wants the work any more.
const FAREWELL: Duration = Duration::from_secs(3);

/// What a talker holds of the program.
pub(in crate::engines) struct Connection {
    pub(in crate::engines) stdin: ChildStdin,
    /// What it says; ends with it.
    pub(in crate::engines) lines: mpsc::Receiver<Line>,
    /// Told whenever somebody is known to be alive who says nothing.
    pub(in crate::engines) alive: watch::Sender<Instant>,
    /// Cancelled when the talk has to end.
    pub(in crate::engines) hang_up: CancellationToken,
    /// Raises an alarm that ends the run.
    pub(in crate::engines) alarm: mpsc::Sender<EngineFailure>,
}

/// How a talk went.
#[derive(Debug)]
pub(in crate::engines) struct Conversed<T> {
    /// What the talker made of it; `None` where they did not come to an end in time.
    pub(in crate::engines) talk: Option<T>,
    pub(in crate::engines) cut: Cut,
    /// How the program ended by itself once the talk was over, in words: it may be why it was over.
    pub(in crate::engines) exited: Option<String>,
    /// The last lines of standard error.
    pub(in crate::engines) stderr_tail: String,
}

#[derive(Debug)]
pub(in crate::engines) enum Cut {
    /// The talker was done.
    No,
    /// The program ended first, in words.
    Exited(String),
    Stopped,
    Failed(EngineFailure),
}

pub(in crate::engines) async fn converse<T, F: Future<Output = T>>(
    launch: Launch,
    sandbox: &Sandbox,
    request: &EngineRequest,
    sink: &EventSink,
    stop: &CancellationToken,
    talk: impl FnOnce(Connection) -> F,
) -> Result<Conversed<T>, EngineFailure> {
    let Started { mut child, tree, mut guard } = spawn_with(launch, sandbox, Stdio::piped())?;
    let sandboxed = guard.is_some();
    tell_refused(guard.as_mut(), sink.again());
    let stdin = child.stdin.take().expect("standard input was piped by spawn");
    let stdout = child.stdout.take().expect("standard output was piped by spawn");
    let stderr = child.stderr.take().expect("standard error was piped by spawn");
    let (alarm, mut alarms) = mpsc::channel(1);
    let (alive, quiet_since) = watch::channel(Instant::now());
    let (to, lines) = mpsc::channel(WAITING_LINES);
    let reading = AbortOnDrop(tokio::spawn(read(stdout, to, alive.clone())));
    let mut complaining = AbortOnDrop(tokio::spawn(complain(stderr, sink.again(), alive.clone())));
    let hang_up = CancellationToken::new();
    let mut talk = pin!(talk(Connection { stdin, lines, alive, hang_up: hang_up.clone(), alarm }));
    let mut said = None;
    let end = tokio::select! {
        biased;
        outcome = &mut talk => {
            said = Some(outcome);
            None
        }
        exited = child.wait() => Some(End::Exited(exited)),
        () = stop.cancelled() => Some(End::Stopped),
        Some(failure) = alarms.recv() => Some(End::Cut(failure)),
        failure = watchdogs(request, quiet_since) => Some(End::Cut(failure)),
        failure = breach(guard.as_ref(), tree.leader()) => Some(End::Cut(failure)),
    };
    if said.is_none() {
        let patience = match &end {
            // What it said last is still on its way.
            Some(End::Exited(_)) => DRAIN,
            Some(End::Stopped) => request.watchdog.kill_grace,
            _ => request.watchdog.kill_grace.min(FAREWELL),
        };
        if !matches!(end, Some(End::Exited(_))) {
            hang_up.cancel();
        }
        said = tokio::time::timeout(patience, &mut talk).await.ok();
    }
    let was_done = end.is_none();
    let mut exited = None;
    if was_done {
        // Its standard input is closed: most agents put their session away now and go by themselves.
        let by_itself = tokio::time::timeout(request.watchdog.kill_grace.min(FAREWELL), child.wait()).await;
        exited = by_itself.ok().map(|status| words(status, sandboxed));
    }
    let started = Started { child, tree, guard };
    let Wound { end, wiped } =
        wind_down(started, end.unwrap_or(End::Stopped), request.watchdog.kill_grace).await;
    wipe(wiped).await;
    drop(reading);
    let stderr_tail = tokio::time::timeout(DRAIN, &mut complaining.0).await;
    let stderr_tail = stderr_tail.ok().and_then(Result::ok).unwrap_or_default();
    let cut = match end {
        _ if was_done => Cut::No,
        End::Exited(status) => Cut::Exited(words(status, sandboxed)),
        End::Stopped => Cut::Stopped,
        End::Cut(failure) => Cut::Failed(failure),
    };
    Ok(Conversed { talk: said, cut, exited, stderr_tail })
}

fn words(status: std::io::Result<ExitStatus>, sandboxed: bool) -> String {
    match status {
        Ok(status) => {
            let (code, signal) = exit_of(status, sandboxed);
            exit_words(code, signal)
        }
        Err(error) => format!("could not be waited for: {error}"),
    }
}

/// A pipe may be held open by somebody who slipped away.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn read(stdout: impl AsyncRead + Unpin, to: mpsc::Sender<Line>, alive: watch::Sender<Instant>) {
    let mut lines = Lines::new(stdout, LINE_BYTES);
    let beat = || {
        alive.send_replace(Instant::now());
    };
    while let Some(line) = lines.next(beat).await {
        if to.send(line).await.is_err() {
            return;
        }
    }
}

/// Forwards standard error, and answers its last lines.
async fn complain(
    stderr: impl AsyncRead + Unpin,
    mut sink: EventSink,
    alive: watch::Sender<Instant>,
) -> String {
    let mut lines = Lines::new(stderr, LINE_BYTES);
    let beat = || {
        alive.send_replace(Instant::now());
    };
    let mut tail: VecDeque<String> = VecDeque::new();
    while let Some(line) = lines.next(beat).await {
        sink.line(Stream::Stderr, &line.text, line.lost).await;
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if tail.len() == STDERR_LINES {
            tail.pop_front();
        }
        // Redacted before it is cut, so that no half of a secret stays.
        let clean = sink.redact(text);
        tail.push_back(clean[..clean.floor_char_boundary(STDERR_BYTES)].to_owned());
    }
    tail.make_contiguous().join(" | ")
}
