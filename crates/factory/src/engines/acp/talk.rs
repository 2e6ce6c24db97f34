//! One conversation with an agent: greeting, session, prompt, and what it says and asks in between.
//!
//! Everything that the agent sends is read while anything is waited for, so that neither side can hold the other up. Whatever
//! cannot be read means nothing: agents add to the protocol with every release.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, NewSessionRequest, PermissionOption, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigValueId, SessionId, SessionNotification, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines, UntypedMessage};
use futures::StreamExt as _;
use giga_domain::{FailReason, Permissions, QuestionKind};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::permission;
use super::updates::Reader;
use super::usage::Meter;
use super::{Task, session_meta};
use crate::engines::acp::AcpConfig;
use crate::engines::engine::{
    Answer, EngineEvent, EngineFailure, EngineRequest, Inbox, Input, Question, Stream, Usage,
};
use crate::engines::process::{Connection, Line, overrun};
use crate::engines::sink::EventSink;

/// Messages of the agent's that wait to be read here.
const WAITING: usize = 64;
/// While a person thinks, the silence of the agent is no sign of trouble.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A history has been repeated once nothing has come for so long, or it takes too long.
const QUIET: Duration = Duration::from_millis(500);
const LONGEST_REPLAY: Duration = Duration::from_secs(10);
/// How long an agent may take to say that it has stopped.
const LAST_WORD: Duration = Duration::from_secs(5);

pub(super) type Talked<T = Ended> = Result<T, Error>;

#[derive(Debug)]
pub(super) enum Ended {
    Done,
    Failed(EngineFailure),
    /// Somebody asked for it.
    HungUp,
}

/// What an agent sends by itself.
enum Heard {
    Update(Box<SessionUpdate>),
    Asks(Box<(RequestPermissionRequest, Responder<RequestPermissionResponse>)>),
}

pub(super) struct Talk<'a> {
    config: &'a AcpConfig,
    request: &'a EngineRequest,
    resume: Option<&'a str>,
    prompts: &'a (String, String),
    obeys_repository: bool,
    permissions: Permissions,
    sink: EventSink,
    meter: Meter<'a>,
    told: Usage,
    reader: Reader,
    session: Option<SessionId>,
    /// A history that is being repeated.
    replaying: bool,
    /// What people were asked, and whom their answers are for.
    asked: BTreeMap<String, Asked>,
    questions: u32,
    /// What people said, for the next turn.
    said: Vec<(u64, String)>,
    step: &'static str,
    prompted: bool,
}

struct Asked {
    options: Vec<PermissionOption>,
    responder: Responder<RequestPermissionResponse>,
}

