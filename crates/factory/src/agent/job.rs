//! One job on this machine, from its grant to the holder's final report.
//!
//! Whatever happens, exactly one final report is sent (report, fail or release), the work is saved first, and the folder
//! is removed afterwards. Work whose lease was lost is quarantined: kept here, never pushed, never reported.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use giga_api::inside;
use giga_api::wire::{self, Check, Checkpoint, EngineNotUsed, PatchRequest, RunReport, Stage};
use giga_domain::exit::words;
use giga_domain::{FailReason, NotUsed, PassedOver, Timestamp, limits};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::checks::Tail;
use super::ending::{Ending, RunFailure};
use super::final_report::{self, Handover, Receipt, plain};
use super::grant::Grant;
use super::inside::{JobSocket, Wanted};
use super::lease::{Held, LeaseKeeper, StopCause};
use super::log::RunLog;
use super::meter::Meter;
use super::raw_events::{self, RawEvents};
use super::secrets::RunSecrets;
use super::talk::Talk;
use super::{Shared, accounts, heartbeat, lease, plan::Work, recover, remote, save};
use crate::engines::{
    Engine, EngineEvent, EngineOutcome, EngineReport, EngineRequest, Inbox, RUN_MARKER, Secret, Stream,
    Transcript, Usage,
};
use crate::workspace::{RunResult, Start, WorkFolder, Worktree};

/// How long the rest of a log may take.
const LAST_LINES: Duration = Duration::from_secs(10);

/// The artifact that holds a run's changes, and how much of them it holds.
const DIFF_NAME: &str = "changes.diff";
const DIFF_BYTES: usize = 2 * 1024 * 1024;

/// Sessions of engines, kept for later runs of the same job; see `sweep`.
pub(super) const SESSIONS: &str = "sessions";

/// Where jobs without a repository work, and the file beside the tree of each that names its run.
pub(super) const SCRATCH: &str = "scratch";
pub(super) const SCRATCH_RUN: &str = "run";

/// Where the engine works: its repositories, or an empty folder for a job without one.
pub(super) enum Place {
    Repo(Box<WorkFolder>),
    Scratch { folder: PathBuf, tree: PathBuf },
}

impl Place {
    fn path(&self) -> PathBuf {
        match self {
            Self::Repo(folder) => folder.path(),
            Self::Scratch { tree, .. } => tree.clone(),
        }
    }

    /// Where the private home of a run goes: it is removed with the folder.
    fn home(&self) -> PathBuf {
        self.path().with_file_name("home")
    }

    fn borrowed(&self) -> Vec<PathBuf> {
        match self {
            Self::Repo(folder) => folder.trees().iter().flat_map(Worktree::borrowed_objects).collect(),
            Self::Scratch { .. } => Vec::new(),
        }
    }
}

/// Runs the job to its end. Never fails: what goes wrong is the job's ending.
pub(super) async fn run(shared: Arc<Shared>, grant: Grant, held: Held, seat: Option<OwnedSemaphorePermit>) {
    let (done, meter) = (CancellationToken::new(), Meter::default());
    let keeper =
        LeaseKeeper::start(shared.client.clone(), held.clone(), meter.clone(), &shared.drain, done.clone());
    // Until everything of this job is cleared away.
    let _seat = match seat {
        Some(seat) => seat,
        None => match seat_for(&shared, &keeper).await {
            Ok(seat) => seat,
            Err(ending) => {
                final_report::send(&shared, &held, &ending, &Handover::default()).await;
                done.cancel();
                return;
            }
        },
    };
    // Until everything of this job is cleared away, as the seat.
    let _place = tokio::select! {
        place = shared.places.enter(&held.job) => place,
        () = keeper.stop.cancelled() => {
            final_report::send(&shared, &held, &keeper.stopped(), &Handover::default()).await;
            done.cancel();
            return;
        }
    };
    let log = match RunLog::create(&shared.base.join("logs"), &held) {
        Ok(log) => log,
        Err(error) => {
            let failure = RunFailure::of_this_machine(format!("the log cannot be written: {error}"));
            let ending = blame(&shared, &held.job, Ending::Failed(failure)).await;
            final_report::send(&shared, &held, &ending, &Handover::default()).await;
            done.cancel();
            return;
        }
    };
    let ship_done = CancellationToken::new();
    let shipping = tokio::spawn(log.clone().ship(shared.client.clone(), held.clone(), ship_done.clone()));
    tracing::info!(job = held.job, epoch = held.epoch, name = grant.name, "running");
    log.note(&format!("{} on {}, epoch {}", grant.name, shared.id, held.epoch));

    let known = Mutex::new(grant.checkpoint.clone());
    let secrets = OnceLock::new();
    let raw_events = RawEvents::new(&shared.base.join("logs"), &held);
    let run = JobRun {
        shared: &shared,
        grant: &grant,
        held: &held,
        keeper: &keeper,
        log: &log,
        raw_events: &raw_events,
        meter: &meter,
        known: &known,
        secrets: &secrets,
    };
    let (ending, place) = run.work().await;
    run.finish(ending, place, ship_done, shipping).await;
    done.cancel();
}

