//! Runs one program and makes sure that it ends.
//!
//! Never through a shell, never with the factory's environment, never with an open standard input, and never leaving
//! a process behind: on every way out (success, failure, watchdog, budget, stop request, a dropped future) the whole
//! process tree is killed.

mod dialogue;
mod environment;
mod journal;
mod lines;
mod output;
mod probe;
mod tree;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use giga_domain::FailReason;
use giga_domain::exit::exit_words;
use rustix::process::Signal;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::engine::{EngineFailure, EngineOutcome, EngineReport, EngineRequest, LeftRun, Usage};
use super::events::{Exit, Tally};
use super::sink::EventSink;
use crate::sandbox::{Enclosed, Guard, Sandbox, View};
use crate::workspace::remove_folder;
use journal::Journal;
use output::{OutputReader, WAITING_LINES};
use tree::ProcessTree;

pub(super) use dialogue::{Connection, Conversed, Cut, Line, converse};
pub use environment::HostEnvironment;
pub(super) use journal::JournalFiles;
pub(super) use output::overrun;
pub(super) use probe::{Probe, probe};
pub use tree::{RUN_MARKER, kill_run};

/// How long output is still waited for once everybody who could write it is dead.
const DRAIN: Duration = Duration::from_secs(10);

/// What is started. The environment is complete: nothing is added to it but the marker and the working folder.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) dir: PathBuf,
    /// A file to read, for a program that reads its prompt there. Unlike a pipe it has an end.
    pub(super) stdin: Option<File>,
    /// What it is shown in a sandbox.
    pub(super) view: View,
    /// The files of its home that say what it uses while it runs.
    pub(super) journal: Option<JournalFiles>,
}

/// A report, and whether it failed only because the session to resume is not on this machine.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) report: EngineReport,
    pub(super) session_is_unknown: bool,
}

/// What is left when nothing runs any more.
struct Wound {
    end: End,
    /// A home that has to go.
    wiped: Option<PathBuf>,
}

enum End {
    Exited(std::io::Result<ExitStatus>),
    Stopped,
    Cut(EngineFailure),
}

pub(super) async fn run(
    launch: Launch,
    sandbox: &Sandbox,
    request: &EngineRequest,
    tally: Tally,
    sink: EventSink,
    stop: &CancellationToken,
) -> Run {
    if stop.is_cancelled() {
        return not_started(EngineOutcome::Stopped);
    }
    let journal = launch.journal.and_then(|files| journal(files, &launch, sandbox, request));
    let Started { mut child, tree, mut guard } = match spawn(launch, sandbox) {
        Ok(started) => started,
        Err(failure) => return not_started(EngineOutcome::Failed(failure)),
    };
    let sandboxed = guard.is_some();
    tell_refused(guard.as_mut(), sink.again());
    let (alarm, mut alarms) = mpsc::channel(1);
    let (last_output, quiet_since) = watch::channel(Instant::now());
    let give_up = CancellationToken::new();
    let stdout = child.stdout.take().expect("standard output was piped by spawn");
    let stderr = child.stderr.take().expect("standard error was piped by spawn");
    let reader = OutputReader::new(tally, sink, request.budget, alarm);
    let lines = mpsc::channel(WAITING_LINES);
    let over = CancellationToken::new();
    let following = journal.map(|journal| {
        let session = reader.session();
        tokio::spawn(journal.follow(lines.0.clone(), session, quiet_since.clone(), over.clone()))
    });
    // It ends with this future, should that be dropped.
    let _following = following.map(AbortOnDropHandle::new);
    let mut reader = tokio::spawn(reader.run(stdout, stderr, last_output, give_up.clone(), lines, over));

    let end = tokio::select! {
        biased;
        exited = child.wait() => End::Exited(exited),
        () = stop.cancelled() => End::Stopped,
        Some(failure) = alarms.recv() => End::Cut(failure),
        failure = watchdogs(request, quiet_since) => End::Cut(failure),
        failure = breach(guard.as_ref(), tree.leader()) => End::Cut(failure),
    };
    let Wound { end, wiped } =
        wind_down(Started { child, tree, guard }, end, request.watchdog.kill_grace).await;
    let reader = if let Ok(reader) = tokio::time::timeout(DRAIN, &mut reader).await {
        reader
    } else {
        give_up.cancel();
        reader.await
    };
    wipe(wiped).await;
    match reader {
        Ok(reader) => conclude(end, reader, sandboxed).await,
        Err(panicked) => {
            let detail = format!("the engine's output could not be read: {panicked}");
            let failure = EngineFailure::passing(FailReason::Infrastructure, detail);
            let mut run = not_started(EngineOutcome::Failed(failure));
            run.report.metered = false;
            run
        }
    }
}

