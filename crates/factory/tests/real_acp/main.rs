//! The real agents that speak ACP, against the scripted model on loopback: gemini and opencode by themselves, Claude Code
//! and Codex through their adapters. Not among the ordinary tests: `cargo xtask engines` installs the programs, then
//! `cargo test -p giga-factory --test real-acp [NAME…]` runs them and prints what was seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{FailReason, Permissions};
use giga_factory::engines::{
    AcpConfig, Answer, Engine, EngineEvent, EngineOutcome, EngineReport, EngineRequest, EnginesConfig,
    HostEnvironment, Inbox, Input, Preflight, Program, RUN_MARKER, Watchdog, engines_in,
};
use giga_factory::sandbox::{InitProgram, Sandbox, SandboxConfig, SandboxMode};
use giga_scripted_model::{Script, ScriptedModel};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const KEY: &str = "dummy-key-for-acp";

struct Subject {
    name: &'static str,
    argv: &'static [&'static str],
    account: Program,
    mode: Option<&'static str>,
    /// Whether what it says that it used is what the model sent.
    counts: bool,
    /// Whether it asks leave for a command.
    asks: bool,
}

const SUBJECTS: [Subject; 4] = [
    Subject {
        name: "gemini",
        // Without a model of its own choice it asks another one which to take, and does not count that.
        argv: &["gemini", "--acp", "-m", "gemini-2.5-pro"],
        account: Program::Gemini,
        mode: None,
        counts: true,
        asks: true,
    },
    Subject {
        name: "opencode",
        argv: &["opencode", "acp"],
        account: Program::Opencode,
        mode: None,
        // It names the last message only.
        counts: false,
        asks: true,
    },
    Subject {
        name: "claude",
        argv: &["claude-agent-acp"],
        account: Program::Claude,
        mode: None,
        counts: true,
        asks: true,
    },
    Subject {
        name: "codex",
        argv: &["codex-acp"],
        account: Program::Codex,
        mode: Some("full-access"),
        counts: false,
        asks: false,
    },
];

struct Trial {
    folder: TempDir,
    model: ScriptedModel,
    engine: Arc<dyn Engine>,
}

struct Ran {
    report: EngineReport,
    events: Vec<EngineEvent>,
}

fn programs() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    cache.expect("there is a home").join("giga/engines/node_modules/.bin")
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
    std::fs::write(path, text).expect("files can be written");
}

impl Trial {
    async fn new(subject: &Subject, script: serde_json::Value) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let script: Script = serde_json::from_value(script).expect("a script");
        let model = ScriptedModel::start(script).await.expect("a model on loopback");
        let (home, tree) = (folder.path().join("operator"), folder.path().join("work/tree"));
        put(&tree.join("README.md"), "A repository.\n");
        let url = model.url();
        let mut environment = vec![("HOME".to_owned(), home.display().to_string())];
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        let mut path = vec![programs()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        set("PATH", std::env::join_paths(path).expect("a path").to_string_lossy().into_owned());
        match subject.account {
            Program::Claude => {
                set("ANTHROPIC_API_KEY", KEY.to_owned());
                set("ANTHROPIC_BASE_URL", url);
            }
            Program::Codex => {
                set("OPENAI_API_KEY", KEY.to_owned());
                let provider = format!(
                    "model = \"gpt-5-acp\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"Scripted\"\n\
                     base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nrequest_max_retries = 1\n\
                     stream_max_retries = 1\n"
                );
                put(&home.join(".codex/config.toml"), &provider);
            }
            Program::Gemini => {
                set("GEMINI_API_KEY", KEY.to_owned());
                set("GOOGLE_GEMINI_BASE_URL", url);
                let settings =
                    r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"maxAttempts":2}}"#;
                put(&home.join(".gemini/settings.json"), settings);
            }
            Program::Opencode => {
                let settings = json!({
                    "model": "scripted/matrix-1", "autoupdate": false, "share": "disabled",
                    "permission": {"edit": "ask", "bash": "ask"},
                    "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                        "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
                        "models": {"matrix-1": {"name": "matrix-1"}}}},
                });
                put(&home.join(".config/opencode/opencode.json"), &settings.to_string());
            }
        }
        std::fs::create_dir_all(&home).expect("a home");
        let host: HostEnvironment = environment.into_iter().collect();
        let init = InitProgram { program: env!("CARGO_BIN_EXE_giga-sandbox-init").into(), args: Vec::new() };
        let sandbox = SandboxConfig { mode: SandboxMode::Require, ..SandboxConfig::new(init) };
        let sandbox = Sandbox::start_in(sandbox, &host).await.expect("a sandbox");
        let agent = AcpConfig {
            argv: subject.argv.iter().map(|word| (*word).to_owned()).collect(),
            account: Some(subject.account),
            pass_env: Vec::new(),
            env: std::collections::BTreeMap::new(),
            hosts: Vec::new(),
            home: Vec::new(),
            model: None,
            mode: subject.mode.map(str::to_owned),
            permissions: Permissions::Commands,
            reports_usage: subject.counts,
        };
        let config = EnginesConfig {
            acp: [("subject".to_owned(), agent)].into(),
            scratch: Some(folder.path().join("runs")),
            ..EnginesConfig::default()
        };
        let engine =
            engines_in(&config, host, &sandbox).into_iter().find(|engine| engine.name() == "subject");
        Self { folder, model, engine: engine.expect("it is configured") }
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join("work/tree").join(name)).ok()
    }

    fn request(&self) -> EngineRequest {
        let mut request = EngineRequest::new(self.folder.path().join("work/tree"), "Write hello.txt.");
        request.home = Some(self.folder.path().join("work/home"));
        request.sessions = Some(self.folder.path().join("sessions"));
        request.env = vec![(RUN_MARKER.to_owned(), format!("real-acp-{}", std::process::id()))];
        request.watchdog = Watchdog {
            idle: Duration::from_mins(1),
            wall: Duration::from_mins(2),
            kill_grace: Duration::from_secs(5),
        };
        request
    }

    /// `answer` to every question, where somebody is there.
    async fn run(&self, request: EngineRequest, answer: Option<&str>, stop_at: Option<&str>) -> Ran {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
        let (say, inbox) = Inbox::channel(8);
        let inbox = if answer.is_some() { inbox } else { Inbox::closed() };
        let stop = CancellationToken::new();
        let run = self.engine.run(request, sender, inbox, stop.clone());
        let listen = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                if let (EngineEvent::Question(question), Some(answer)) = (&event, answer) {
                    let chosen =
                        question.options.iter().find(|option| option.to_lowercase().starts_with(answer));
                    let text = chosen.cloned().unwrap_or_default();
                    let answer = Answer::Given { text, by: None };
                    let _ = say.send(Input::Answer { seq: 1, question: question.id.clone(), answer }).await;
                }
                if let (EngineEvent::Output { line, .. }, Some(wanted)) = (&event, stop_at)
                    && line.contains(wanted)
                {
                    stop.cancel();
                }
                events.push(event);
            }
            events
        };
        let (report, events) = tokio::join!(run, listen);
        if std::env::var_os("SHOW").is_some() {
            eprintln!("{report:#?}\n{events:#?}");
        }
        Ran { report, events }
    }
}