/// The other side, while it is talked to.
struct Peer<'a> {
    agent: ConnectionTo<Agent>,
    heard: mpsc::Receiver<Heard>,
    inbox: &'a mut Inbox,
    alive: tokio::sync::watch::Sender<Instant>,
    hang_up: tokio_util::sync::CancellationToken,
    alarm: mpsc::Sender<EngineFailure>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(task: &'a Task<'_>, request: &'a EngineRequest, sink: EventSink) -> Self {
        let model = request.model.clone().or_else(|| task.config.model.clone());
        Self {
            config: task.config,
            request,
            resume: task.session,
            prompts: &task.prompts,
            obeys_repository: task.obeys_repository,
            permissions: request.permissions.unwrap_or(task.config.permissions),
            sink,
            meter: Meter::new(task.prices, model, task.before),
            told: Usage::default(),
            reader: Reader::new(task.config.account.and_then(|program| program.cli().is_notice())),
            session: None,
            replaying: false,
            asked: BTreeMap::new(),
            questions: 0,
            said: Vec::new(),
            step: "starting",
            prompted: false,
        }
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_ref().map(|id| &*id.0)
    }

    pub(super) fn usage(&self) -> Usage {
        self.meter.usage()
    }

    pub(super) const fn is_metered(&self) -> bool {
        self.config.reports_usage && self.meter.is_whole()
    }

    /// Nothing was asked of a model, or it has not said anything yet.
    pub(super) const fn is_unanswered(&self) -> bool {
        !self.reader.answered
    }

    pub(super) const fn was_asked(&self) -> bool {
        self.prompted
    }

    pub(super) fn reply(&self) -> Option<&str> {
        self.reader.reply()
    }

    /// What was being done, for people.
    pub(super) const fn step(&self) -> &'static str {
        self.step
    }

    pub(super) async fn run(&mut self, line: Connection, inbox: &mut Inbox) -> Talked {
        connected(line, inbox, async |peer| self.converse(peer).await).await
    }

    /// As far as a session; answers the agent's version.
    pub(super) async fn greet(&mut self, line: Connection) -> Talked<Option<String>> {
        let mut inbox = Inbox::closed();
        connected(line, &mut inbox, async |peer| {
            let greeted = self.initialize(peer).await?;
            self.step = "beginning a session";
            let new = self.new_session();
            self.wait(peer, peer.agent.send_request(new).block_task()).await?;
            Ok(greeted.agent_info.map(|info| info.version))
        })
        .await
    }

    async fn converse(&mut self, peer: &mut Peer<'_>) -> Talked {
        let greeted = self.initialize(peer).await?;
        let resumed = self.open(peer, &greeted).await?;
        let prompts = self.prompts;
        let mut text = if resumed { prompts.0.clone() } else { prompts.1.clone() };
        loop {
            if let Some(end) = self.turn(peer, text).await? {
                return Ok(end);
            }
            // Whoever spoke while it worked is heard now.
            let Some(next) = self.next_words(peer).await else { return Ok(Ended::Done) };
            text = next;
        }
    }

    async fn initialize(&mut self, peer: &mut Peer<'_>) -> Talked<InitializeResponse> {
        self.step = "greeting";
        let us = Implementation::new("gigafactory", env!("CARGO_PKG_VERSION"));
        // Neither files nor terminals: the agent has its own, in the sandbox.
        let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(us);
        let greeted = self.wait(peer, peer.agent.send_request(hello).block_task()).await?;
        if greeted.protocol_version != ProtocolVersion::V1 {
            let text = format!("it speaks version {:?} of the protocol, and not 1", greeted.protocol_version);
            return Err(Error::invalid_request().data(text));
        }
        if let Some(info) = &greeted.agent_info {
            self.sink.note(&format!("{} {}", info.title.as_ref().unwrap_or(&info.name), info.version)).await;
        }
        Ok(greeted)
    }

    /// Goes on with a session or begins one; whether it goes on.
    async fn open(&mut self, peer: &mut Peer<'_>, greeted: &InitializeResponse) -> Talked<bool> {
        let mut options = None;
        if let Some(id) = self.resume {
            match self.go_on(peer, greeted, id).await {
                Ok(Some(found)) => options = Some(found),
                Ok(None) => self.sink.note("the agent cannot resume sessions; a new one is begun").await,
                Err(error) => {
                    let why = super::failure_of(&error, self.step).detail;
                    let note = format!("the session cannot be resumed ({why}); a new one is begun");
                    self.sink.note(&note).await;
                }
            }
        }
        let resumed = options.is_some();
        let options = if let Some(options) = options {
            options
        } else {
            self.step = "beginning a session";
            self.meter.begins_anew();
            let new = self.new_session();
            let begun = self.wait(peer, peer.agent.send_request(new).block_task()).await?;
            self.session = Some(begun.session_id);
            begun.config_options.unwrap_or_default()
        };
        let (id, used_before) = (self.id().to_string(), self.meter.before());
        self.sink.event(EngineEvent::Session { id, used_before }).await;
        self.set_up(peer, &options).await?;
        Ok(resumed)
    }

    fn new_session(&self) -> NewSessionRequest {
        NewSessionRequest::new(&self.request.dir)
            .meta(session_meta(self.config.account, self.obeys_repository))
    }

    /// `None` where the agent cannot.
    async fn go_on(
        &mut self,
        peer: &mut Peer<'_>,
        greeted: &InitializeResponse,
        id: &str,
    ) -> Talked<Option<Vec<SessionConfigOption>>> {
        self.step = "resuming the session";
        let (id, dir) = (SessionId::new(id), &self.request.dir);
        let meta = session_meta(self.config.account, self.obeys_repository);
        let capabilities = &greeted.agent_capabilities;
        self.replaying = true;
        let found = if capabilities.session_capabilities.resume.is_some() {
            let resume = ResumeSessionRequest::new(id.clone(), dir).meta(meta);
            let resumed = self.wait(peer, peer.agent.send_request(resume).block_task()).await;
            resumed.map(|resumed| Some(resumed.config_options))
        } else if capabilities.load_session {
            let load = LoadSessionRequest::new(id.clone(), dir).meta(meta);
            let loaded = self.wait(peer, peer.agent.send_request(load).block_task()).await;
            self.until_quiet(peer).await;
            loaded.map(|loaded| Some(loaded.config_options))
        } else {
            Ok(None)
        };
        self.drain(peer).await;
        self.replaying = false;
        let found = found?;
        if found.is_some() {
            self.session = Some(id);
        }
        Ok(found.map(Option::unwrap_or_default))
    }

    /// The mode and the model that the operator or the job wants.
    async fn set_up(&mut self, peer: &mut Peer<'_>, options: &[SessionConfigOption]) -> Talked<()> {
        if let Some(mode) = self.config.mode.clone() {
            self.step = "setting the mode";
            let set = SetSessionModeRequest::new(self.id().clone(), mode);
            self.wait(peer, peer.agent.send_request(set).block_task()).await?;
        }
        if let Some(model) = self.request.model.clone().or_else(|| self.config.model.clone()) {
            self.step = "choosing the model";
            let is_model = |option: &&SessionConfigOption| {
                option.category == Some(SessionConfigOptionCategory::Model) || &*option.id.0 == "model"
            };
            if let Some(option) = options.iter().find(is_model) {
                let value = SessionConfigValueId::new(model);
                let set = SetSessionConfigOptionRequest::new(self.id().clone(), option.id.clone(), value);
                self.wait(peer, peer.agent.send_request(set).block_task()).await?;
            } else {
                // From before there were options; most agents know it.
                let set = serde_json::json!({ "sessionId": self.id(), "modelId": model });
                let set = UntypedMessage::new("session/set_model", set)?;
                self.wait(peer, peer.agent.send_request(set).block_task()).await?;
            }
        }
        Ok(())
    }

    /// `Some` unless people have something to say.
    async fn turn(&mut self, peer: &mut Peer<'_>, text: String) -> Talked<Option<Ended>> {
        self.step = "working";
        self.prompted = true;
        let prompt = PromptRequest::new(self.id().clone(), vec![ContentBlock::Text(TextContent::new(text))]);
        let answer = peer.agent.send_request(prompt).block_task();
        let mut answer = pin!(answer);
        let hang_up = peer.hang_up.clone();
        let response = tokio::select! {
            response = self.wait(peer, &mut answer) => response?,
            () = hang_up.cancelled() => {
                self.refuse_all();
                peer.agent.send_notification(CancelNotification::new(self.id().clone()))?;
                let last = tokio::time::timeout(LAST_WORD, self.wait(peer, &mut answer)).await;
                if let Ok(Ok(response)) = last {
                    self.meter.turn(&response);
                    self.tell_usage(peer).await;
                }
                return Ok(Some(Ended::HungUp));
            }
        };
        self.drain(peer).await;
        for line in self.reader.flush() {
            self.sink.line(Stream::Stdout, &line, 0).await;
        }
        self.meter.turn(&response);
        self.tell_usage(peer).await;
        let failed = |failure| Ok(Some(Ended::Failed(failure)));
        let said = self.reader.reply().unwrap_or("it says nothing more").to_owned();
        match response.stop_reason {
            StopReason::EndTurn if !self.reader.answered => {
                let detail = "the agent ended its turn without a word and without doing anything";
                failed(EngineFailure::lasting(FailReason::Refused, detail))
            }
            StopReason::EndTurn => Ok((self.said.is_empty() && !peer.inbox.is_open()).then_some(Ended::Done)),
            StopReason::Refusal => {
                failed(EngineFailure::lasting(FailReason::Refused, format!("the model refused: {said}")))
            }
            StopReason::MaxTokens => {
                let detail = format!("the model reached the most tokens that it may use: {said}");
                failed(EngineFailure::lasting(FailReason::ContextTooLong, detail))
            }
            StopReason::MaxTurnRequests => {
                let detail = "the agent reached the most requests that it makes in one turn";
                failed(EngineFailure::lasting(FailReason::Timeout, detail))
            }
            StopReason::Cancelled => {
                failed(EngineFailure::passing(FailReason::Crash, "the agent cancelled the turn by itself"))
            }
            other => {
                let detail = format!("the agent ended the turn as {other:?}, which nobody here knows");
                failed(EngineFailure::lasting(FailReason::Crash, detail))
            }
        }
    }

    /// What was said meanwhile, as one prompt.
    async fn next_words(&mut self, peer: &mut Peer<'_>) -> Option<String> {
        while let Ok(input) = tokio::time::timeout(Duration::ZERO, peer.inbox.next()).await {
            self.take(input).await;
        }
        if self.said.is_empty() {
            return None;
        }
        let mut words = Vec::new();
        for (seq, text) in std::mem::take(&mut self.said) {
            words.push(text);
            self.sink.event(EngineEvent::Delivered { seq }).await;
        }
        Some(words.join("\n\n"))
    }

    fn id(&self) -> &SessionId {
        self.session.as_ref().expect("a session is opened first")
    }

    /// Waits for an answer of the agent's and reads what it sends meanwhile, and what people say.
    async fn wait<T>(&mut self, peer: &mut Peer<'_>, answer: impl Future<Output = Talked<T>>) -> Talked<T> {
        let mut answer = pin!(answer);
        let mut beat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                biased;
                Some(heard) = peer.heard.recv() => self.hear(heard, peer).await,
                answer = &mut answer => return answer,
                input = peer.inbox.next() => self.take(input).await,
                _ = beat.tick(), if !self.asked.is_empty() => {
                    peer.alive.send_replace(Instant::now());
                }
            }
        }
    }

    /// Some agents go on repeating the history after they have said that it is loaded.
    async fn until_quiet(&mut self, peer: &mut Peer<'_>) {
        let until = Instant::now() + LONGEST_REPLAY;
        while let Ok(Some(heard)) =
            tokio::time::timeout_at(until.min(Instant::now() + QUIET), peer.heard.recv()).await
        {
            self.hear(heard, peer).await;
        }
    }

    /// What came before the answer is read before what comes of it.
    async fn drain(&mut self, peer: &mut Peer<'_>) {
        while let Ok(heard) = peer.heard.try_recv() {
            self.hear(heard, peer).await;
        }
    }

    async fn hear(&mut self, heard: Heard, peer: &Peer<'_>) {
        match heard {
            Heard::Update(_) if self.replaying => {}
            Heard::Update(update) => {
                if let SessionUpdate::UsageUpdate(usage) = &*update {
                    self.meter.update(usage);
                    self.tell_usage(peer).await;
                }
                for line in self.reader.read(*update) {
                    self.sink.line(Stream::Stdout, &line, 0).await;
                }
            }
            Heard::Asks(asks) => {
                let (request, responder) = *asks;
                self.judge(request, responder, peer).await;
            }
        }
    }

    async fn judge(
        &mut self,
        request: RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
        peer: &Peer<'_>,
    ) {
        if permission::allows(self.permissions, &request, &self.request.dir) {
            return answer(responder, permission::yes(&request.options));
        }
        let title = request.tool_call.fields.title.clone().unwrap_or_else(|| "use a tool".to_owned());
        if !peer.inbox.is_open() {
            self.sink.note(&format!("not allowed, and nobody to ask: {title}")).await;
            return answer(responder, permission::no(&request.options));
        }
        self.questions += 1;
        let id = format!("{}-{}-{}", self.id().0, request.tool_call.tool_call_id, self.questions);
        let question = Question {
            id: id.clone(),
            kind: QuestionKind::Permission,
            text: self.sink.redact(&title),
            options: request.options.iter().map(|option| option.name.clone()).collect(),
            default: match permission::no(&request.options) {
                RequestPermissionOutcome::Selected(no) => request
                    .options
                    .iter()
                    .find(|option| option.option_id == no.option_id)
                    .map(|o| o.name.clone()),
                _ => None,
            },
        };
        self.asked.insert(id, Asked { options: request.options, responder });
        self.sink.event(EngineEvent::Question(question)).await;
    }

    async fn take(&mut self, input: Input) {
        match input {
            Input::Message { seq, by, text } => self.said.push((seq, format!("{by}: {text}"))),
            Input::Answer { seq, question, answer: given } => {
                let Some(asked) = self.asked.remove(&question) else { return };
                let outcome = match given {
                    Answer::Given { text, .. } => permission::named(&asked.options, &text),
                    Answer::None => permission::no(&asked.options),
                };
                answer(asked.responder, outcome);
                self.sink.event(EngineEvent::Delivered { seq }).await;
            }
        }
    }

    /// A question that nobody will answer any more.
    fn refuse_all(&mut self) {
        for (_, asked) in std::mem::take(&mut self.asked) {
            answer(asked.responder, RequestPermissionOutcome::Cancelled);
        }
    }

    async fn tell_usage(&mut self, peer: &Peer<'_>) {
        let usage = self.meter.usage();
        if usage == self.told {
            return;
        }
        self.told = usage;
        self.sink.event(EngineEvent::Usage(usage)).await;
        if let Some(overrun) = overrun(usage, &self.request.budget) {
            // A full channel means that the alarm was already raised.
            let failure = EngineFailure::lasting(FailReason::BudgetExceeded, overrun);
            let _raised = peer.alarm.try_send(failure);
        }
    }
}