/// Ends whatever still runs, and clears away what was made for it. Running out of memory is why it ended, where it did.
async fn wind_down(started: Started, end: End, kill_grace: Duration) -> Wound {
    let Started { mut child, mut tree, mut guard } = started;
    if !matches!(end, End::Exited(_)) {
        tree.terminate();
        // Whether it went by itself or not, the rest of the process tree is killed next.
        let _in_time = tokio::time::timeout(kill_grace, child.wait()).await;
    }
    if child.id().is_none() {
        tree.leader_ended();
    }
    tree.kill().await;
    let _reaped = child.wait().await;
    let wiped = guard.as_mut().and_then(|guard| guard.wiped.take());
    let out_of_memory = guard.as_ref().and_then(|guard| guard.group.as_ref()?.out_of_memory());
    let end = match (end, out_of_memory) {
        (End::Exited(_), Some(words)) => End::Cut(EngineFailure::lasting(FailReason::Crash, words)),
        (end, _) => end,
    };
    drop(guard);
    Wound { end, wiped }
}

/// Only once nobody reads in it any more.
async fn wipe(home: Option<PathBuf>) {
    if let Some(home) = home
        && let Err(error) = remove_folder(home).await
    {
        tracing::warn!(%error, "the private home of a run with secrets could not be removed");
    }
}

async fn conclude(end: End, mut reader: OutputReader, sandboxed: bool) -> Run {
    let stderr_tail = reader.stderr_tail();
    let mut session_is_unknown = false;
    let outcome = match end {
        End::Stopped => EngineOutcome::Stopped,
        // One that was silent because its provider fails says so.
        End::Cut(failure) if failure.reason == FailReason::Timeout && failure.retryable => {
            EngineOutcome::Failed(match reader.tally.trouble().filter(|trouble| trouble.retryable) {
                Some(trouble) => EngineFailure {
                    detail: format!("{}: {}", failure.detail, trouble.detail),
                    ..trouble.clone()
                },
                None => failure,
            })
        }
        End::Cut(failure) => EngineOutcome::Failed(failure),
        End::Exited(Err(error)) => EngineOutcome::Failed(EngineFailure::passing(
            FailReason::Infrastructure,
            format!("the engine could not be waited for: {error}"),
        )),
        End::Exited(Ok(status)) => {
            let (code, signal) = exit_of(status, sandboxed);
            let exit = Exit { code, text: exit_words(code, signal) };
            session_is_unknown = reader.tally.session_is_unknown(&stderr_tail);
            match (reader.tally.verdict(&exit, &stderr_tail), reader.overspent.take()) {
                (Ok(()), Some(overspent)) => EngineOutcome::Failed(overspent),
                (Ok(()), None) => {
                    if !status.success() {
                        let note = format!("the engine reported success, then {}", exit.text);
                        reader.sink.note(&note).await;
                    }
                    if let Some(overrun) = overrun(reader.tally.usage(), &reader.budget) {
                        let note = format!("the engine was done before its budget could stop it: {overrun}");
                        reader.sink.note(&note).await;
                    }
                    EngineOutcome::Succeeded
                }
                (Err(failure), _) => EngineOutcome::Failed(failure),
            }
        }
    };
    let outcome = match outcome {
        EngineOutcome::Failed(failure) => {
            EngineOutcome::Failed(EngineFailure { detail: reader.sink.redact(&failure.detail), ..failure })
        }
        other => other,
    };
    let failure = if let EngineOutcome::Failed(failure) = &outcome { Some(failure) } else { None };
    let metered = reader.tally.is_metered(failure);
    let report = EngineReport {
        outcome,
        session_id: reader.tally.session().map(str::to_owned),
        usage: reader.tally.usage(),
        metered,
        summary: reader.tally.reply().map(|text| reader.sink.redact(text)),
    };
    Run { report, session_is_unknown }
}

