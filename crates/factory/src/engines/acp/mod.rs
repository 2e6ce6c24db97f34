//! Agents that speak the Agent Client Protocol, by configuration: any program that is a command and answers on standard
//! output.
//!
//! They run as every engine does, in the same sandbox, under the same watchdogs, with the same account of their vendor. Of
//! the protocol they get a session, one prompt after the other, and answers to what they ask leave for. No file or terminal of
//! this side is offered to them, and no MCP server of the repository is passed on.

mod config;
mod permission;
mod talk;
mod updates;
mod usage;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use agent_client_protocol::v1::schema::{ErrorCode, Meta};
use giga_domain::FailReason;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::config::EventFormat;
use super::engine::{EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox, Preflight, Usage};
use super::events::{classify, is_account_refusal};
use super::prices::PriceTable;
use super::process::{Conversed, Cut, JournalFiles, Launch, Run, converse, not_started};
use super::programs::{Call, Cli, Program, Recipe};
use super::sink::EventSink;
use crate::sandbox::{HomeFile, HomeFolder, HostRule, Sandbox};

pub use config::AcpConfig;
use talk::{Ended, Talk, Talked};

/// For the whole of a preflight; node programs take seconds to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Acp {
    pub(super) name: String,
    pub(super) config: AcpConfig,
}

impl Acp {
    fn account(&self) -> Option<&'static dyn Cli> {
        self.config.account.map(Program::cli)
    }
}

impl Recipe for Acp {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> &Path {
        Path::new(self.config.argv.first().map_or("", String::as_str))
    }

    fn format(&self) -> EventFormat {
        EventFormat::Text
    }

    fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    fn variables(&self) -> Vec<&str> {
        let of_account = self.account().map(Cli::variables).unwrap_or_default();
        let named = self.config.pass_env.iter().map(String::as_str);
        of_account.iter().copied().chain(super::programs::NETWORK_VARIABLES).chain(named).collect()
    }

    fn fixed_variables(&self) -> Vec<(&str, &str)> {
        self.config.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn home_files(&self) -> &'static [HomeFile] {
        self.account().map(Cli::home_files).unwrap_or_default()
    }

    fn home_folders(&self) -> Vec<HomeFolder> {
        self.config.home.clone()
    }

    fn file_variables(&self) -> &[&'static str] {
        self.account().map(Cli::file_variables).unwrap_or_default()
    }

    fn hosts(&self) -> Vec<HostRule> {
        let of_account = self.account().map(Cli::hosts).unwrap_or_default();
        let of_account = of_account.iter().filter_map(|host| host.parse().ok());
        of_account.chain(self.config.hosts.iter().cloned()).collect()
    }

    fn address_variables(&self) -> &[&'static str] {
        self.account().map(Cli::address_variables).unwrap_or_default()
    }

    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        self.account().map(Cli::shut_variables).unwrap_or_default()
    }

    fn covered_folders(&self) -> &[&'static str] {
        self.account().map(Cli::covered_folders).unwrap_or_default()
    }

    fn sandbox_variables(&self) -> &[(&'static str, &'static str)] {
        self.account().map(Cli::sandbox_variables).unwrap_or_default()
    }

    fn instruction_files(&self) -> &[&'static str] {
        self.account().map(Cli::instruction_files).unwrap_or_default()
    }

    fn args(&self, _call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        Ok(self.config.argv.iter().skip(1).map(OsString::from).collect())
    }

    fn version_args(&self) -> Option<Vec<OsString>> {
        None
    }

    fn how_to_install(&self) -> String {
        format!("`argv` of the engine `{}` must begin with a program that exists", self.name)
    }

    fn acp(&self) -> Option<&AcpConfig> {
        Some(&self.config)
    }
}

/// The files of a session that are moved away before it is loaded.
pub(super) fn set_aside(config: &AcpConfig) -> Option<JournalFiles> {
    let cli = config.account.map(Program::cli).filter(|cli| cli.loads_over_its_journal());
    cli.and_then(Cli::journal)
}

/// What a run is about, beside its request.
pub(super) struct Task<'a> {
    pub(super) config: &'a AcpConfig,
    pub(super) prices: &'a PriceTable,
    /// Checked.
    pub(super) session: Option<&'a str>,
    /// What the session had used up before.
    pub(super) before: Usage,
    /// For a session that is gone on with, and for a new one.
    pub(super) prompts: (String, String),
    pub(super) obeys_repository: bool,
}

pub(super) async fn run(
    task: Task<'_>,
    launch: Launch,
    sandbox: &Sandbox,
    request: &EngineRequest,
    sink: EventSink,
    inbox: &mut Inbox,
    stop: &CancellationToken,
) -> Run {
    if stop.is_cancelled() {
        return not_started(EngineOutcome::Stopped);
    }
    let mut talk = Talk::new(&task, request, sink.again());
    let conversed = converse(launch, sandbox, request, &sink, stop, |line| talk.run(line, inbox)).await;
    let conversed = match conversed {
        Ok(conversed) => conversed,
        Err(failure) => return not_started(EngineOutcome::Failed(failure)),
    };
    let outcome = outcome(&conversed, &talk);
    let outcome = match outcome {
        EngineOutcome::Failed(failure) => {
            EngineOutcome::Failed(EngineFailure { detail: sink.redact(&failure.detail), ..failure })
        }
        other => other,
    };
    let refused = matches!(&outcome, EngineOutcome::Failed(failure) if is_account_refusal(failure));
    let report = EngineReport {
        outcome,
        session_id: talk.session().map(str::to_owned),
        usage: talk.usage(),
        metered: talk.is_metered() || !talk.was_asked() || (refused && talk.is_unanswered()),
        summary: talk.reply().map(|text| sink.redact(text)),
    };
    Run { report, session_is_unknown: false }
}

