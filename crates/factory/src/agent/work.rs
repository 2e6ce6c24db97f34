//! The engine's turn and the checks after it: what each is given, and what is done about what they say.

use std::time::Instant;

use giga_api::inside;
use giga_api::wire::Check;
use giga_domain::FailReason;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::accounts;
use super::checks::Tail;
use super::ending::{Ending, RunFailure};
use super::inside::{JobSocket, Wanted};
use super::job::{JobRun, run_marker};
use super::place::Place;
use super::plan::Work;
use super::talk::Talk;
use crate::engines::{
    Engine, EngineEvent, EngineOutcome, EngineReport, EngineRequest, Inbox, RUN_MARKER, Secret, Stream,
    Transcript,
};
use crate::workspace::Start;

/// Sessions of engines, kept for later runs of the same job; see `sweep`.
pub(super) const SESSIONS: &str = "sessions";

impl JobRun<'_> {
    pub(super) async fn engine_and_verify(&self, work: &Work, place: &Place) -> Ending {
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
}

/// Whether the folder holds the work of an earlier run: a script may have to go on from it.
fn resumed(place: &Place) -> Vec<(String, String)> {
    let resumed = matches!(place, Place::Repo(folder) if folder.start() == Start::Resumed);
    vec![("GIGA_RESUMED".to_owned(), u8::from(resumed).to_string())]
}
