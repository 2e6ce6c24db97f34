//! The one trait that every coding engine implements, and the types of its interface.
//!
//! An engine never decides about a job: it runs once in one folder, tells what happened, and leaves no process
//! behind. Nothing here knows leases, epochs or git.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use giga_domain::job::BudgetCaps;
use giga_domain::{FailReason, Permissions, QuestionKind, SecretName, SecretPlace, Timestamp, Usd};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::config::UrlPrefix;
use super::events::Transcript;
use super::login::Login;
use super::tool_server::ToolServer;

#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    /// As in `engine:<name>`.
    fn name(&self) -> &str;

    /// Whose account it uses.
    fn login(&self) -> Login {
        Login::Unneeded
    }

    /// The model that the operator chose for it.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Of an engine that works on other machines: the repositories that it reaches, by the beginnings of their URLs; none means
    /// all that are on the network. It gets its work, and leaves it, on branches of [`EngineRequest::repositories`].
    fn elsewhere(&self) -> Option<&[UrlPrefix]> {
        None
    }

    /// Whether a run could begin now. Spends nothing and changes nothing.
    async fn preflight(&self) -> Preflight;

    /// The server that it cannot do without, as far as it is known.
    fn server(&self) -> Option<(String, u16)> {
        None
    }

    /// Turns the lines that a run prints into what people read. `None`: they are read as they are.
    fn transcript(&self) -> Option<Transcript> {
        None
    }

    /// Whether a run counts as it goes, so that what it used is known at each moment, and ends with this process whatever
    /// becomes of it.
    fn stays_current(&self) -> bool {
        false
    }

    /// What a run used that nobody watches any more, as the session on this machine has it: after a crash of the agent, once its
    /// processes have ended. An answer that was under way is in no session. `None`: it cannot be known.
    async fn used_by(&self, _run: &LeftRun) -> Option<Usage> {
        None
    }

    /// One run, to its end. Events come in order; a receiver that is gone is no reason to stop. An engine that takes
    /// nothing while it runs leaves the inbox alone: what it does not confirm is in the prompt of the next run.
    async fn run(
        &self,
        request: EngineRequest,
        events: mpsc::Sender<EngineEvent>,
        inbox: Inbox,
        stop: CancellationToken,
    ) -> EngineReport;
}

/// A run that ended with its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRun {
    /// As the engine named it.
    pub session: String,
    /// As in [`EngineRequest::sessions`].
    pub sessions: PathBuf,
    /// The session may have been begun by an earlier run.
    pub began: Timestamp,
}

/// What people say to a run while it goes on.
#[derive(Debug)]
pub struct Inbox(Option<mpsc::Receiver<Input>>);

impl Inbox {
    /// Whoever drops the sender has nothing more to say; the run goes on.
    pub fn channel(capacity: usize) -> (mpsc::Sender<Input>, Self) {
        let (sender, receiver) = mpsc::channel(capacity);
        (sender, Self(Some(receiver)))
    }

    /// Nobody talks to this run.
    pub const fn closed() -> Self {
        Self(None)
    }

    /// Whether somebody may still answer.
    pub const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Waits, for ever where nobody talks any more: made for a branch of a `select!`. Safe to be cancelled.
    pub async fn next(&mut self) -> Input {
        if let Some(receiver) = &mut self.0 {
            if let Some(input) = receiver.recv().await {
                return input;
            }
            self.0 = None;
        }
        std::future::pending().await
    }
}

/// An engine says [`EngineEvent::Delivered`] with the `seq` once it has taken it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// For the next turn.
    Message { seq: u64, by: String, text: String },
    /// To the question that the engine asked under this id.
    Answer { seq: u64, question: String, answer: Answer },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Of a person, or the default because nobody answered in time. Of a permission it is one of the options, as asked.
    Given { text: String, by: Option<String> },
    /// Nobody answered in time and there is no default; the run is about to be stopped.
    None,
}

