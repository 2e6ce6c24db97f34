//! One engine on the bench: the real program, a private home, a work tree, and a scripted model for each run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use giga_domain::FailReason;
use giga_factory::engines::{
    Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, EnginesConfig,
    HostEnvironment, Program, ProgramConfig, RUN_MARKER, Watchdog, engines_in,
};
use giga_factory::sandbox::{InitProgram, Sandbox, SandboxConfig, SandboxMode};
use giga_scripted_model::{Asked, Script, ScriptedModel};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::subject;

pub(crate) const PROMPT: &str = "Write \"hello.txt\".\n\n  With 'quotes', a \\ and ünïcode.\n";

pub(crate) struct Bench {
    pub(crate) engine: Program,
    pub(crate) version: String,
    pub(crate) programs: PathBuf,
    scratch: PathBuf,
    pub(crate) keep: bool,
}

impl Bench {
    pub(crate) fn new(engine: Program, programs: &Path, scratch: &Path, keep: bool) -> Result<Self> {
        let programs = programs.canonicalize().context("the folder of the programs")?;
        let output = std::process::Command::new(programs.join(engine.as_str())).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let version = version.with_context(|| format!("{engine} names no version: {text}"))?.to_owned();
        Ok(Self { engine, version, programs, scratch: scratch.canonicalize()?, keep })
    }

    /// A private place for one or more runs against one model.
    pub(crate) async fn trial(&self, script: Script) -> Result<Trial> {
        let folder = tempfile::Builder::new().prefix(self.engine.as_str()).tempdir_in(&self.scratch)?;
        let model = ScriptedModel::start(script).await?;
        let trial = Trial { folder, model, engine: self.engine, keep: self.keep, subscription: false };
        for (name, text) in subject::home_files(self.engine, &trial.model.url()) {
            put(&trial.home().join(name), &text)?;
        }
        std::fs::create_dir_all(trial.home())?;
        std::fs::create_dir_all(trial.tree())?;
        put(&trial.tree().join("README.md"), "A repository.\n")?;
        git(&trial.tree(), &["init", "--quiet", "--initial-branch=main"])?;
        Ok(trial)
    }
}

pub(crate) fn put(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

pub(crate) fn git(dir: &Path, words: &[&str]) -> Result<String> {
    let mut command = std::process::Command::new("git");
    command
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=matrix", "-c", "user.email=matrix@localhost"])
        .args(words);
    let output = command.output().context("git could not be started")?;
    ensure!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The program that stands beside this one.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.is_file(), "there is no {}: use `cargo xtask engines matrix`", path.display());
    Ok(path)
}

pub(crate) struct Trial {
    folder: TempDir,
    pub(crate) model: ScriptedModel,
    engine: Program,
    keep: bool,
    /// Signed in as a person is, where the engine knows both.
    pub(crate) subscription: bool,
}