/// The lease is kept meanwhile; whatever ends it ends the wait.
async fn seat_for(shared: &Shared, keeper: &LeaseKeeper) -> Result<OwnedSemaphorePermit, Ending> {
    tokio::select! {
        biased;
        () = keeper.stop.cancelled() => Err(keeper.stopped()),
        seat = shared.seats.clone().acquire_owned() => Ok(seat.expect("seats are never closed")),
    }
}

pub(super) struct JobRun<'a> {
    pub(super) shared: &'a Shared,
    pub(super) grant: &'a Grant,
    pub(super) held: &'a Held,
    pub(super) keeper: &'a LeaseKeeper,
    pub(super) log: &'a RunLog,
    raw_events: &'a RawEvents,
    pub(super) meter: &'a Meter,
    /// The job's checkpoint as the coordinator has it.
    pub(super) known: &'a Mutex<Option<Checkpoint>>,
    /// Once the work has started.
    pub(super) secrets: &'a OnceLock<RunSecrets>,
}

impl JobRun<'_> {
    async fn work(&self) -> (Ending, Option<Place>) {
        let known = self.shared.engines.known();
        let here = self.shared.accounts.here(&known, accounts::now());
        let work = match Work::of(self.grant, &self.shared.engines.ready(), &here) {
            Ok(work) => work,
            Err(failure) => return (Ending::Failed(failure), None),
        };
        if let Err(ending) = self.free_the_place(&work).await {
            return (ending, None);
        }
        let place = match self.prepare(&work).await {
            Ok(place) => place,
            Err(ending) => return (ending, None),
        };
        if let Err(ending) = self.start(&work).await {
            // Nothing was done in it, so there is nothing to keep: a grant that came too late leaves no trace.
            self.clear(place).await;
            return (ending, None);
        }
        let ending = match self.take_secrets(&work, &place).await {
            Ok(()) => Box::pin(self.engine_and_verify(&work, &place)).await,
            Err(ending) => ending,
        };
        (ending, Some(place))
    }

    /// Nothing of an earlier epoch may still run where this one is going to work.
    async fn free_the_place(&self, work: &Work) -> Result<(), Ending> {
        if let Some(earlier) =
            self.shared.workspace.worked_in_by(work.job).filter(|epoch| *epoch != work.epoch)
        {
            recover::kill_engine(&run_marker(&self.held.job, earlier.0)).await;
        }
        recover::clear_scratch_of(&self.scratch())
            .await
            .map_err(|error| Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string())))
    }

    /// The folder of a job without a repository: the same for every epoch, like that of any other.
    fn scratch(&self) -> PathBuf {
        self.shared.base.join(SCRATCH).join(&self.held.job)
    }

    async fn prepare(&self, work: &Work) -> Result<Place, Ending> {
        if work.repos.is_empty() {
            let folder = self.scratch();
            let tree = folder.join("tree");
            let made = std::fs::create_dir_all(&tree).and_then(|()| {
                std::fs::write(folder.join(SCRATCH_RUN), run_marker(&self.held.job, self.held.epoch))
            });
            return match made {
                Ok(()) => Ok(Place::Scratch { folder, tree }),
                Err(error) => {
                    let detail = format!("{}: {error}", tree.display());
                    Err(Ending::Failed(RunFailure::of_this_machine(detail)))
                }
            };
        }
        let mut repos = Vec::with_capacity(work.repos.len());
        for repo in &work.repos {
            repos.push((repo.clone(), self.shared.workspace.resolve(repo).await?));
        }
        remote::check_reach(&*work.engine, &repos).map_err(Ending::Failed)?;
        let log = self.log.clone();
        let workspace = self.shared.workspace.noting(move |text| log.note(text));
        let (base, checkpoint) = (work.base.as_deref(), work.checkpoint.as_ref());
        let folder = tokio::select! {
            folder = workspace.open_folder(work.job, work.epoch, &repos, base, checkpoint) => folder?,
            () = self.keeper.stop.cancelled() => return Err(self.keeper.stopped()),
        };
        let start = match folder.start() {
            Start::Fresh => "new work folder",
            Start::Resumed => "resumed from the checkpoint",
            Start::CheckpointMissing => "the checkpoint was not found; starting over",
        };
        self.log.note(&format!("{}: {start}", work.repos.join(", ")));
        Ok(Place::Repo(Box::new(folder)))
    }

    async fn start(&self, work: &Work) -> Result<(), Ending> {
        let now = accounts::now();
        let engine = work.engine.name();
        for passed in &work.passed_over {
            self.log.note(&format!("{passed}; {engine} runs it"));
        }
        let patch = PatchRequest {
            lease_epoch: self.held.epoch,
            stage: Some(Stage::Building),
            checkpoint: None,
            engine: Some(engine.to_owned()),
            model: work.model.clone().or_else(|| work.engine.model().map(str::to_owned)),
            passed_over: work.passed_over.iter().map(|passed| passed_over(passed, now)).collect(),
        };
        match self.shared.client.patch_job(&self.held.job, &patch).await {
            Ok(_) => Ok(()),
            Err(error) if lease::is_final(&error) => Err(Ending::Stopped(StopCause::LeaseLost)),
            Err(error) => Err(Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string()))),
        }
    }

    async fn engine_and_verify(&self, work: &Work, place: &Place) -> Ending {
        let saving = CancellationToken::new();
        let (socket, wanted) = self.open_socket().unzip();
        let engine = async {
            let report = self.engine(work, place, socket.as_ref()).await;
            saving.cancel();
            report
        };
        // A checkpoint under way is finished where it can be: a git that is cut off leaves its locks in the mirror.
        let (report, ()) = tokio::join!(engine, self.keep_saving(place, saving.clone(), wanted));
        let report = self.take_elsewhere(work, place, report).await;
        match report.outcome {
            EngineOutcome::Stopped => return self.keeper.stopped(),
            EngineOutcome::Failed(failure) => {
                self.log.note(&format!("the engine failed: {failure}"));
                self.shared.accounts.failed(work.engine.name(), &failure, accounts::now());
                if failure.reason.is_of_the_account() {
                    self.shared.heartbeat_hint.notify_one();
                }
                return Ending::Failed(failure.into());
            }
            EngineOutcome::Succeeded => self.shared.accounts.succeeded(work.engine.name(), accounts::now()),
        }
        if let (Place::Repo(folder), false) = (place, work.verify.is_empty())
            && let Err(error) = folder.engine_is_done().await
        {
            return error.into();
        }
        let mut checks = Vec::new();
        for command in &work.verify {
            match self.verify(work, place, command).await {
                Ok(check) => checks.push(check),
                Err(ending) => return ending,
            }
        }
        self.result(work, place, &report, checks).await
    }

    /// Where the job can ask this agent for something. It is nothing that a job cannot do without.
    fn open_socket(&self) -> Option<(JobSocket, mpsc::Receiver<Wanted>)> {
        self.shared.job_tools.as_ref()?;
        match JobSocket::open(&self.shared.base) {
            Ok(open) => Some(open),
            Err(error) => {
                tracing::warn!(job = self.held.job, %error, "the job cannot ask for checkpoints");
                None
            }
        }
    }

    async fn engine(&self, work: &Work, place: &Place, socket: Option<&JobSocket>) -> EngineReport {
        let mut request = EngineRequest::new(place.path(), work.prompt.clone());
        request.persona.clone_from(&work.persona);
        request.review.clone_from(&work.review);
        request.model.clone_from(&work.model);
        request.script.clone_from(&work.script);
        request.resume.clone_from(&work.session);
        request.usage_before = work.session_usage;
        request.budget = work.budget;
        request.permissions = work.permissions;
        request.env = resumed(place);
        if let (Some(tools), Some(_)) = (&self.shared.job_tools, self.job_token()) {
            let program = tools.program.display().to_string();
            request.env.push((inside::PROGRAM_VARIABLE.to_owned(), program));
            request.tool_server = Some(tools.clone());
        }
        if let Some(socket) = socket {
            request.env.push((inside::SOCKET_VARIABLE.to_owned(), socket.path().display().to_string()));
            request.shown.push(socket.folder().to_owned());
        }
        if let Err(report) = self.offer(work, place, &mut request).await {
            return *report;
        }
        if work.engine.stays_current() {
            self.meter.stays_current();
        }
        self.meter.begins(accounts::now());
        self.note_spend(place);
        let (talked, seen) = self.said_before().await;
        request.talked = talked;
        let (talk, inbox) = Talk::new(seen);
        request.sessions =
            Some(self.shared.base.join(SESSIONS).join(&self.held.job).join(work.engine.name()));
        let report = self.run_engine(&*work.engine, place, request, None, Some((&talk, inbox))).await;
        self.notice_account(work.engine.name(), &report);
        self.meter.ended(&report, work.reserved);
        self.note_spend(place);
        if !report.metered && !work.reserved.is_zero() {
            self.log.note("the engine did not report its usage: the full reserved amount counts as spent");
        }
        report
    }

    /// An engine whose account refuses it is not offered any more until it is seen to be signed in.
    fn notice_account(&self, engine: &str, report: &EngineReport) {
        match &report.outcome {
            EngineOutcome::Failed(failure) if failure.reason == FailReason::SignedOut => {
                self.shared.engines.refused(engine, &failure.detail);
                self.shared.heartbeat_hint.notify_one();
            }
            EngineOutcome::Failed(failure) if failure.reason == FailReason::NoEngine => {
                self.shared.engines.look_again();
            }
            EngineOutcome::Succeeded => self.shared.engines.accepted(engine),
            _ => {}
        }
    }

    /// Runs an engine and writes its output to the log; the output of a check also goes to `tail`.
    async fn run_engine(
        &self,
        engine: &dyn Engine,
        place: &Place,
        mut request: EngineRequest,
        mut tail: Option<&mut Tail>,
        talk: Option<(&Talk, Inbox)>,
    ) -> EngineReport {
        request.watchdog = self.shared.watchdog;
        request.home = Some(place.home());
        request.shown.extend(place.borrowed());
        request.shown.extend(self.shared.ca_cert.clone());
        request.env.extend(self.environment());
        request.redact = self.shared.secrets.iter().cloned().chain(self.job_token()).collect();
        request.asking = talk.is_some().then(|| self.asking());
        request.secrets = self.secrets.get().map(|secrets| secrets.given.clone()).unwrap_or_default();
        let mut transcript = engine.transcript();
        let (sender, mut events) = mpsc::channel(256);
        let (talk, inbox) = talk.map_or((None, Inbox::closed()), |(talk, inbox)| (Some(talk), inbox));
        let run = engine.run(request, sender, inbox, self.keeper.stop.clone());
        let listen = async {
            while let Some(event) = events.recv().await {
                match event {
                    EngineEvent::Output { line, stream } => {
                        let is_event = stream == Stream::Stdout;
                        let shown = transcript.as_mut().filter(|_| is_event).and_then(|t| t.line(&line));
                        match shown {
                            Some(shown) => {
                                self.raw_events.line(&line);
                                for line in &shown {
                                    self.log.line(line);
                                }
                            }
                            None => self.log.line(&line),
                        }
                        if let Some(tail) = &mut tail {
                            tail.line(&line);
                        }
                    }
                    EngineEvent::Note(note) => self.log.note(&note),
                    EngineEvent::Session { id, used_before } => {
                        tracing::debug!(job = self.held.job, session = id, "session");
                        self.meter.session(id, engine.name(), used_before);
                        self.note_spend(place);
                    }
                    EngineEvent::Model(model) => self.meter.worked_with(model),
                    EngineEvent::Windows(windows) => self.shared.accounts.used(engine.name(), windows),
                    EngineEvent::Usage(usage) => {
                        self.meter.used(usage);
                        self.note_spend(place);
                    }
                    EngineEvent::Question(question) => {
                        if let Some(talk) = talk {
                            self.ask_people(talk, question).await;
                        }
                    }
                    EngineEvent::Delivered { seq } => self.delivered(vec![seq]).await,
                }
            }
            for line in transcript.iter_mut().flat_map(Transcript::rest) {
                self.log.line(&line);
            }
        };
        let input = async {
            match talk {
                Some(talk) => self.bring_input(talk).await,
                None => std::future::pending().await,
            }
        };
        let both = async { tokio::join!(run, listen) };
        tokio::select! {
            (report, ()) = both => report,
            never = input => match never {},
        }
    }

    /// Of what runs inside the job. The job's own token is the only one in it.
    fn environment(&self) -> Vec<(String, String)> {
        let mut environment = vec![
            (RUN_MARKER.to_owned(), run_marker(&self.held.job, self.held.epoch)),
            ("GIGA_JOB_ID".to_owned(), self.held.job.clone()),
            ("GIGA_LEASE_EPOCH".to_owned(), self.held.epoch.to_string()),
        ];
        if let Some(token) = self.job_token() {
            environment.push(("GIGA_URL".to_owned(), self.shared.streams.url.clone()));
            if self.shared.streams.trust.allow_plain_http {
                environment.push(("GIGA_ALLOW_PLAIN_HTTP".to_owned(), "true".to_owned()));
            }
            if let Some(file) = &self.shared.ca_cert {
                environment.push(("GIGA_CA_CERT".to_owned(), file.display().to_string()));
            }
            environment.push(("GIGA_TOKEN".to_owned(), token.expose().to_owned()));
        }
        environment
    }

    /// A coordinator of an older version hands out none.
    pub(super) fn job_token(&self) -> Option<Secret> {
        Some(&self.grant.job_token).filter(|token| !token.is_empty()).map(Secret::new)
    }

    async fn verify(&self, work: &Work, place: &Place, command: &str) -> Result<Check, Ending> {
        self.log.note(&format!("verify: {command}"));
        let mut request = EngineRequest::new(place.path(), work.prompt.clone());
        // The command is what the manifest's author wrote for a shell; no field of the job is put into it.
        request.script = Some(command.to_owned());
        request.env = resumed(place);
        let (began, mut tail) = (Instant::now(), Tail::default());
        let Some(shell) = &work.shell else {
            let detail = "this factory runs no commands";
            return Err(Ending::Failed(RunFailure::new(FailReason::NoEngine, detail)));
        };
        let report = self.run_engine(&**shell, place, request, Some(&mut tail), None).await;
        match report.outcome {
            EngineOutcome::Succeeded => Ok(Check {
                command: command.to_owned(),
                passed: true,
                wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                output: tail.take(),
            }),
            EngineOutcome::Stopped => Err(self.keeper.stopped()),
            // Its output is in the log.
            EngineOutcome::Failed(failure) => {
                let detail = format!("`{command}`: {}", failure.detail);
                self.log.note(&format!("verify failed: {detail}"));
                Err(Ending::Failed(RunFailure::new(FailReason::VerifyFailed, detail)))
            }
        }
    }

    async fn result(&self, work: &Work, place: &Place, engine: &EngineReport, checks: Vec<Check>) -> Ending {
        let Usage { tokens, cost } = self.meter.usage();
        let mut report = RunReport {
            summary: engine.summary.as_deref().map(plain),
            model: self.meter.model().map(|model| plain(&model).chars().take(limits::NAME_CHARS).collect()),
            tokens: (tokens > 0).then_some(tokens),
            cost_usd: cost,
            cost_assumed: self.meter.is_assumed(),
            checks,
            ..RunReport::default()
        };
        let Place::Repo(folder) = place else { return Ending::Succeeded(Box::new(report)) };
        let body = engine.summary.as_deref().unwrap_or_default();
        match folder.commit_result(&work.title, body).await {
            Ok(Some(result)) => {
                if let Err(error) = folder.check_result(&result).await {
                    return error.into();
                }
                if let Err(ending) = self.confirm_hold().await {
                    return ending;
                }
                // What people are shown comes first: it is of this very commit, and nothing is there without it.
                report.unseen = self.keep_diff(folder, &result).await;
                if let Err(error) = folder.push_result(&result).await {
                    return error.into();
                }
                self.log.note(&format!(
                    "{} at {}: {} files, +{} -{}",
                    result.branch,
                    result.commit,
                    result.files_changed,
                    result.lines_added,
                    result.lines_removed
                ));
                if result.squashed {
                    self.log.note("its commits were not made on its base alone, so they are one commit now");
                }
                report.branch = Some(result.branch);
                report.commit = Some(result.commit.to_string());
                report.base = result.base.as_ref().map(ToString::to_string);
                report.repos = result.repos.iter().map(Into::into).collect();
                report.files_changed = u32::try_from(result.files_changed).ok();
                report.lines_added = u32::try_from(result.lines_added).ok();
                report.lines_removed = u32::try_from(result.lines_removed).ok();
                Ending::Succeeded(Box::new(report))
            }
            Ok(None) => {
                self.log.note("nothing was changed");
                Ending::Succeeded(Box::new(report))
            }
            Err(error) => error.into(),
        }
    }

    /// Asks before anything leaves this machine: an agent that was frozen finds its engine done and its lease gone, and
    /// of a job that was cancelled meanwhile nothing is wanted any more.
    async fn confirm_hold(&self) -> Result<(), Ending> {
        if self.keeper.stop.is_cancelled() {
            return Err(self.keeper.stopped());
        }
        match self.shared.client.renew(&self.held.job, self.held.epoch, self.meter.spend()).await {
            Ok(answer) => match lease::asked_to_stop(&answer) {
                Some(cause) => Err(Ending::Stopped(cause)),
                None => Ok(()),
            },
            Err(error) if lease::is_final(&error) => Err(Ending::Stopped(StopCause::LeaseLost)),
            Err(error) => Err(Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string()))),
        }
    }

    /// The changes as an artifact, so that whoever reviews them needs no checkout. Answers what it does not show.
    async fn keep_diff(&self, folder: &WorkFolder, result: &RunResult) -> Option<String> {
        let mut unseen = Vec::new();
        match folder.diff(result, DIFF_BYTES).await {
            Ok(diff) => {
                if diff.truncated {
                    unseen.push(format!("the diff is cut after {} MiB", DIFF_BYTES / (1024 * 1024)));
                }
                let note = if diff.truncated { "\n… cut here: the rest is on the branch\n" } else { "" };
                let bytes = (diff.text + note).into_bytes();
                let (job, epoch) = (&self.held.job, self.held.epoch);
                let kept = self.shared.client.put_artifact(job, epoch, DIFF_NAME, "text/x-diff", bytes).await;
                if let Err(error) = kept {
                    unseen.push(format!("the diff could not be kept: {error}"));
                }
            }
            Err(error) => unseen.push(format!("the diff could not be made: {error}")),
        }
        if !result.binary.is_empty() {
            let named = result.binary.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            unseen.push(format!("{} binary: {named}", result.binary.len()));
        }
        let unseen: String = plain(&unseen.join("; ")).chars().take(limits::NOTE_CHARS).collect();
        (!unseen.is_empty()).then_some(unseen)
    }

    /// As an artifact, while this run may still write.
    async fn hand_over_events(&self, ending: &Ending) {
        let Some(bytes) = self.raw_events.take() else { return };
        if matches!(ending, Ending::Stopped(StopCause::LeaseLost | StopCause::Cancelled)) {
            return;
        }
        let (job, epoch) = (&self.held.job, self.held.epoch);
        let put =
            self.shared.client.put_artifact(job, epoch, raw_events::NAME, raw_events::MEDIA_TYPE, bytes);
        match tokio::time::timeout(LAST_LINES, put).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => self.log.note(&format!("the engine's events could not be kept: {error}")),
            Err(_) => self.log.note("the engine's events could not be kept: the coordinator does not answer"),
        }
    }

    /// Saves or quarantines, ships the rest of the log, sends the final report, and cleans up.
    async fn finish(
        &self,
        ending: Ending,
        place: Option<Place>,
        ship_done: CancellationToken,
        shipping: tokio::task::JoinHandle<()>,
    ) {
        let ending = match self.secrets.get() {
            Some(secrets) => secrets.clean(ending),
            None => ending,
        };
        let ending = blame(self.shared, &self.held.job, ending).await;
        let saved = match (&ending, &place) {
            (Ending::Succeeded(report), _) => save::result_checkpoint(report),
            (Ending::Stopped(StopCause::LeaseLost | StopCause::Cancelled), _) | (_, None) => None,
            (Ending::Stopped(_), Some(place)) => self.save_with_deadline(place, "at the end of a run").await,
            (Ending::Failed(_), Some(place)) => self.save(place, "at the end of a run").await,
        };
        let handover = Handover {
            checkpoint: self.checkpoint_after(&ending, saved),
            spend: self.meter.spend(),
            assumed: self.meter.is_assumed(),
        };
        self.hand_over_events(&ending).await;
        self.log.note(&describe(&ending));
        ship_done.cancel();
        // A log that cannot be shipped must not hold the job up.
        let _ = tokio::time::timeout(LAST_LINES, shipping).await;
        let receipt = final_report::send(self.shared, self.held, &ending, &handover).await;
        match place {
            Some(Place::Repo(folder)) => self.leave(*folder, receipt).await,
            Some(scratch @ Place::Scratch { .. }) => self.clear(scratch).await,
            None => {}
        }
    }

    async fn clear(&self, place: Place) {
        let cleared = match place {
            Place::Repo(folder) => folder.remove().await.map_err(|error| error.to_string()),
            Place::Scratch { folder, .. } => {
                std::fs::remove_dir_all(folder).map_err(|error| error.to_string())
            }
        };
        if let Err(error) = cleared {
            tracing::warn!(job = self.held.job, error, "a work folder could not be removed");
        }
    }

    async fn leave(&self, folder: WorkFolder, receipt: Receipt) {
        match receipt {
            Receipt::Accepted => {}
            Receipt::Fenced => match folder.quarantine("the lease was lost").await {
                Ok(branch) => {
                    tracing::warn!(job = self.held.job, branch, "fenced: the work is in quarantine");
                }
                Err(error) => {
                    tracing::error!(job = self.held.job, %error, "fenced, and quarantine failed; the folder is kept");
                    return;
                }
            },
            // The folder is kept, and the next start asks the coordinator what became of the job.
            Receipt::Unanswered => return,
        }
        self.clear(Place::Repo(Box::new(folder))).await;
    }
}