pub(super) fn not_started(outcome: EngineOutcome) -> Run {
    let report =
        EngineReport { outcome, session_id: None, usage: Usage::default(), metered: true, summary: None };
    Run { report, session_is_unknown: false }
}

/// Ends with the first watchdog that bites. That of silence stands still while people are asked.
async fn watchdogs(request: &EngineRequest, quiet_since: watch::Receiver<Instant>) -> EngineFailure {
    let start = Instant::now();
    let watchdog = request.watchdog;
    let cap = request.budget.wall_ms.map(Duration::from_millis);
    // When people were last waited for, as far as it is known.
    let mut asked = start;
    loop {
        let idle_end = asked.max(*quiet_since.borrow()) + watchdog.idle;
        let wall_end = start + watchdog.wall;
        let cap_end = cap.map(|cap| start + cap);
        let next = cap_end.unwrap_or(wall_end).min(wall_end).min(idle_end);
        tokio::time::sleep_until(next).await;
        let now = Instant::now();
        if cap_end.is_some_and(|end| now >= end) {
            let cap = cap.unwrap_or_default();
            return EngineFailure::lasting(
                FailReason::BudgetExceeded,
                format!("the run reached the job's cap of {cap:?}"),
            );
        }
        if now >= wall_end {
            return EngineFailure::lasting(
                FailReason::Timeout,
                format!("the run was still going after {:?}", watchdog.wall),
            );
        }
        if now >= asked.max(*quiet_since.borrow()) + watchdog.idle {
            let ended = match &request.asking {
                Some(asking) => asking.ended().await,
                None => None,
            };
            if let Some(ago) = ended.filter(|ago| *ago < watchdog.idle) {
                asked = Instant::now().checked_sub(ago).unwrap_or(asked);
                continue;
            }
            return EngineFailure::passing(
                FailReason::Timeout,
                format!("the engine printed nothing for {:?}", watchdog.idle),
            );
        }
    }
}

/// The code, or the signal that ended it. The keeper of a sandbox says the second as a shell does; only signals that end a
/// program against its will are read so.
fn exit_of(status: ExitStatus, sandboxed: bool) -> (Option<i32>, Option<i32>) {
    const BY_SIGNAL: i32 = 128;
    const FATAL: [Signal; 11] = [
        Signal::ILL,
        Signal::TRAP,
        Signal::ABORT,
        Signal::BUS,
        Signal::FPE,
        Signal::KILL,
        Signal::SEGV,
        Signal::TERM,
        Signal::XCPU,
        Signal::XFSZ,
        Signal::SYS,
    ];
    let signal = status.code().and_then(|code| code.checked_sub(BY_SIGNAL)).filter(|_| sandboxed);
    match signal.filter(|number| FATAL.iter().any(|fatal| fatal.as_raw() == *number)) {
        Some(signal) => (None, Some(signal)),
        None => (status.code(), status.signal()),
    }
}

/// Ends when the run uses more than it may.
async fn breach(guard: Option<&Guard>, leader: Option<u32>) -> EngineFailure {
    match (guard, leader) {
        (Some(guard), Some(leader)) => {
            EngineFailure::lasting(FailReason::Crash, guard.watch.breach(leader).await)
        }
        _ => std::future::pending().await,
    }
}

/// Hosts that were refused are in the log of the job. Ends with the proxy.
fn tell_refused(guard: Option<&mut Guard>, mut sink: EventSink) {
    let refused = guard.and_then(|guard| guard.proxy.as_mut()).and_then(|proxy| proxy.refused.take());
    if let Some(mut refused) = refused {
        tokio::spawn(async move {
            while let Some(host) = refused.recv().await {
                sink.note(&format!("network: {host} was refused; it is not on this factory's list")).await;
            }
        });
    }
}

