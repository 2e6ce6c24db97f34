//! Engines that work on machines of somebody else's and are spoken to over HTTP: Devin, and whatever speaks our contract.
//!
//! They start no process here and change nothing in the work tree: they are given a branch of each repository, and whoever
//! started the run takes from it what they pushed. A session that we leave is ended, because it would go on costing money;
//! one that has finished is not.

mod api;
mod contract;
mod devin;

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{AccountId, FailReason, QuestionKind, Usd};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::{DevinConfig, RemoteConfig, UrlPrefix};
use super::engine::{
    Answer, Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox, Input,
    Preflight, Question, RemoteRepository, Secret, Stream, Usage,
};
use super::login::Login;
use super::process::{HostEnvironment, RUN_MARKER, overrun};
use super::sink::EventSink;
use api::{Api, NewSession, Seen, Session, State, is_session};

/// How often a session that waits for an answer is asked to continue without one.
const NUDGES: u32 = 2;
const NUDGE: &str = "Nobody is there to answer. Decide by yourself, finish the task and push it.";
/// To one that may be waiting for nothing but praise.
const DONE_QUESTION: &str = "If the task is finished and everything is pushed, answer with the one word `done`. Otherwise \
                             repeat what you need to know.";
/// How often the first call is made before the service counts as out of reach.
const TRIES: u32 = 3;
/// The longest that one of them is waited for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct RemoteEngine {
    name: String,
    kind: Kind,
    key: Option<Secret>,
}

#[derive(Debug)]
enum Kind {
    Devin(DevinConfig),
    Contract(RemoteConfig),
}

impl RemoteEngine {
    pub(super) fn devin(config: DevinConfig, host: &HostEnvironment) -> Self {
        let key = secret(host, &config.key_variable);
        Self { name: "devin".to_owned(), kind: Kind::Devin(config), key }
    }

    pub(super) fn contract(name: &str, config: RemoteConfig, host: &HostEnvironment) -> Self {
        let key = config.key_variable.as_deref().and_then(|variable| secret(host, variable));
        Self { name: name.to_owned(), kind: Kind::Contract(config), key }
    }

    fn key_variable(&self) -> Option<&str> {
        match &self.kind {
            Kind::Devin(config) => Some(&config.key_variable),
            Kind::Contract(config) => config.key_variable.as_deref(),
        }
    }

    const fn poll_interval(&self) -> Duration {
        Duration::from_millis(match &self.kind {
            Kind::Devin(config) => config.poll_interval_ms,
            Kind::Contract(config) => config.poll_interval_ms,
        })
    }

    fn address(&self) -> String {
        match &self.kind {
            Kind::Devin(config) => config.address(),
            Kind::Contract(config) => config.base_url.clone(),
        }
    }

    fn api(&self) -> Result<Box<dyn Api>, EngineFailure> {
        if let (Some(variable), None) = (self.key_variable(), &self.key) {
            return Err(EngineFailure::passing(FailReason::SignedOut, format!("{variable} is not set")));
        }
        Ok(match (&self.kind, self.key.clone()) {
            (Kind::Devin(config), key) => {
                Box::new(devin::Devin::new(config, key.unwrap_or_else(|| Secret::new("")))?)
            }
            (Kind::Contract(config), key) => {
                Box::new(contract::Contract::new(&self.name, &config.base_url, key)?)
            }
        })
    }