/// What an engine asks of people. It waits for the answer in its inbox, and may be stopped meanwhile: a question that stays
/// open for long is answered in the prompt of a later run, which resumes the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Unique in the run. The same one in a later run of the job is the same question.
    pub id: String,
    pub kind: QuestionKind,
    pub text: String,
    /// What can be chosen. A permission is answered with one of them, a question with one of them or anything else.
    pub options: Vec<String>,
    /// The answer if nobody gives one in time.
    pub default: Option<String>,
}

#[derive(Debug, Clone)]
pub struct EngineRequest {
    /// The work tree: where the engine starts and what it may change.
    pub dir: PathBuf,
    pub prompt: String,
    /// Who the engine is to be, for those that read prompts.
    pub persona: Option<String>,
    /// Review comments on the work so far. They follow the prompt, and are in a file of their own that
    /// `GIGA_REVIEW_COMMENTS` names.
    pub review: Option<String>,
    /// What people said since the job began, behind the prompt, and in a file of its own that `GIGA_CONVERSATION` names.
    pub talked: Option<Talked>,
    /// Instead of the operator's choice for the engine.
    pub model: Option<String>,
    /// What it may do without asking; engines that cannot ask keep to it as far as their own switches let them. `None`: what
    /// the operator's settings for the engine say.
    pub permissions: Option<Permissions>,
    /// What the shell engine runs; the others ignore it.
    pub script: Option<String>,
    /// The session of an earlier run, to be gone on with.
    pub resume: Option<String>,
    /// What the earlier runs of the resumed session used, all together: some engines report the sum since the
    /// session began, and this is taken off it.
    pub usage_before: Usage,
    pub budget: BudgetCaps,
    /// Where an engine elsewhere finds its work and leaves it.
    pub repositories: Vec<RemoteRepository>,
    /// Added to the small environment that an engine gets, such as `GIGA_JOB_ID` and the job's own token. A
    /// [`RUN_MARKER`](super::RUN_MARKER) here names the run; otherwise a random one is made up.
    pub env: Vec<(String, String)>,
    pub watchdog: Watchdog,
    /// Bytes of output that are forwarded; the engine may go on past it.
    pub output_limit: u64,
    pub redact: Vec<Secret>,
    /// What the job named and may know: put where it wants them, and taken out of what is shown.
    pub secrets: Vec<JobSecret>,
    /// Where the private home goes that a run in a sandbox gets; in the run's own folder by default.
    pub home: Option<PathBuf>,
    /// Where sessions are kept for later runs of the job in a sandbox; they end with the run by default.
    pub sessions: Option<PathBuf>,
    /// Shown to a run in a sandbox, read-only: what the work tree borrows from.
    pub shown: Vec<PathBuf>,
    /// Tools that it can use beside its own. A script finds the program in `GIGA_PROGRAM`.
    pub tool_server: Option<ToolServer>,
    /// Of a run that can ask people without its engine saying so, by a tool or a command.
    pub asking: Option<Asking>,
}

impl EngineRequest {
    /// A fresh session without a budget, under the usual watchdogs.
    pub fn new(dir: impl Into<PathBuf>, prompt: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            prompt: prompt.into(),
            persona: None,
            review: None,
            talked: None,
            model: None,
            permissions: None,
            script: None,
            resume: None,
            usage_before: Usage::default(),
            budget: BudgetCaps::default(),
            repositories: Vec::new(),
            env: Vec::new(),
            watchdog: Watchdog::default(),
            output_limit: giga_domain::limits::LOG_BYTES,
            redact: Vec::new(),
            secrets: Vec::new(),
            home: None,
            sessions: None,
            shown: Vec::new(),
            tool_server: None,
            asking: None,
        }
    }
}

/// Looked at before a silent engine is ended: how long ago its run last waited for people. Zero while it does; `None` if it
/// never did.
#[derive(Clone)]
pub struct Asking(Arc<dyn Fn() -> BoxFuture<'static, Option<Duration>> + Send + Sync>);

impl Asking {
    pub fn new<F: Future<Output = Option<Duration>> + Send + 'static>(
        look: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move || look().boxed()))
    }

    pub(super) async fn ended(&self) -> Option<Duration> {
        self.0().await
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

/// A repository that an engine elsewhere can reach, and the only branch of it that its work is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRepository {
    pub url: String,
    pub branch: String,
}