fn journal(
    files: JournalFiles,
    launch: &Launch,
    sandbox: &Sandbox,
    request: &EngineRequest,
) -> Option<Journal> {
    let (root, is_shared) = journal_root(files, sandbox, &launch.env, launch.view.kept.as_deref())?;
    Some(Journal::before_run(files, root, is_shared, request.resume.as_deref()))
}

/// In a sandbox the files are the job's own; without one they lie among everybody's.
fn journal_root(
    files: JournalFiles,
    sandbox: &Sandbox,
    env: &BTreeMap<OsString, OsString>,
    kept: Option<&Path>,
) -> Option<(PathBuf, bool)> {
    if sandbox.missing().is_none() {
        return Some((kept?.join(files.folder).join(files.kept), false));
    }
    let variable = |name: &str| env.get(OsStr::new(name)).map(PathBuf::from);
    let home = files.variable.and_then(variable).or_else(|| Some(variable("HOME")?.join(files.folder)))?;
    Some((home.join(files.kept), true))
}

/// What a run that is over left in the files of its sessions, line by line. Whether one of them is that of the session.
pub(super) fn read_journals(
    files: JournalFiles,
    sandbox: &Sandbox,
    env: &BTreeMap<OsString, OsString>,
    run: &LeftRun,
    each: impl FnMut(&str),
) -> bool {
    journal_root(files, sandbox, env, Some(&run.sessions))
        .is_some_and(|root| Journal::read_whole(files, root, &run.session, each))
}

/// Before a session is loaded by a program that begins a file for it then, under a name that may be the old one's.
pub(super) fn set_sessions_aside(files: JournalFiles, launch: &Launch, sandbox: &Sandbox, session: &str) {
    if let Some((root, _)) = journal_root(files, sandbox, &launch.env, launch.view.kept.as_deref()) {
        journal::set_aside(files, root, session);
    }
}

struct Started {
    child: Child,
    tree: ProcessTree,
    guard: Option<Guard>,
}

fn spawn(mut launch: Launch, sandbox: &Sandbox) -> Result<Started, EngineFailure> {
    let stdin = launch.stdin.take().map_or_else(Stdio::null, Stdio::from);
    spawn_with(launch, sandbox, stdin)
}

fn spawn_with(mut launch: Launch, sandbox: &Sandbox, stdin: Stdio) -> Result<Started, EngineFailure> {
    let marker = match launch.env.get(OsString::from(RUN_MARKER).as_os_str()).and_then(|value| value.to_str())
    {
        Some(marker) => marker.to_owned(),
        None => random_marker()?,
    };
    launch.env.insert(RUN_MARKER.into(), marker.clone().into());
    launch.env.insert("PWD".into(), launch.dir.clone().into());
    let (program, dir) = (launch.program.clone(), launch.dir.clone());
    let Launch { args, env, view, .. } = launch;
    let inside = Enclosed { program: launch.program, args, env, dir: launch.dir, view };
    let (mut command, guard) =
        sandbox.command(inside).map_err(|error| not_spawned(&program, &dir, &error))?;
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let child = command.spawn().map_err(|error| not_spawned(&program, &dir, &error))?;
    let tree = ProcessTree::new(child.id(), marker, guard.is_some());
    Ok(Started { child, tree, guard })
}

fn not_spawned(program: &Path, dir: &Path, error: &std::io::Error) -> EngineFailure {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    let detail = format!("{} could not be started: {error}", program.display());
    if !dir.is_dir() {
        return EngineFailure::passing(FailReason::Infrastructure, "the work tree is not there");
    }
    match error.kind() {
        NotFound | PermissionDenied => EngineFailure::lasting(FailReason::NoEngine, detail),
        _ => EngineFailure::passing(FailReason::Infrastructure, detail),
    }
}

fn random_marker() -> Result<String, EngineFailure> {
    let random = getrandom::u64().map_err(|error| {
        EngineFailure::passing(FailReason::Infrastructure, format!("no randomness for a marker: {error}"))
    })?;
    Ok(format!("{:x}-{random:016x}", std::process::id()))
}
