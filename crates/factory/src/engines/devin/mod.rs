//! Devin: an engine that works on its own machines and is spoken to over HTTP.
//!
//! It starts no process here and changes nothing in the work tree: what it did is in its pull request, which the
//! summary names. A session that we leave is terminated, because it would go on costing money; one that has finished
//! is not.

mod client;

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{FailReason, Usd};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::DevinConfig;
use super::engine::{
    Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox, Preflight, Secret,
    Stream, Usage,
};
use super::process::{HostEnvironment, overrun};
use super::sink::EventSink;
use client::{Client, Session};

/// How often a session that waits for an answer is asked to continue without one.
const NUDGES: u32 = 2;
const NUDGE: &str =
    "Nobody is there to answer. Decide by yourself, finish the task and open the pull request.";
/// How often the first call is made before the service counts as out of reach.
const TRIES: u32 = 3;

#[derive(Debug)]
pub(super) struct Devin {
    config: DevinConfig,
    key: Option<Secret>,
}

/// What has been seen of a session.
struct Watch<'a> {
    config: &'a DevinConfig,
    client: Client,
    sink: EventSink,
    session_id: String,
    before: Usage,
    usage: Usage,
    logged: usize,
    status: Option<String>,
    changed_at: Instant,
    nudges: u32,
    summary: Option<String>,
}

impl Devin {
    pub(super) fn new(config: DevinConfig, host: &HostEnvironment) -> Self {
        let key = host.get(&config.key_variable).and_then(|key| key.to_str()).map(Secret::new);
        Self { config, key }
    }

    fn client(&self) -> Result<Client, EngineFailure> {
        let key = self.key.clone().ok_or_else(|| {
            EngineFailure::lasting(FailReason::NoEngine, format!("{} is not set", self.config.key_variable))
        })?;
        Client::new(&self.config.base_url, key)
    }