fn outcome(conversed: &Conversed<Talked>, talk: &Talk<'_>) -> EngineOutcome {
    let tail = &conversed.stderr_tail;
    match (&conversed.cut, &conversed.talk) {
        (Cut::Stopped, _) | (Cut::No, None) | (Cut::No | Cut::Exited(_), Some(Ok(Ended::HungUp))) => {
            EngineOutcome::Stopped
        }
        (Cut::No | Cut::Exited(_), Some(Ok(Ended::Done))) => EngineOutcome::Succeeded,
        (Cut::Failed(failure), _) | (_, Some(Ok(Ended::Failed(failure)))) => {
            EngineOutcome::Failed(failure.clone())
        }
        (Cut::Exited(how), _) => EngineOutcome::Failed(gone(how, tail)),
        (Cut::No, Some(Err(error))) => EngineOutcome::Failed(match &conversed.exited {
            // The line went dead before anybody saw why.
            Some(how) if is_cut_off(error) => gone(how, tail),
            _ => failure_of(error, talk.step()),
        }),
    }
}

/// What became of an agent that went away by itself.
fn gone(how: &str, tail: &str) -> EngineFailure {
    let said = if tail.is_empty() { String::new() } else { format!(": {tail}") };
    let detail = format!("the agent {how} in the middle of the session{said}");
    let cause = classify(tail);
    match cause.reason {
        FailReason::Crash => EngineFailure::passing(FailReason::Crash, detail),
        _ => EngineFailure { detail, ..cause },
    }
}

fn is_cut_off(error: &agent_client_protocol::Error) -> bool {
    let reason = error.data.as_ref().and_then(|data| data.get("reason"));
    reason.is_some_and(|reason| reason == "incoming_transport_closed")
}

/// What an error of the agent's means.
fn failure_of(error: &agent_client_protocol::Error, step: &str) -> EngineFailure {
    let data = error.data.as_ref().map(|data| match data {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let message = match data.filter(|data| !data.is_empty() && *data != error.message) {
        Some(data) => format!("{}: {data}", error.message),
        None => error.message.clone(),
    };
    let message: String = message.chars().take(1_000).collect();
    let detail = format!("{step}: {message}");
    if error.code == ErrorCode::AuthRequired {
        return EngineFailure::passing(FailReason::SignedOut, detail);
    }
    EngineFailure { detail, ..classify(&message) }
}

/// What a session is told to leave alone of the repository's own, by vendor.
fn session_meta(account: Option<Program>, obeys_repository: bool) -> Option<Meta> {
    match account {
        Some(Program::Claude) if !obeys_repository => {
            let options = json!({ "options": { "settingSources": ["user"] } });
            Some(Meta::from_iter([("claudeCode".to_owned(), options)]))
        }
        _ => None,
    }
}

/// Starts it, and asks for a session in an empty folder: that costs nothing, and an agent without an account says so.
pub(super) async fn preflight(
    config: &AcpConfig,
    launch: Launch,
    sandbox: &Sandbox,
    how_to_install: &str,
) -> Preflight {
    let mut request = EngineRequest::new(launch.dir.clone(), "");
    request.watchdog.wall = PATIENCE;
    let (events, mut heard) = tokio::sync::mpsc::channel(64);
    let sink = EventSink::new(&request, &[], events);
    let prices = PriceTable::new(&std::collections::BTreeMap::new());
    let task = Task {
        config,
        prices: &prices,
        session: None,
        before: Usage::default(),
        prompts: (String::new(), String::new()),
        obeys_repository: false,
    };
    let mut talk = Talk::new(&task, &request, sink.again());
    let stop = CancellationToken::new();
    let asked = converse(launch, sandbox, &request, &sink, &stop, |line| talk.greet(line));
    let ignored = async { while heard.recv().await.is_some() {} };
    let answer = tokio::select! {
        answer = asked => answer,
        () = ignored => unreachable!("the sink is still there"),
    };
    let broken = |detail: String| Preflight::Broken {
        detail,
        remedy: format!("run `{}` by hand and see what it says; {how_to_install}", config.argv.join(" ")),
    };
    match answer {
        Err(failure) | Ok(Conversed { cut: Cut::Failed(failure), .. }) => broken(failure.detail),
        Ok(Conversed { talk: Some(Ok(version)), .. }) => Preflight::Ready { version },
        Ok(Conversed { talk: Some(Err(error)), cut: Cut::No, .. }) => {
            let failure = failure_of(&error, talk.step());
            if failure.reason == FailReason::SignedOut {
                let remedy =
                    format!("sign in to it as the factory's user, or pass its key: {}", failure.detail);
                return Preflight::NotSignedIn { remedy };
            }
            broken(failure.detail)
        }
        Ok(Conversed { cut: Cut::Exited(how), stderr_tail, .. }) => {
            broken(format!("it {how}: {stderr_tail}"))
        }
        Ok(Conversed { stderr_tail, .. }) => broken(format!("it did not answer: {stderr_tail}")),
    }
}