/// Answers and messages of people, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talked {
    /// For a session that begins.
    pub whole: String,
    /// What no run was given yet, for a session that is gone on with.
    pub new: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watchdog {
    /// Longest silence.
    pub idle: Duration,
    /// Longest run.
    pub wall: Duration,
    /// Between the polite signal and the final one.
    pub kill_grace: Duration,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(20),
            wall: Duration::from_hours(4),
            kill_grace: Duration::from_secs(10),
        }
    }
}

impl EngineRequest {
    /// Everything that is to be read, as one text: persona, prompt, review comments, what people said.
    pub(super) fn whole_prompt(&self) -> String {
        let talked = match &self.talked {
            Some(talked) if self.resume.is_some() => talked.new.as_deref(),
            talked => talked.as_ref().map(|talked| talked.whole.as_str()),
        };
        let parts = [self.persona.as_deref(), Some(&self.prompt), self.review.as_deref(), talked];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// Text that must not be shown; printing it for debugging does not show it either.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A secret of the job's product. Debugging shows its name and place.
#[derive(Clone)]
pub struct JobSecret {
    pub name: SecretName,
    pub place: SecretPlace,
    pub value: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSecret")
            .field("name", &self.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// One line without its line end: redacted, cut to a bound, valid UTF-8.
    Output { stream: Stream, line: String },
    /// What a later run can resume, and what it had used up before this run.
    Session { id: String, used_before: Usage },
    /// Of this run so far.
    Usage(Usage),
    /// The model that works on it, as the engine names it.
    Model(String),
    /// How much of its account's windows is used.
    Windows(Vec<QuotaWindow>),
    /// A note for readers of the log that the engine itself did not print.
    Note(String),
    /// The engine waits for an answer, which comes into its inbox.
    Question(Question),
    /// The engine has taken this [`Input`]: it is not given to it again.
    Delivered { seq: u64 },
}

/// What an account may use in a time, as its provider counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaWindow {
    /// As the provider calls it, such as `five_hour`.
    pub name: String,
    pub used_percent: Option<u8>,
    pub resets_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Everything that was sent and received, cached input included.
    pub tokens: u64,
    /// `None` when neither the engine nor the price table knows.
    pub cost: Option<Usd>,
}

impl Usage {
    /// Both together; a cost that is not known counts as nothing where the other is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        Self { tokens: self.tokens.saturating_add(other.tokens), cost }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineReport {
    pub outcome: EngineOutcome,
    pub session_id: Option<String>,
    pub usage: Usage,
    /// Whether `usage` covers the run. It does not where an engine with an account was started and ended before it reported
    /// what it used.
    pub metered: bool,
    /// The engine's final reply, redacted.
    pub summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineOutcome {
    Succeeded,
    Failed(EngineFailure),
    /// The stop token was cancelled before the engine came to an end: whoever cancelled it knows why.
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", giga_domain::exit::words(*reason, Some(detail)))]
pub struct EngineFailure {
    pub reason: FailReason,
    /// For people; redacted.
    pub detail: String,
    /// Whether the same job may well succeed when it is run again unchanged.
    pub retryable: bool,
    /// Counted from the failure: when the provider lets the account in again, where it says so.
    pub resets_in: Option<Duration>,
}

impl EngineFailure {
    /// A failure that a second run would meet again.
    pub fn lasting(reason: FailReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), retryable: false, resets_in: None }
    }

    /// A failure of the moment: a rate limit, a network, a full disk.
    pub fn passing(reason: FailReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), retryable: true, resets_in: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preflight {
    Ready { version: Option<String> },
    NotInstalled { remedy: String },
    NotSignedIn { remedy: String },
    Broken { detail: String, remedy: String },
}

impl Preflight {
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}