fn work() -> serde_json::Value {
    json!({"turns": [
        {"say": "I write.", "do": [{"write": {"path": "hello.txt", "content": "hello\n"}}],
            "usage": {"input": 1000, "cacheRead": 200, "output": 50}},
        {"say": "I run.", "do": [{"run": "echo ran > ran.txt"}]},
        {"say": "All done.", "do": []},
    ]})
}

type Seen = Result<String, String>;

fn check(so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if so { Ok(()) } else { Err(otherwise()) }
}

async fn is_ready(subject: &Subject) -> Seen {
    let trial = Trial::new(subject, work()).await;
    match trial.engine.preflight().await {
        Preflight::Ready { version } => Ok(version.unwrap_or_else(|| "no version".to_owned())),
        other => Err(format!("{other:?}")),
    }
}

async fn edits_and_runs(subject: &Subject) -> Seen {
    let trial = Trial::new(subject, work()).await;
    let ran = trial.run(trial.request(), None, None).await;
    check(ran.report.outcome == EngineOutcome::Succeeded, || format!("{:?}", ran.report.outcome))?;
    check(trial.file("hello.txt").as_deref() == Some("hello\n"), || "hello.txt is not written".to_owned())?;
    check(trial.file("ran.txt").as_deref() == Some("ran\n"), || "the command was not run".to_owned())?;
    check(ran.report.summary.as_deref() == Some("All done."), || format!("says {:?}", ran.report.summary))?;
    check(ran.report.session_id.is_some(), || "names no session".to_owned())?;
    Ok("hello.txt, ran.txt".to_owned())
}

async fn counts(subject: &Subject) -> Seen {
    let trial = Trial::new(subject, work()).await;
    let ran = trial.run(trial.request(), None, None).await;
    let sent: u64 = trial
        .model
        .asked()
        .iter()
        .filter_map(|asked| asked.usage)
        .map(|u| u.input + u.cache_read + u.output)
        .sum();
    let named = ran.report.usage.tokens;
    if !subject.counts {
        return Ok(format!("not believed: {named} named, {sent} sent; the reserved amount is charged"));
    }
    check(named == sent && ran.report.metered, || format!("{named} named, {sent} sent, {:?}", ran.report))?;
    Ok(format!("{named} tokens"))
}

