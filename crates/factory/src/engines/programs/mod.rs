//! Engines that are programs on this machine: what they share around the runner.
//!
//! A recipe says how one program is called and recognised; it never starts anything itself, and what comes from a job
//! reaches a program as a file or on standard input, never as an argument: everybody on the machine can read those.
//!
//! [`Program`] is the list of those with an account of their own. One more is a variant of it and a module that
//! implements [`Cli`]: settings, detection, event formats and tests go by the list.

mod claude;
mod codex;
mod command;
mod covered;
mod gemini;
mod instructions;
mod left_behind;
mod opencode;
mod preflight;
mod recipe;
mod shell;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::{FailReason, Permissions, Timestamp};
use serde_json::Value;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::acp;
use super::config::{EventFormat, ProgramConfig};
use super::engine::{
    Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox, JobSecret,
    LeftRun, Preflight, Secret, Usage,
};
use super::events::{LineEvent, Tally, Transcript};
use super::login::{self, Login};
use super::prices::PriceTable;
use super::process::{self, HostEnvironment, JournalFiles, Launch, Run};
use super::sink::EventSink;
use super::tool_server::{self, Offer, ToolServer};
use crate::sandbox::{HomeFile, HostRule, Sandbox, View, host_of};

pub(super) use command::Template;
use preflight::SignIn;
pub(super) use recipe::{Call, Reads, Recipe};
pub(super) use shell::Shell;

/// How engines with an account reach it from behind a proxy.
pub(super) const NETWORK_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Program {
    Claude,
    Codex,
    Opencode,
    Gemini,
}