/// Times as lengths: the coordinator's clock is another one.
fn passed_over(passed: &PassedOver, now: Timestamp) -> wire::PassedOver {
    let (reason, until) = match passed.why {
        NotUsed::Missing => (EngineNotUsed::Missing, None),
        NotUsed::SignedOut => (EngineNotUsed::SignedOut, None),
        NotUsed::OutOfQuota { until } => (EngineNotUsed::OutOfQuota, until),
    };
    let opens_in_ms = until.and_then(|until| u64::try_from(until.since(now).as_millis()).ok());
    wire::PassedOver { engine: passed.engine.clone(), reason, opens_in_ms }
}

/// A job that failed because this machine is down says nothing about the job: it is released, after the coordinator knows that
/// this machine takes nothing more.
async fn blame(shared: &Shared, job: &str, ending: Ending) -> Ending {
    match ending {
        Ending::Failed(failure) if shared.health.failed(job, &failure) => {
            tracing::error!(detail = failure.detail, "this machine is down; the job is released");
            heartbeat::send_now(shared).await;
            Ending::Stopped(StopCause::MachineDown)
        }
        Ending::Succeeded(report) => {
            shared.health.worked();
            Ending::Succeeded(report)
        }
        other => other,
    }
}

/// Whether the folder holds the work of an earlier run: a script may have to go on from it.
fn resumed(place: &Place) -> Vec<(String, String)> {
    let resumed = matches!(place, Place::Repo(folder) if folder.start() == Start::Resumed);
    vec![("GIGA_RESUMED".to_owned(), u8::from(resumed).to_string())]
}

/// Marks every process that a run starts, so that a later agent can find them.
pub(super) fn run_marker(job: &str, epoch: u64) -> String {
    format!("{job}.{epoch}")
}

fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Succeeded(_) => "succeeded".to_owned(),
        Ending::Failed(failure) => format!("failed: {}", words(failure.reason, Some(&failure.detail))),
        Ending::Stopped(cause) => format!("stopped: {cause:?}"),
    }
}