async fn refuses(subject: &Subject) -> Seen {
    if !subject.asks {
        return Ok("asks for nothing in this mode; its sandbox is ours".to_owned());
    }
    let trial = Trial::new(subject, work()).await;
    let mut request = trial.request();
    request.permissions = Some(Permissions::Edit);
    let ran = trial.run(request, None, None).await;
    check(trial.file("ran.txt").is_none(), || "the command was run".to_owned())?;
    check(trial.file("hello.txt").is_some(), || "and the edit was not made".to_owned())?;
    let noted = ran
        .events
        .iter()
        .any(|event| matches!(event, EngineEvent::Note(note) if note.contains("not allowed")));
    check(noted, || format!("nobody is told: {:?}", ran.events))?;
    Ok(format!("the command is refused, the run ends {:?}", ran.report.outcome))
}

async fn asks(subject: &Subject) -> Seen {
    if !subject.asks {
        return Ok("asks for nothing in this mode".to_owned());
    }
    let trial = Trial::new(subject, work()).await;
    let mut request = trial.request();
    request.permissions = Some(Permissions::Edit);
    let ran = trial.run(request, Some("allow"), None).await;
    let questions: Vec<_> = ran
        .events
        .iter()
        .filter_map(
            |event| if let EngineEvent::Question(question) = event { Some(question.clone()) } else { None },
        )
        .collect();
    check(questions.len() == 1, || format!("{questions:?}"))?;
    check(trial.file("ran.txt").is_some(), || "allowed, and not run".to_owned())?;
    Ok(format!("{:?} {:?}", questions[0].text, questions[0].options))
}

async fn resumes(subject: &Subject) -> Seen {
    let script = json!({"turns": [{"say": "First.", "do": []}, {"say": "Second.", "do": []}]});
    let trial = Trial::new(subject, script).await;
    let first = trial.run(trial.request(), None, None).await;
    let mut request = trial.request();
    request.prompt = "And now the rest.".to_owned();
    request.resume.clone_from(&first.report.session_id);
    request.usage_before = first.report.usage;
    let second = trial.run(request, None, None).await;
    check(second.report.outcome == EngineOutcome::Succeeded, || format!("{:?}", second.report.outcome))?;
    let turns: Vec<_> = trial.model.asked().iter().filter_map(|asked| asked.turn).collect();
    check(turns == [0, 1], || {
        let notes: Vec<_> =
            second.events.iter().filter(|event| matches!(event, EngineEvent::Note(_))).collect();
        format!("the model was asked for turns {turns:?}: {notes:?}")
    })?;
    check(second.report.session_id == first.report.session_id, || "under another name".to_owned())?;
    let said = second.report.summary.unwrap_or_default();
    check(said == "Second.", || said.clone())?;
    Ok("the model sees the same conversation".to_owned())
}

async fn stops(subject: &Subject) -> Seen {
    let script =
        json!({"turns": [{"say": "I begin.\n", "do": [{"run": "sleep 300"}]}, {"say": "Never.", "do": []}]});
    let trial = Trial::new(subject, script).await;
    let ran = trial.run(trial.request(), None, Some("I begin.")).await;
    check(ran.report.outcome == EngineOutcome::Stopped, || format!("{:?}", ran.report.outcome))?;
    Ok("stopped".to_owned())
}

async fn trouble(subject: &Subject, kind: &str) -> Seen {
    let script = json!({"turns": [{"say": "Hm.", "do": []}], "troubles": [{"turn": 0, "kind": kind}]});
    let trial = Trial::new(subject, script).await;
    let ran = trial.run(trial.request(), None, None).await;
    match ran.report.outcome {
        EngineOutcome::Failed(failure) if kind == "refusal" && failure.reason != FailReason::Refused => {
            Err(failure.to_string())
        }
        EngineOutcome::Failed(failure) => {
            let detail: String = failure.detail.chars().take(160).collect();
            Ok(format!(
                "{}, {}: {detail}",
                failure.reason,
                if failure.retryable { "passing" } else { "lasting" }
            ))
        }
        EngineOutcome::Succeeded if kind == "context_too_long" && ran.report.summary.is_some() => {
            Ok("it shortens the conversation by itself and goes on".to_owned())
        }
        other => Err(format!("{other:?}, says {:?}", ran.report.summary)),
    }
}

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut failed = false;
    for subject in
        SUBJECTS.iter().filter(|subject| wanted.is_empty() || wanted.iter().any(|w| w == subject.name))
    {
        println!("\n{} ({})", subject.name, subject.argv.join(" "));
        let mut show = |what: &str, seen: Seen| match seen {
            Ok(words) => println!("  ok      {what}: {words}"),
            Err(words) => {
                failed = true;
                println!("  FAILED  {what}: {words}");
            }
        };
        show("is ready", is_ready(subject).await);
        show("edits and runs", edits_and_runs(subject).await);
        show("counts", counts(subject).await);
        show("refuses what is not allowed", refuses(subject).await);
        show("asks a person", asks(subject).await);
        show("resumes", resumes(subject).await);
        show("stops", stops(subject).await);
        for kind in ["signed_out", "overloaded", "context_too_long", "refusal"] {
            show(kind, trouble(subject, kind).await);
        }
    }
    std::process::exit(i32::from(failed));
}