    /// Resumes by a message, begins by a new session.
    async fn begin(
        &self,
        client: &Client,
        request: &EngineRequest,
    ) -> Result<(String, Option<String>), EngineFailure> {
        if let Some(id) = request.resume.as_deref().filter(|id| is_session(id)) {
            client.message(id, &request.whole_prompt()).await?;
            return Ok((id.to_owned(), None));
        }
        let most_acus = match (request.budget.usd, self.config.usd_per_acu) {
            (Some(cap), Some(price)) if !price.is_zero() => {
                Some((cap.micros() / price.micros()).max(1).unsigned_abs())
            }
            _ => None,
        };
        let prompt = request.whole_prompt();
        let mut tries = 0;
        loop {
            tries += 1;
            match client.create(&prompt, most_acus).await {
                Ok(created) if is_session(&created.session_id) => {
                    return Ok((created.session_id, created.url));
                }
                Ok(_) => {
                    let detail = "Devin gave the session a name that cannot be asked for";
                    return Err(EngineFailure::lasting(FailReason::Crash, detail));
                }
                Err(failure) if failure.retryable && tries < TRIES => {
                    tokio::time::sleep(self.config.poll_interval()).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// It becomes part of a path.
fn is_session(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 200
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

#[async_trait]
impl Engine for Devin {
    fn name(&self) -> &'static str {
        "devin"
    }

    async fn preflight(&self) -> Preflight {
        let variable = &self.config.key_variable;
        let remedy = format!("make an API key in Devin's settings and set {variable} for the factory");
        if self.key.is_none() {
            return Preflight::NotSignedIn { remedy };
        }
        let answer = match self.client() {
            Ok(client) => client.check().await,
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(()) => Preflight::Ready { version: None },
            Err(failure) if failure.reason == FailReason::NoEngine => Preflight::NotSignedIn { remedy },
            Err(failure) => Preflight::Broken {
                detail: failure.detail,
                remedy: format!("see whether {} can be reached from here", self.config.base_url),
            },
        }
    }

    async fn run(
        &self,
        request: EngineRequest,
        events: mpsc::Sender<EngineEvent>,
        _inbox: Inbox,
        stop: CancellationToken,
    ) -> EngineReport {
        let nothing = |outcome| EngineReport {
            outcome,
            session_id: None,
            usage: Usage::default(),
            metered: true,
            summary: None,
        };
        let sink = EventSink::new(&request, self.key.as_slice(), events);
        let client = match self.client() {
            Ok(client) => client,
            Err(failure) => return nothing(EngineOutcome::Failed(failure)),
        };
        // Not interrupted half way: a session that was made and whose name was lost could not be ended.
        let begun = self.begin(&client, &request);
        let begun = if stop.is_cancelled() { return nothing(EngineOutcome::Stopped) } else { begun.await };
        let (session_id, url) = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                let detail = sink.redact(&failure.detail);
                return nothing(EngineOutcome::Failed(EngineFailure { detail, ..failure }));
            }
        };
        let before = if request.resume.is_some() { request.usage_before } else { Usage::default() };
        let watch = Watch {
            config: &self.config,
            client,
            sink,
            session_id,
            before,
            usage: Usage::default(),
            logged: 0,
            status: None,
            changed_at: Instant::now(),
            nudges: 0,
            summary: None,
        };
        watch.follow(&request, url, &stop).await
    }
}

impl Watch<'_> {
    async fn follow(
        mut self,
        request: &EngineRequest,
        url: Option<String>,
        stop: &CancellationToken,
    ) -> EngineReport {
        self.sink.event(EngineEvent::Session { id: self.session_id.clone(), used_before: self.before }).await;
        if let Some(url) = url {
            self.sink.note(&format!("Devin works at {url}")).await;
        }
        let end = tokio::select! {
            end = self.until_done(request) => end,
            () = stop.cancelled() => EngineOutcome::Stopped,
        };
        let left_running = match &end {
            EngineOutcome::Succeeded => false,
            EngineOutcome::Stopped => true,
            EngineOutcome::Failed(failure) => {
                matches!(failure.reason, FailReason::Timeout | FailReason::BudgetExceeded)
            }
        };
        if left_running {
            let gone =
                tokio::time::timeout(request.watchdog.kill_grace, self.client.terminate(&self.session_id))
                    .await;
            if !matches!(gone, Ok(Ok(()))) {
                self.sink
                    .note("Devin did not confirm that the session is terminated; look at it there")
                    .await;
            }
        }
        let outcome = match end {
            EngineOutcome::Failed(failure) => {
                let detail = self.sink.redact(&failure.detail);
                EngineOutcome::Failed(EngineFailure { detail, ..failure })
            }
            other => other,
        };
        let summary = self.summary.as_deref().map(|text| self.sink.redact(text));
        // The service counts behind the work: a session that is at work and costs nothing is not counted yet.
        let metered = match self.usage.cost {
            Some(Usd::ZERO) => outcome == EngineOutcome::Succeeded,
            figure => figure.is_some(),
        };
        EngineReport { outcome, session_id: Some(self.session_id), usage: self.usage, metered, summary }
    }

    async fn until_done(&mut self, request: &EngineRequest) -> EngineOutcome {
        let start = Instant::now();
        loop {
            match self.client.session(&self.session_id).await {
                Ok(session) => {
                    if let Some(end) = self.look(session).await {
                        return end;
                    }
                    if let Some(overrun) = overrun(self.usage, &request.budget) {
                        return failed(EngineFailure::lasting(FailReason::BudgetExceeded, overrun));
                    }
                }
                // The watchdogs see to it that this does not go on for ever.
                Err(failure) if failure.retryable => self.sink.note(&failure.detail).await,
                Err(failure) => return failed(failure),
            }
            if let Some(failure) = self.overdue(start, request) {
                return failed(failure);
            }
            tokio::time::sleep(self.config.poll_interval()).await;
        }
    }

    fn overdue(&self, start: Instant, request: &EngineRequest) -> Option<EngineFailure> {
        let (ran, quiet) = (start.elapsed(), self.changed_at.elapsed());
        let cap = request.budget.wall_ms.map(Duration::from_millis);
        if cap.is_some_and(|cap| ran >= cap) {
            let detail = format!("the run reached the job's cap of {:?}", cap.unwrap_or_default());
            Some(EngineFailure::lasting(FailReason::BudgetExceeded, detail))
        } else if ran >= request.watchdog.wall {
            let detail = format!("the run was still going after {:?}", request.watchdog.wall);
            Some(EngineFailure::lasting(FailReason::Timeout, detail))
        } else if quiet >= request.watchdog.idle {
            let detail = format!("nothing changed in the session for {:?}", request.watchdog.idle);
            Some(EngineFailure::passing(FailReason::Timeout, detail))
        } else {
            None
        }
    }

    /// Tells what is new; `Some` when the session has come to an end.
    async fn look(&mut self, session: Session) -> Option<EngineOutcome> {
        for message in session.messages.iter().skip(self.logged) {
            self.changed_at = Instant::now();
            for line in message.message.lines() {
                self.sink.line(Stream::Stdout, &format!("{}: {line}", message.kind), 0).await;
            }
            if message.kind == "devin_message" {
                self.summary = Some(message.message.clone());
            }
        }
        self.logged = self.logged.max(session.messages.len());
        self.count(session.acus_consumed).await;
        if session.status_enum != self.status {
            self.changed_at = Instant::now();
            self.status.clone_from(&session.status_enum);
        }
        let pull_request = session.pull_request.filter(|request| !request.url.is_empty());
        match session.status_enum.as_deref() {
            Some("finished") => Some(self.done(pull_request.map(|request| request.url))),
            // With its pull request open, it waits for nothing but praise.
            Some("blocked") if pull_request.is_some() => {
                Some(self.done(pull_request.map(|request| request.url)))
            }
            Some("blocked") => self.nudge().await,
            Some("expired") => {
                let detail = "the session expired before it was finished";
                Some(failed(EngineFailure::passing(FailReason::Infrastructure, detail)))
            }
            _ => None,
        }
    }

    fn done(&mut self, pull_request: Option<String>) -> EngineOutcome {
        if let Some(url) = pull_request {
            let text = self.summary.take().unwrap_or_default();
            self.summary = Some(format!("{text}\npull request: {url}").trim().to_owned());
        }
        EngineOutcome::Succeeded
    }

    async fn nudge(&mut self) -> Option<EngineOutcome> {
        if self.nudges >= NUDGES {
            let text = self.summary.clone().unwrap_or_else(|| "no details".to_owned());
            let detail = format!("Devin waits for an answer: {text}");
            return Some(failed(EngineFailure::lasting(FailReason::Crash, detail)));
        }
        self.nudges += 1;
        match self.client.message(&self.session_id, NUDGE).await {
            Ok(()) => {
                self.sink.note("Devin asked a question; it was asked to continue on its own").await;
                None
            }
            Err(failure) if failure.retryable => None,
            Err(failure) => Some(failed(failure)),
        }
    }

    async fn count(&mut self, acus: Option<f64>) {
        let acus = acus.filter(|acus| acus.is_finite() && *acus >= 0.0);
        let (Some(acus), Some(price)) = (acus, self.config.usd_per_acu) else { return };
        let total = Usd::from_f64(acus * price.as_f64()).unwrap_or(Usd::MAX);
        // A session counts from its beginning.
        let before = self.before.cost.filter(|before| *before <= total).unwrap_or_default();
        let cost = total - before;
        let usage = Usage { tokens: 0, cost: Some(cost) };
        if usage != self.usage {
            self.usage = usage;
            self.sink.event(EngineEvent::Usage(usage)).await;
        }
    }
}

const fn failed(failure: EngineFailure) -> EngineOutcome {
    EngineOutcome::Failed(failure)
}