impl Trial {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The operator's.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("operator")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.path("work/tree")
    }

    /// What the factory of this trial has in its environment.
    pub(crate) fn environment(&self, bench: &Bench) -> Vec<(String, String)> {
        let mut path = vec![bench.programs.clone()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(path).unwrap_or_default().to_string_lossy().into_owned();
        let base = [("PATH", path), ("HOME", self.home().display().to_string())];
        let own = subject::variables(self.engine, &self.model.url(), self.subscription);
        base.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    pub(crate) async fn engine(&self, bench: &Bench) -> Result<Arc<dyn Engine>> {
        self.engine_in(self.environment(bench)).await
    }

    /// In the environment of another factory.
    pub(crate) async fn engine_in(&self, environment: Vec<(String, String)>) -> Result<Arc<dyn Engine>> {
        let host: HostEnvironment = environment.into_iter().collect();
        let init = InitProgram { program: beside("giga-sandbox-init")?, args: Vec::new() };
        let config = SandboxConfig { mode: SandboxMode::Require, ..SandboxConfig::new(init) };
        let sandbox = Sandbox::start_in(config, &host).await?;
        let program = ProgramConfig {
            model: Some(subject::model(self.engine).to_owned()),
            pass_env: subject::pass_env(self.engine),
            ..ProgramConfig::default()
        };
        let config = EnginesConfig {
            programs: [(self.engine, program)].into(),
            prices: [(subject::asked_as(subject::model(self.engine)).to_owned(), subject::PRICE)].into(),
            scratch: Some(self.path("runs")),
            ..EnginesConfig::default()
        };
        let all = engines_in(&config, host, &sandbox);
        all.into_iter().find(|engine| engine.name() == self.engine.as_str()).context("no such engine")
    }

    /// A request as an agent would make it.
    pub(crate) fn request(&self) -> EngineRequest {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut request = EngineRequest::new(self.tree(), PROMPT);
        request.home = Some(self.path("work/home"));
        request.sessions = Some(self.path("sessions"));
        request.env = vec![(RUN_MARKER.to_owned(), format!("matrix-{}-{number}", std::process::id()))];
        let minute = Duration::from_mins(1);
        request.watchdog = Watchdog { idle: minute, wall: minute * 2, kill_grace: Duration::from_secs(2) };
        request
    }

    pub(crate) async fn run(&self, bench: &Bench, request: EngineRequest) -> Result<Ran> {
        self.run_until(bench, request, |_| false).await
    }

    /// Stops it once `enough` says so of what was asked so far.
    pub(crate) async fn run_until(
        &self,
        bench: &Bench,
        request: EngineRequest,
        enough: impl Fn(&[Asked]) -> bool,
    ) -> Result<Ran> {
        let before = self.model.asked().len();
        let marker = request.env.iter().find(|(name, _)| name == RUN_MARKER).map(|(_, value)| value.clone());
        let engine = self.engine(bench).await?;
        let (sender, mut receiver) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let run = engine.run(request, sender, giga_factory::engines::Inbox::closed(), stop.clone());
        let listen = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                events.push(event);
            }
            events
        };
        let over = CancellationToken::new();
        let watch = async {
            while !over.is_cancelled() && !stop.is_cancelled() {
                if enough(&self.model.asked()) {
                    stop.cancel();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let run = async {
            let report = run.await;
            over.cancel();
            report
        };
        let (report, events, ()) = tokio::join!(run, listen, watch);
        let asked = self.model.asked().split_off(before);
        let ran = Ran { report, events, asked, marker: marker.unwrap_or_default() };
        if self.keep {
            eprintln!("{ran:#?}");
        }
        Ok(ran)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.keep {
            self.folder.disable_cleanup(true);
            eprintln!("kept: {}", self.folder.path().display());
        }
    }
}

/// What an engine did, on both sides.
pub(crate) struct Ran {
    pub(crate) report: EngineReport,
    pub(crate) events: Vec<EngineEvent>,
    /// By this run.
    pub(crate) asked: Vec<Asked>,
    pub(crate) marker: String,
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asked: Vec<_> = self.asked.iter().map(|asked| (asked.turn, asked.trouble, asked.usage)).collect();
        f.debug_struct("Ran")
            .field("report", &self.report)
            .field("events", &self.events)
            .field("asked", &asked)
            .finish_non_exhaustive()
    }
}

impl Ran {
    pub(crate) fn succeeded(&self) -> Result<()> {
        match &self.report.outcome {
            EngineOutcome::Succeeded => Ok(()),
            EngineOutcome::Failed(failure) => bail!("failed as {}: {}", failure.reason, failure.detail),
            EngineOutcome::Stopped => bail!("it was stopped"),
        }
    }

    pub(crate) fn failed(&self, reason: FailReason, retryable: bool) -> Result<&EngineFailure> {
        match &self.report.outcome {
            EngineOutcome::Failed(failure) => {
                let seen = (failure.reason, failure.retryable);
                let retry = if failure.retryable { "to be retried" } else { "lasting" };
                ensure!(
                    seen == (reason, retryable),
                    "failed as {}, {retry}: {}",
                    failure.reason,
                    failure.detail
                );
                Ok(failure)
            }
            EngineOutcome::Succeeded => bail!("it succeeded; it should have failed as {reason}"),
            EngineOutcome::Stopped => bail!("it was stopped"),
        }
    }

    /// What the model says that it sent.
    pub(crate) fn sent_tokens(&self) -> u64 {
        tokens(&self.asked)
    }

    /// Turns that were asked for, side questions apart.
    pub(crate) fn turns(&self) -> Vec<usize> {
        self.asked.iter().filter_map(|asked| asked.turn).collect()
    }
}

pub(crate) fn tokens(asked: &[Asked]) -> u64 {
    asked
        .iter()
        .filter_map(|asked| asked.usage)
        .map(|usage| usage.input + usage.cache_read + usage.output)
        .sum()
}