/// An agent that is gone needs no answer.
fn answer(responder: Responder<RequestPermissionResponse>, outcome: RequestPermissionOutcome) {
    let _gone = responder.respond(RequestPermissionResponse::new(outcome));
}

/// Speaks the protocol over the lines of the program until `talk` is over.
async fn connected<T>(
    line: Connection,
    inbox: &mut Inbox,
    talk: impl AsyncFnOnce(&mut Peer<'_>) -> Talked<T>,
) -> Talked<T> {
    let Connection { stdin, lines, alive, hang_up, alarm } = line;
    let (tell, heard) = mpsc::channel(WAITING);
    let updates = tell.clone();
    let transport = Lines::new(outgoing(stdin), incoming(lines));
    Client
        .v1()
        .name("gigafactory")
        .on_receive_notification(
            async move |notification: UntypedMessage, _agent| {
                // One that cannot be read means nothing.
                if notification.method == "session/update"
                    && let Ok(update) = serde_json::from_value::<SessionNotification>(notification.params)
                {
                    let _over = updates.send(Heard::Update(Box::new(update.update))).await;
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _agent| {
                let _over = tell.send(Heard::Asks(Box::new((request, responder)))).await;
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async |agent: ConnectionTo<Agent>| {
            talk(&mut Peer { agent, heard, inbox, alive, hang_up, alarm }).await
        })
        .await
}

fn outgoing(stdin: ChildStdin) -> impl futures::Sink<String, Error = std::io::Error> + Send + 'static {
    let writer = futures::sink::unfold(stdin, async |mut stdin: ChildStdin, line: String| {
        stdin.write_all(line.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        stdin.flush().await?;
        Ok::<_, std::io::Error>(stdin)
    });
    Box::pin(writer)
}

/// Whatever is no message is left out: some agents print notes of their own, and a message that was cut cannot be read.
fn incoming(
    lines: mpsc::Receiver<Line>,
) -> impl futures::Stream<Item = std::io::Result<String>> + Send + 'static {
    let messages = futures::stream::unfold(lines, async |mut lines: mpsc::Receiver<Line>| {
        loop {
            let line = lines.recv().await?;
            if line.lost == 0 && line.text.trim_start().starts_with('{') {
                return Some((Ok(line.text), lines));
            }
        }
    });
    messages.boxed()
}
