//! One run of a program: what it is given, where it starts, and what becomes of its session.
//!
//! What comes from a job reaches the program as a file or on standard input.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::FailReason;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Call, Reads, Recipe, covered, holds_a_secret, instructions, is_session_id, preflight, write_private,
};
use crate::engines::acp;
use crate::engines::engine::{
    Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox, JobSecret,
    LeftRun, Preflight, Secret, Usage,
};
use crate::engines::events::{Tally, Transcript};
use crate::engines::login::{self, Login};
use crate::engines::prices::PriceTable;
use crate::engines::process::{self, HostEnvironment, Launch, Run};
use crate::engines::sink::EventSink;
use crate::engines::tool_server::Offer;
use crate::sandbox::{HostRule, Sandbox, View, host_of};

#[derive(Debug)]
pub(in crate::engines) struct ProgramEngine {
    pub(in crate::engines) recipe: Box<dyn Recipe>,
    pub(in crate::engines) host: Arc<HostEnvironment>,
    pub(in crate::engines) prices: PriceTable,
    pub(in crate::engines) scratch: Option<PathBuf>,
    pub(in crate::engines) sandbox: Sandbox,
    pub(in crate::engines) obeys_repository: bool,
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

/// What a program is shown whenever it runs, with a home in this folder.
pub(super) fn view(recipe: &dyn Recipe, host: &HostEnvironment, folder: &Path) -> View {
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

pub(super) fn no_scratch(error: &std::io::Error) -> EngineFailure {
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