impl Program {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As in `engine:<name>`, and in the settings.
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }

    /// The versions that the matrix of docs/engines.md was made with.
    pub const fn proven(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["2.1.326"],
            Self::Codex => &["0.169.0"],
            Self::Opencode => &["1.18.33"],
            Self::Gemini => &["0.61.0"],
        }
    }

    pub(super) fn words() -> String {
        Self::ALL.iter().map(|program| program.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn cli(self) -> &'static dyn Cli {
        match self {
            Self::Claude => &claude::Claude,
            Self::Codex => &codex::Codex,
            Self::Opencode => &opencode::Opencode,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

/// What is particular to a program with an account: how it is called, how one events in, what it prints.
pub(super) trait Cli: Sync {
    /// Variables of the factory that it may see besides the base and those that the settings name.
    fn variables(&self) -> &[&'static str];

    /// What it needs of the operator's home: its settings, its account, its sessions.
    fn home_files(&self) -> &'static [HomeFile];

    /// Those of its variables that name a file which it reads.
    fn file_variables(&self) -> &[&'static str] {
        &[]
    }

    /// Hosts that it does not work without.
    fn hosts(&self) -> &[&'static str];

    /// The vendor's server, for an engine that has one vendor.
    fn main_host(&self) -> Option<&'static str> {
        self.hosts().first().copied()
    }

    /// Those of its variables that hold the address of another server to use.
    fn address_variables(&self) -> &[&'static str] {
        &[]
    }

    /// The same from its settings in the operator's home.
    fn address_in_settings(&self, _host: &HostEnvironment) -> Option<String> {
        None
    }

    fn reads(&self) -> Reads {
        Reads::OneText
    }

    /// Variables by which it leaves a repository's own settings alone, where the operator has not set them.
    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Folders of a work tree that it would obey all the same: it sees them empty in a sandbox.
    fn covered_folders(&self) -> &[&'static str] {
        &[]
    }

    /// Variables that it always gets, where the operator has not set them.
    fn own_variables(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Variables that say what it may do, whatever the operator has set; for one that has no options for it.
    fn permission_variables(&self, _allowed: Permissions) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Variables that it gets in a sandbox: where things are in there.
    fn sandbox_variables(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Files of a repository that it does not read any more where it leaves the settings alone.
    fn instruction_files(&self) -> &[&'static str] {
        &[]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure>;

    fn sign_in(&self) -> SignIn;

    fn how_to_install(&self) -> &'static str;

    /// What an event of its output says.
    fn read(&self, event: &Value) -> Vec<LineEvent>;

    /// Where it keeps its session while it runs, if its output says only at the end what it used.
    fn journal(&self) -> Option<JournalFiles> {
        None
    }

    /// Whether it begins a new file for a session that it loads over ACP, which may have the name of the old one.
    fn loads_over_its_journal(&self) -> bool {
        false
    }

    /// Knows warnings of its own among what it says over ACP, for one that does not mark them.
    fn is_notice(&self) -> Option<fn(&str) -> bool> {
        None
    }

    /// What a line of such a file says.
    fn read_journal(&self, _entry: &Value) -> Vec<LineEvent> {
        Vec::new()
    }

    /// How it is asked what a session has used since a moment, for one that keeps its sessions where only it can read them.
    fn ask_for_usage(&self, _session: &str, _since: Timestamp) -> Option<Vec<OsString>> {
        None
    }

    /// Its answer. `None`: it does not know the session.
    fn read_usage(&self, _answer: &str) -> Option<Vec<LineEvent>> {
        None
    }

    /// What a line of its standard error says, for one that says there what its events do not.
    fn read_stderr(&self, _line: &str) -> Vec<LineEvent> {
        Vec::new()
    }

    /// Whether an event is one of a flood that only says how far an answer is: read, and not kept in the log.
    fn is_progress(&self, _event: &Value) -> bool {
        false
    }

    /// What an exit status means, where the program gives it a meaning of its own.
    fn exit_failure(&self, _code: i32) -> Option<EngineFailure> {
        None
    }

    /// Whether it says what an answer costs as soon as it begins.
    fn counts_as_it_goes(&self) -> bool {
        false
    }

    /// Whether it prints something as soon as the model begins to answer: a run in which it did not has used nothing.
    fn shows_answers(&self) -> bool {
        false
    }
}

/// A program as the settings want it.
#[derive(Debug)]
pub(super) struct Configured {
    pub(super) program: Program,
    pub(super) config: ProgramConfig,
}

impl Recipe for Configured {
    fn name(&self) -> &str {
        self.program.as_str()
    }

    fn program(&self) -> &Path {
        self.config.program.as_deref().unwrap_or(Path::new(self.program.as_str()))
    }

    fn format(&self) -> EventFormat {
        EventFormat::Program(self.program)
    }

    fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    fn variables(&self) -> Vec<&str> {
        let named = self.config.pass_env.iter().map(String::as_str);
        self.program.cli().variables().iter().copied().chain(NETWORK_VARIABLES).chain(named).collect()
    }

    fn home_files(&self) -> &'static [HomeFile] {
        self.program.cli().home_files()
    }

    fn file_variables(&self) -> &[&'static str] {
        self.program.cli().file_variables()
    }

    fn hosts(&self) -> Vec<HostRule> {
        self.program.cli().hosts().iter().filter_map(|host| host.parse().ok()).collect()
    }

    fn address_variables(&self) -> &[&'static str] {
        self.program.cli().address_variables()
    }

    fn main_host(&self) -> Option<&'static str> {
        self.program.cli().main_host()
    }

    fn address_in_settings(&self, host: &HostEnvironment) -> Option<String> {
        self.program.cli().address_in_settings(host)
    }

    fn reads(&self) -> Reads {
        self.program.cli().reads()
    }

    fn reads_stdin(&self) -> bool {
        true
    }

    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        self.program.cli().shut_variables()
    }

    fn covered_folders(&self) -> &[&'static str] {
        self.program.cli().covered_folders()
    }

    fn own_variables(&self) -> &[(&'static str, &'static str)] {
        self.program.cli().own_variables()
    }

    fn permission_variables(&self, allowed: Permissions) -> &[(&'static str, &'static str)] {
        self.program.cli().permission_variables(allowed)
    }

    fn sandbox_variables(&self) -> &[(&'static str, &'static str)] {
        self.program.cli().sandbox_variables()
    }

    fn instruction_files(&self) -> &[&'static str] {
        self.program.cli().instruction_files()
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let model = call.request.model.clone().or_else(|| self.config.model.clone());
        self.program.cli().args(call, &ProgramConfig { model, ..self.config.clone() })
    }

    fn offer_tools(
        &self,
        server: &ToolServer,
        scratch: &Path,
        env: &mut BTreeMap<OsString, OsString>,
    ) -> std::io::Result<Offer> {
        tool_server::offer(self.program, server, scratch, env)
    }

    fn sign_in(&self) -> SignIn {
        self.program.cli().sign_in()
    }

    fn how_to_install(&self) -> String {
        self.program.cli().how_to_install().to_owned()
    }

    fn journal(&self) -> Option<JournalFiles> {
        self.program.cli().journal()
    }

    fn ask_for_usage(&self, session: &str, since: Timestamp) -> Option<Vec<OsString>> {
        self.program.cli().ask_for_usage(session, since)
    }

    fn read_usage(&self, answer: &str) -> Option<Vec<LineEvent>> {
        self.program.cli().read_usage(answer)
    }
}

#[derive(Debug)]
pub(super) struct ProgramEngine {
    pub(super) recipe: Box<dyn Recipe>,
    pub(super) host: Arc<HostEnvironment>,
    pub(super) prices: PriceTable,
    pub(super) scratch: Option<PathBuf>,
    pub(super) sandbox: Sandbox,
    pub(super) obeys_repository: bool,
}

#[async_trait]
impl Engine for ProgramEngine {
    fn name(&self) -> &str {
        self.recipe.name()
    }

    fn login(&self) -> Login {
        login::of(self.recipe.as_ref(), &self.host)
    }

    fn model(&self) -> Option<&str> {
        self.recipe.model()
    }

    fn transcript(&self) -> Option<Transcript> {
        Transcript::of(self.recipe.format())
    }

    fn server(&self) -> Option<(String, u16)> {
        let vendors = || Some((self.recipe.main_host()?.to_owned(), 443));
        addresses(self.recipe.as_ref(), &self.host).into_iter().next().or_else(vendors)
    }

    async fn preflight(&self) -> Preflight {
        preflight::preflight(self.recipe.as_ref(), &self.host, &self.sandbox).await
    }

    fn stays_current(&self) -> bool {
        // A sandbox dies with its agent.
        self.recipe.format().counts_as_it_goes() && self.sandbox.missing().is_none()
    }

    async fn used_by(&self, run: &LeftRun) -> Option<Usage> {
        self.used_by_left(run).await
    }

    async fn run(
        &self,
        request: EngineRequest,
        events: mpsc::Sender<EngineEvent>,
        mut inbox: Inbox,
        stop: CancellationToken,
    ) -> EngineReport {
        let mut sink = EventSink::new(&request, &self.secrets(&request), events);
        let resume = match request.resume.as_deref() {
            Some(id) if is_session_id(id) => Some(id),
            Some(_) => {
                sink.note("the session to resume has no name that an engine would give; a new one is begun")
                    .await;
                None
            }
            None => None,
        };
        let before = if resume.is_some() { request.usage_before } else { Usage::default() };
        let run = self.attempt(&request, resume, before, sink.again(), &mut inbox, &stop).await;
        if resume.is_none() || !run.session_is_unknown || stop.is_cancelled() {
            return run.report;
        }
        sink.note("the session to resume is not on this machine; a new one is begun").await;
        self.attempt(&request, None, Usage::default(), sink, &mut inbox, &stop).await.report
    }
}

impl ProgramEngine {
    async fn attempt(
        &self,
        request: &EngineRequest,
        session: Option<&str>,
        before: Usage,
        sink: EventSink,
        inbox: &mut Inbox,
        stop: &CancellationToken,
    ) -> Run {
        let scratch = match private_folder(self.scratch.as_deref()) {
            Ok(scratch) => scratch,
            Err(error) => return failed(no_scratch(&error)),
        };
        let launch = match self.launch(request, session, scratch.path()) {
            Ok(launch) => launch,
            Err(failure) => return failed(failure),
        };
        if let Some(config) = self.recipe.acp() {
            let prompts = [true, false].map(|resumes| self.prompt_parts(request, resumes).1);
            let (prices, obeys_repository) = (&self.prices, self.obeys_repository);
            let prompts = prompts.into();
            if let (Some(session), Some(files)) = (session, acp::set_aside(config)) {
                process::set_sessions_aside(files, &launch, &self.sandbox, session);
            }
            let task = acp::Task { config, prices, session, before, prompts, obeys_repository };
            return acp::run(task, launch, &self.sandbox, request, sink, inbox, stop).await;
        }
        let model = request.model.as_deref().or(self.recipe.model()).map(str::to_owned);
        let tally = Tally::new(self.recipe.format(), self.prices.clone(), before, model);
        let mut run = process::run(launch, &self.sandbox, request, tally, sink, stop).await;
        run.report.metered |= !self.recipe.has_account();
        run
    }

    fn launch(
        &self,
        request: &EngineRequest,
        session: Option<&str>,
        scratch: &Path,
    ) -> Result<Launch, EngineFailure> {
        let Some(program) = self.host.find_program(self.recipe.program()) else {
            let program = self.recipe.program().display();
            return Err(EngineFailure::lasting(FailReason::NoEngine, format!("{program} is not installed")));
        };
        let (persona, text) = self.prompt_parts(request, session.is_some());
        let prompt_file = scratch.join("prompt.md");
        write_private(&prompt_file, &text).map_err(|error| no_scratch(&error))?;
        let persona_file = scratch.join("persona.md");
        if let Some(persona) = &persona {
            write_private(&persona_file, persona).map_err(|error| no_scratch(&error))?;
        }
        let call = Call {
            request,
            session,
            persona_file: persona.as_ref().map(|_| persona_file.as_path()),
            prompt_file: &prompt_file,
            obeys_repository: self.obeys_repository,
            sandboxed: self.sandbox.missing().is_none(),
            scratch,
        };
        let mut env = self.environment(request);
        let Offer { mut args, home_settings } = match &request.tool_server {
            Some(server) => {
                let offered = self.recipe.offer_tools(server, scratch, &mut env);
                offered.map_err(|error| no_scratch(&error))?
            }
            None => Offer::default(),
        };
        args.extend(self.recipe.args(&call)?);
        let stdin = if self.recipe.reads_stdin() {
            Some(File::open(&prompt_file).map_err(|error| no_scratch(&error))?)
        } else {
            None
        };
        env.insert("GIGA_PROMPT_FILE".into(), prompt_file.into());
        if let Some(review) = &request.review {
            let file = scratch.join("review.md");
            write_private(&file, review).map_err(|error| no_scratch(&error))?;
            env.insert("GIGA_REVIEW_COMMENTS".into(), file.into());
        }
        if let Some(talked) = &request.talked {
            let file = scratch.join("conversation.md");
            write_private(&file, &talked.whole).map_err(|error| no_scratch(&error))?;
            env.insert("GIGA_CONVERSATION".into(), file.into());
        }
        let mut view = view(self.recipe.as_ref(), &self.host, scratch);
        view.read.push(scratch.to_owned());
        view.read.extend(request.shown.iter().cloned());
        view.read.extend(request.tool_server.iter().map(|server| server.program.clone()));
        view.settings = home_settings;
        if !self.obeys_repository {
            view.covered = covered::folders(&request.dir, self.recipe.covered_folders());
        }
        view.kept.clone_from(&request.sessions);
        view.secrets.clone_from(&request.secrets);
        if let Some(home) = &request.home {
            view.home.clone_from(home);
        }
        let journal = self.recipe.journal();
        Ok(Launch { program, args, env, dir: request.dir.clone(), stdin, view, journal })
    }

    /// Persona and instructions, where they go apart, and the text of the prompt.
    fn prompt_parts(&self, request: &EngineRequest, resumes: bool) -> (Option<String>, String) {
        let instructions = if self.obeys_repository {
            None
        } else {
            instructions::of(&request.dir, self.recipe.instruction_files())
        };
        let persona = |instructions: Option<String>| {
            let parts: Vec<String> = request.persona.clone().into_iter().chain(instructions).collect();
            (!parts.is_empty()).then(|| parts.join("\n\n"))
        };
        match self.recipe.reads() {
            Reads::JobTextOnly => (None, request.prompt.clone()),
            // A session that is gone on with has read them.
            Reads::OneText => {
                let persona = persona(instructions.filter(|_| !resumes));
                let resume = request.resume.clone().filter(|_| resumes);
                (None, EngineRequest { persona, resume, ..request.clone() }.whole_prompt())
            }
            Reads::PersonaApart => {
                let resume = request.resume.clone().filter(|_| resumes);
                let rest = EngineRequest { persona: None, resume, ..request.clone() };
                (persona(instructions), rest.whole_prompt())
            }
        }
    }

    fn environment(&self, request: &EngineRequest) -> BTreeMap<OsString, OsString> {
        let mut environment = self.host.for_engine(self.recipe.variables(), &request.env);
        for JobSecret { place, value, .. } in &request.secrets {
            if let Some(name) = place.env() {
                environment.insert(name.into(), OsString::from_vec(value.to_vec()));
            }
        }
        environment.extend(
            self.recipe.fixed_variables().into_iter().map(|(name, value)| (name.into(), value.into())),
        );
        for (name, value) in
            request.permissions.map_or(&[][..], |allowed| self.recipe.permission_variables(allowed))
        {
            environment.insert(name.into(), value.into());
        }
        let shut = if self.obeys_repository { &[][..] } else { self.recipe.shut_variables() };
        let inside = if self.sandbox.missing().is_none() { self.recipe.sandbox_variables() } else { &[][..] };
        for (name, value) in shut.iter().chain(self.recipe.own_variables()).chain(inside) {
            environment.entry(name.into()).or_insert_with(|| value.into());
        }
        environment
    }

    /// What the engine is given and must not print: keys by their variables' names.
    fn secrets(&self, request: &EngineRequest) -> Vec<Secret> {
        let variables = self.recipe.variables();
        let passed = variables.iter().filter_map(|name| Some((*name, self.host.get(name)?.to_str()?)));
        let own = request.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        passed
            .chain(own)
            .filter(|(name, _)| holds_a_secret(name))
            .map(|(_, value)| Secret::new(value))
            .collect()
    }
}

/// Whether a variable of this name is one that must not be shown.
pub(super) fn holds_a_secret(name: &str) -> bool {
    const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    SECRET_NAMES.iter().any(|word| name.to_uppercase().contains(word))
}

/// What a program is shown whenever it runs, with a home in this folder.
fn view(recipe: &dyn Recipe, host: &HostEnvironment, folder: &Path) -> View {
    let files = recipe.file_variables().iter().filter_map(|name| host.get(name)).map(PathBuf::from);
    View {
        home_files: recipe.home_files(),
        home_folders: recipe.home_folders(),
        read: files.filter(|file| file.is_absolute() && file.exists()).collect(),
        hosts: hosts(recipe, host),
        ..View::in_folder(folder)
    }
}

fn hosts(recipe: &dyn Recipe, host: &HostEnvironment) -> Vec<HostRule> {
    let addressed = addresses(recipe, host);
    let addressed = addressed.iter().filter_map(|(name, port)| format!("{name}:{port}").parse().ok());
    recipe.hosts().into_iter().chain(addressed).collect()
}

/// Servers that are used instead of the vendor's.
fn addresses(recipe: &dyn Recipe, host: &HostEnvironment) -> Vec<(String, u16)> {
    let by_variable = recipe.address_variables().iter().filter_map(|name| host.get(name)?.to_str());
    let by_variable = by_variable.map(str::to_owned);
    let urls = recipe.address_in_settings(host).into_iter().chain(by_variable);
    urls.filter_map(|url| host_of(&url)).collect()
}

fn failed(failure: EngineFailure) -> Run {
    process::not_started(EngineOutcome::Failed(failure))
}

fn no_scratch(error: &std::io::Error) -> EngineFailure {
    EngineFailure::passing(FailReason::Infrastructure, format!("no private folder for the run: {error}"))
}

/// Readable by the owner only; removed with the run.
fn private_folder(parent: Option<&Path>) -> std::io::Result<TempDir> {
    let owner_only = std::fs::Permissions::from_mode(0o700);
    let mut folder = tempfile::Builder::new();
    folder.prefix("giga-run-").permissions(owner_only);
    match parent {
        Some(parent) => {
            std::fs::create_dir_all(parent)?;
            folder.tempdir_in(parent)
        }
        None => folder.tempdir(),
    }
}

pub(super) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())
}

/// What an engine would name a session; above all, nothing that looks like an option or a path.
fn is_session_id(id: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    id.len() <= 200 && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(legal)
}

/// Built up from text and paths alike.
fn arguments<const N: usize>(fixed: [&str; N]) -> Vec<OsString> {
    fixed.into_iter().map(OsString::from).collect()
}