    /// Goes on with the session of an earlier run where it still can be, and begins a new one otherwise.
    async fn begin(
        &self,
        api: &dyn Api,
        request: &EngineRequest,
        sink: &mut EventSink,
    ) -> Result<Begun, EngineFailure> {
        let reference = reference(request)?;
        let text = instructions(request, &reference);
        if let Some(id) = request.resume.as_deref().filter(|id| is_session(id)) {
            match resume(api, id, &text).await {
                Ok(Some(seen)) => {
                    let (id, before) = (id.to_owned(), request.usage_before);
                    return Ok(Begun { id, url: None, before, seen });
                }
                Ok(None) => sink.note("the session to resume has ended; a new one is begun").await,
                Err(failure) if failure.retryable => return Err(failure),
                Err(failure) => {
                    let note =
                        format!("the session cannot be resumed ({}); a new one is begun", failure.detail);
                    sink.note(&note).await;
                }
            }
        }
        let wanted = NewSession {
            prompt: &text,
            reference: &reference,
            repositories: &request.repositories,
            most_usd: request.budget.usd,
            most_tokens: request.budget.tokens,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            match api.create(&wanted).await {
                Ok(created) if is_session(&created.id) => {
                    let (before, seen) = (Usage::default(), Seen::default());
                    return Ok(Begun { id: created.id, url: created.url, before, seen });
                }
                Ok(_) => {
                    let detail = format!("{} gave the session a name that cannot be asked for", self.name);
                    return Err(EngineFailure::lasting(FailReason::Crash, detail));
                }
                Err(failure) if failure.reason == FailReason::Infrastructure && tries < TRIES => {
                    let wait = failure.resets_in.unwrap_or_else(|| self.poll_interval());
                    tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

fn secret(host: &HostEnvironment, variable: &str) -> Option<Secret> {
    host.get(variable).and_then(|key| key.to_str()).map(Secret::new)
}

struct Begun {
    id: String,
    url: Option<String>,
    /// What the session had used up before this run.
    before: Usage,
    seen: Seen,
}

/// Marks everything of a run at the service.
fn reference(request: &EngineRequest) -> Result<String, EngineFailure> {
    let marker = request.env.iter().find(|(name, _)| name == RUN_MARKER).map(|(_, value)| value.as_str());
    let random = || {
        let number = getrandom::u64().map_err(|error| {
            EngineFailure::passing(FailReason::Infrastructure, format!("no randomness for a name: {error}"))
        })?;
        Ok(format!("{number:016x}"))
    };
    let marker = marker.map_or_else(random, |marker| Ok(marker.to_owned()))?;
    Ok(format!("giga-{}", marker.replace(|c: char| !c.is_ascii_alphanumeric(), "-")))
}

/// The prompt, and where the work is found and left.
fn instructions(request: &EngineRequest, reference: &str) -> String {
    let mut text = request.whole_prompt();
    if !request.repositories.is_empty() {
        text.push_str("\n\n---\n\nWhere to work:\n");
        let each = |repository: &RemoteRepository| {
            ["\n- repository ", &repository.url, "\n  branch ", &repository.branch, "\n"].concat()
        };
        text.extend(request.repositories.iter().map(each));
        text.push_str(
            "\nThe branch is there already and holds the state to start from. Check it out, commit on it, and push to exactly \
             this branch, without force. Nothing is taken from anywhere else: make no branch of your own and open no pull \
             request. What is pushed when you end is verified and reviewed.\n",
        );
    }
    text + "\n\nReference: " + reference + "\n"
}

/// `None` for a session that is over.
async fn resume(api: &dyn Api, id: &str, text: &str) -> Result<Option<Seen>, EngineFailure> {
    let mut seen = Seen::default();
    let session = api.session(id, &mut seen).await?;
    if matches!(session.state, State::Failed(_)) {
        return Ok(None);
    }
    api.message(id, text).await?;
    Ok(Some(seen))
}

#[async_trait]
impl Engine for RemoteEngine {
    fn login(&self) -> Login {
        self.key.as_ref().map_or(Login::Unnamed, |key| {
            Login::Known(AccountId::fingerprint(&self.name, key.expose().as_bytes()))
        })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn elsewhere(&self) -> Option<&[UrlPrefix]> {
        Some(match &self.kind {
            Kind::Devin(config) => &config.repositories,
            Kind::Contract(config) => &config.repositories,
        })
    }

    async fn preflight(&self) -> Preflight {
        let remedy = match (&self.kind, self.key_variable()) {
            (Kind::Devin(_), Some(variable)) => {
                format!("make an API key in Devin's settings and set {variable} for the factory")
            }
            (_, Some(variable)) => {
                format!("set {variable} for the factory to a key that {} takes", self.name)
            }
            (_, None) => format!("{} wants a key; name its variable with `key-variable`", self.name),
        };
        let answer = match self.api() {
            Ok(api) => api.check().await,
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(()) => Preflight::Ready { version: None },
            Err(failure) if failure.reason == FailReason::SignedOut => Preflight::NotSignedIn { remedy },
            Err(failure) => Preflight::Broken {
                detail: failure.detail,
                remedy: format!("see whether {} can be reached from here", self.address()),
            },
        }
    }

    async fn run(
        &self,
        request: EngineRequest,
        events: mpsc::Sender<EngineEvent>,
        inbox: Inbox,
        stop: CancellationToken,
    ) -> EngineReport {
        let nothing = |outcome| EngineReport {
            outcome,
            session_id: None,
            usage: Usage::default(),
            metered: true,
            summary: None,
        };
        let mut sink = EventSink::new(&request, self.key.as_slice(), events);
        let api = match self.api() {
            Ok(api) => api,
            Err(failure) => return nothing(EngineOutcome::Failed(failure)),
        };
        if stop.is_cancelled() {
            return nothing(EngineOutcome::Stopped);
        }
        // Not interrupted half way: a session that was made and whose name was lost could not be ended.
        let begun = match self.begin(&*api, &request, &mut sink).await {
            Ok(begun) => begun,
            Err(failure) => {
                let detail = sink.redact(&failure.detail);
                return nothing(EngineOutcome::Failed(EngineFailure { detail, ..failure }));
            }
        };
        let watch = Watch {
            name: &self.name,
            poll_interval: self.poll_interval(),
            api,
            sink,
            session_id: begun.id,
            before: begun.before,
            usage: Usage::default(),
            seen: begun.seen,
            state: None,
            changed_at: Instant::now(),
            waits: Waits::default(),
            summary: None,
            pull_request: None,
        };
        watch.follow(&request, begun.url, inbox, &stop).await
    }
}

/// What has been seen of a session.
struct Watch<'a> {
    name: &'a str,
    poll_interval: Duration,
    api: Box<dyn Api>,
    sink: EventSink,
    session_id: String,
    before: Usage,
    usage: Usage,
    seen: Seen,
    state: Option<State>,
    changed_at: Instant,
    waits: Waits,
    /// The agent's latest message.
    summary: Option<String>,
    pull_request: Option<String>,
}

/// What was done about a session that waits.
#[derive(Debug, Default)]
struct Waits {
    nudges: u32,
    asked_whether_done: bool,
    /// The question that a person has been asked.
    open: Option<String>,
}

impl Watch<'_> {
    async fn follow(
        mut self,
        request: &EngineRequest,
        url: Option<String>,
        inbox: Inbox,
        stop: &CancellationToken,
    ) -> EngineReport {
        self.sink.event(EngineEvent::Session { id: self.session_id.clone(), used_before: self.before }).await;
        if let Some(url) = url {
            self.sink.note(&format!("{} works at {url}", self.name)).await;
        }
        let end = tokio::select! {
            end = self.until_done(request, inbox) => end,
            () = stop.cancelled() => EngineOutcome::Stopped,
        };
        let left_running = match &end {
            EngineOutcome::Succeeded => false,
            EngineOutcome::Stopped => true,
            EngineOutcome::Failed(_) => !matches!(self.state, Some(State::Failed(_))),
        };
        if left_running && !self.ended_within(request.watchdog.kill_grace).await {
            let name = self.name;
            let note = format!(
                "{name} did not confirm that session {} has ended; look at it there",
                self.session_id
            );
            self.sink.note(&note).await;
        }
        let outcome = match end {
            EngineOutcome::Failed(failure) => {
                let detail = self.sink.redact(&failure.detail);
                EngineOutcome::Failed(EngineFailure { detail, ..failure })
            }
            other => other,
        };
        let mut summary = self.summary.unwrap_or_default();
        if let Some(url) = self.pull_request {
            let separator = if summary.is_empty() { "" } else { "\n" };
            summary = format!("{summary}{separator}pull request: {url}");
        }
        let summary = Some(self.sink.redact(&summary)).filter(|text| !text.is_empty());
        // The service counts behind the work: a session that is at work and costs nothing is not counted yet.
        let metered = match self.usage.cost {
            Some(Usd::ZERO) => outcome == EngineOutcome::Succeeded,
            figure => figure.is_some(),
        };
        EngineReport { outcome, session_id: Some(self.session_id), usage: self.usage, metered, summary }
    }

    /// Asked again and again until it is confirmed, or the time is over.
    async fn ended_within(&self, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        loop {
            match tokio::time::timeout_at(until, self.api.stop(&self.session_id)).await {
                Ok(Ok(())) => return true,
                Ok(Err(failure)) if failure.retryable => {
                    let next = Instant::now() + self.poll_interval.min(Duration::from_secs(1));
                    if next >= until {
                        return false;
                    }
                    tokio::time::sleep_until(next).await;
                }
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }

    async fn until_done(&mut self, request: &EngineRequest, mut inbox: Inbox) -> EngineOutcome {
        let start = Instant::now();
        loop {
            match self.api.session(&self.session_id, &mut self.seen).await {
                Ok(session) => {
                    if let Some(end) = self.look(session, &inbox).await {
                        return end;
                    }
                    if let Some(overrun) = overrun(self.usage, &request.budget) {
                        return failed(EngineFailure::lasting(FailReason::BudgetExceeded, overrun));
                    }
                }
                // The watchdogs see to it that this does not go on for ever.
                Err(failure) if failure.reason == FailReason::Infrastructure && failure.retryable => {
                    self.sink.note(&failure.detail).await;
                }
                Err(failure) => return failed(failure),
            }
            if self.waits.open.is_some() {
                // Whoever thinks about an answer is no sign of a session that hangs.
                self.changed_at = Instant::now();
            }
            if let Some(failure) = self.overdue(start, request) {
                return failed(failure);
            }
            let next = Instant::now() + self.poll_interval;
            while let Ok(input) = tokio::time::timeout_at(next, inbox.next()).await {
                if let Some(end) = self.pass_on(input).await {
                    return end;
                }
            }
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
    async fn look(&mut self, session: Session, inbox: &Inbox) -> Option<EngineOutcome> {
        for message in session.messages {
            self.changed_at = Instant::now();
            for line in message.text.lines() {
                self.sink.line(Stream::Stdout, &format!("{}: {line}", message.from), 0).await;
            }
            if message.is_agents {
                self.summary = Some(message.text);
            }
        }
        self.count(session.used).await;
        self.pull_request = session.pull_request.or(self.pull_request.take());
        if self.state.as_ref() != Some(&session.state) {
            self.changed_at = Instant::now();
            self.state = Some(session.state.clone());
        }
        match session.state {
            State::Working => {
                self.waits.open = None;
                None
            }
            State::Finished => Some(EngineOutcome::Succeeded),
            State::Failed(failure) => Some(failed(failure)),
            State::Waiting => self.waiting(inbox).await,
        }
    }

    async fn waiting(&mut self, inbox: &Inbox) -> Option<EngineOutcome> {
        if self.waits.open.is_some() {
            return None;
        }
        if self.api.waits_when_done() {
            let is_done = self.summary.as_deref().is_some_and(says_done);
            // With its pull request open, it waits for nothing but praise.
            if self.pull_request.is_some() || (is_done && self.waits.asked_whether_done) {
                return Some(EngineOutcome::Succeeded);
            }
            if !self.waits.asked_whether_done {
                self.waits.asked_whether_done = true;
                return self.say(DONE_QUESTION).await;
            }
        }
        let text = self.summary.clone().unwrap_or_else(|| "no details".to_owned());
        if inbox.is_open() {
            let id = format!("{}-{}", self.session_id, self.seen.count);
            self.waits.open = Some(id.clone());
            let question = Question {
                id,
                kind: QuestionKind::Question,
                text: self.sink.redact(&text),
                options: Vec::new(),
                default: Some(NUDGE.to_owned()),
            };
            self.sink.event(EngineEvent::Question(question)).await;
            return None;
        }
        if self.waits.nudges >= NUDGES {
            let detail = format!("{} waits for an answer: {text}", self.name);
            return Some(failed(EngineFailure::lasting(FailReason::Crash, detail)));
        }
        self.waits.nudges += 1;
        let name = self.name;
        self.sink.note(&format!("{name} asked a question; it is asked to continue on its own")).await;
        self.say(NUDGE).await
    }

    /// `Some` when nothing can be said to it any more.
    async fn say(&mut self, text: &str) -> Option<EngineOutcome> {
        match self.api.message(&self.session_id, text).await {
            Ok(()) => None,
            Err(failure) if failure.retryable => {
                self.sink.note(&failure.detail).await;
                None
            }
            Err(failure) => Some(failed(failure)),
        }
    }

    /// What is not confirmed comes again with the next run.
    async fn pass_on(&mut self, input: Input) -> Option<EngineOutcome> {
        let (seq, text) = match input {
            Input::Message { seq, by, text } => (seq, format!("{by}: {text}")),
            Input::Answer { seq, answer: Answer::Given { text, .. }, .. } => {
                self.waits.open = None;
                (seq, text)
            }
            // The run is about to be stopped.
            Input::Answer { answer: Answer::None, .. } => return None,
        };
        match self.api.message(&self.session_id, &text).await {
            Ok(()) => self.sink.event(EngineEvent::Delivered { seq }).await,
            Err(failure) if failure.retryable => self.sink.note(&failure.detail).await,
            Err(failure) => return Some(failed(failure)),
        }
        None
    }

    async fn count(&mut self, used: Option<Usage>) {
        let Some(total) = used else { return };
        // A session counts from its beginning.
        let tokens = total.tokens.checked_sub(self.before.tokens).unwrap_or(total.tokens);
        let cost = total.cost.map(|cost| {
            let before = self.before.cost.filter(|before| *before <= cost).unwrap_or_default();
            cost - before
        });
        let usage = Usage { tokens, cost };
        if usage != self.usage {
            self.usage = usage;
            self.sink.event(EngineEvent::Usage(usage)).await;
        }
    }
}

fn says_done(text: &str) -> bool {
    let word = text.trim().trim_matches(|c: char| !c.is_alphanumeric());
    word.eq_ignore_ascii_case("done")
}

const fn failed(failure: EngineFailure) -> EngineOutcome {
    EngineOutcome::Failed(failure)
}
