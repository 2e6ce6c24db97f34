//! `giga engine try`: one tiny real run, as a job would get it, without a coordinator.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use giga_factory::engines::{
    self, Engine, EngineEvent, EngineOutcome, EngineReport, EngineRequest, Preflight, Stream, Watchdog,
};
use giga_factory::sandbox::Sandbox;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Done;
use super::context::Context;
use crate::args::{EngineCommand, EngineTryArgs};
use crate::exit::{self, CliError};
use crate::output::{printable, say};

const FILE: &str = "GIGA_TRY.txt";
const WORDS: &str = "hello from giga";

/// A tiny job that is not done by then is not done at all.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) async fn run(command: EngineCommand, context: &Context) -> Done {
    let EngineCommand::Try(args) = command;
    try_out(&args, context).await
}

async fn try_out(args: &EngineTryArgs, context: &Context) -> Done {
    let failed = |error: std::io::Error| CliError::failed(format!("cannot prepare a repository: {error}"));
    let config = crate::factory::sandbox_config(&context.settings)?;
    let sandbox = Sandbox::start(config).await.map_err(|error| CliError::failed(error.to_string()))?;
    let config = context.settings.engines().value;
    let all = engines::engines(&config, &sandbox);
    let Some(engine) = all.iter().find(|engine| engine.name() == args.engine) else {
        let names: Vec<&str> = all.iter().map(|engine| engine.name()).collect();
        let known = names.join(", ");
        return Err(CliError::failed(format!("there is no engine `{}`; there are {known}", args.engine)));
    };
    say(&format!("{}: is it ready?", engine.name()));
    let version = match engine.preflight().await {
        Preflight::Ready { version } => version,
        Preflight::NotInstalled { remedy } => {
            return Err(CliError::failed(format!("not installed: {remedy}")));
        }
        Preflight::NotSignedIn { remedy } => {
            return Err(CliError::failed(format!("not signed in: {remedy}")));
        }
        Preflight::Broken { detail, remedy } => return Err(CliError::failed(format!("{detail}: {remedy}"))),
    };
    // Where jobs have theirs: some engines do not work in a folder for temporary files.
    let data = context.settings.data().value;
    std::fs::create_dir_all(&data).map_err(failed)?;
    let folder = tempfile::Builder::new().prefix("try-").tempdir_in(&data).map_err(failed)?;
    let folder_path = folder.path().canonicalize().map_err(failed)?;
    let tree = repository(&folder_path).await.map_err(failed)?;
    let began = Instant::now();
    let report = play(engine.as_ref(), request(args, &folder_path, &tree)).await;
    let took = began.elapsed();
    let edited = std::fs::read_to_string(tree.join(FILE)).is_ok_and(|text| text.trim() == WORDS);
    let passed = report.outcome == EngineOutcome::Succeeded && edited;
    show(context, args, version.as_deref(), &report, edited, took)?;
    if passed { Ok(()) } else { Err(CliError::Ended(exit::FAILED)) }
}

fn request(args: &EngineTryArgs, folder: &Path, tree: &Path) -> EngineRequest {
    let prompt = format!(
        "Write a file named {FILE} in the current folder. It holds exactly one line: {WORDS}\n\
         Do nothing else, and stop when it is written.\n"
    );
    let mut request = EngineRequest::new(tree, prompt);
    request.model.clone_from(&args.model);
    // For an engine that runs scripts instead of reading prompts.
    request.script = Some(format!("echo '{WORDS}' > {FILE}"));
    request.budget.usd = Some(args.cap);
    request.watchdog = Watchdog { idle: PATIENCE, wall: PATIENCE, ..Watchdog::default() };
    request.home = Some(folder.join("home"));
    request.sessions = Some(folder.join("sessions"));
    request
}

/// New, with one commit, as a job finds it.
async fn repository(folder: &Path) -> std::io::Result<PathBuf> {
    let tree = folder.join("tree");
    std::fs::create_dir(&tree)?;
    std::fs::write(tree.join("README.md"), "A repository to try an engine in.\n")?;
    let who = ["-c", "user.name=giga", "-c", "user.email=giga@localhost"];
    for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "A repository"]] {
        let mut git = tokio::process::Command::new("git");
        git.args(who).args(words).current_dir(&tree).stdin(std::process::Stdio::null()).kill_on_drop(true);
        if !git.status().await?.success() {
            return Err(std::io::Error::other(format!("git {} failed", words[0])));
        }
    }
    Ok(tree)
}

/// Says what the engine says while it runs.
async fn play(engine: &dyn Engine, request: EngineRequest) -> EngineReport {
    let (sender, mut events) = mpsc::channel(64);
    let mut transcript = engine.transcript();
    let run = engine.run(request, sender, engines::Inbox::closed(), CancellationToken::new());
    let listen = async {
        while let Some(event) = events.recv().await {
            match event {
                EngineEvent::Output { stream, line } => {
                    let shown = transcript.as_mut().filter(|_| stream == Stream::Stdout);
                    let shown =
                        shown.and_then(|transcript| transcript.line(&line)).unwrap_or_else(|| vec![line]);
                    for line in &shown {
                        say(&printable(line));
                    }
                }
                EngineEvent::Note(note) => say(&printable(&note)),
                _ => {}
            }
        }
        for line in transcript.iter_mut().flat_map(engines::Transcript::rest) {
            say(&printable(&line));
        }
    };
    tokio::join!(run, listen).0
}

fn show(
    context: &Context,
    args: &EngineTryArgs,
    version: Option<&str>,
    report: &EngineReport,
    edited: bool,
    took: Duration,
) -> Done {
    let (outcome, failure) = match &report.outcome {
        EngineOutcome::Succeeded => ("succeeded", None),
        EngineOutcome::Stopped => ("stopped", None),
        EngineOutcome::Failed(failure) => ("failed", Some(failure.to_string())),
    };
    let seconds = took.as_secs_f64();
    let cost = report.usage.cost;
    let found = json!({
        "engine": args.engine, "version": version, "outcome": outcome, "failure": failure, "edited": edited,
        "tokens": report.usage.tokens, "costUsd": cost, "metered": report.metered,
        "session": report.session_id, "seconds": (seconds * 10.0).round() / 10.0,
    });
    context.output.one(&found, &args.engine, || {
        let cost = match (cost, report.metered) {
            (_, false) => "unknown: the engine did not say what it used".to_owned(),
            (Some(cost), true) => cost.to_string(),
            (None, true) => "none".to_owned(),
        };
        let mut lines = vec![
            format!("engine   {} {}", args.engine, version.unwrap_or("-")),
            format!("outcome  {}", failure.as_deref().map_or(outcome.to_owned(), printable)),
            format!("edited   {}", if edited { "yes" } else { "no" }),
            format!("tokens   {}", report.usage.tokens),
            format!("cost     {cost}"),
            format!("session  {}", report.session_id.as_deref().map_or_else(|| "-".to_owned(), printable)),
            format!("time     {seconds:.1} s"),
        ];
        lines.push(String::new());
        lines.join("\n")
    })?;
    Ok(())
}
