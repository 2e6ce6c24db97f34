//! Whether an engine is there and signed in, and what the factory makes of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::Capability;
use giga_factory::engines::{
    CommandConfig, Engine, EngineEvent, EngineReport, EngineRequest, EnginesConfig, EventFormat,
    HostEnvironment, Inbox, Preflight, Program, capabilities, detect, engines, engines_in,
};
use giga_factory::sandbox::Sandbox;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engines::kit::{Bench, PATIENCE, fake_engine};

/// The fake hears its steps through the factory's environment here: a preflight has no request.
async fn preflight(engine: &str, steps: &[&str]) -> Preflight {
    let mut bench = Bench::new(engine, &[]).configured(|config| {
        for program in config.programs.values_mut() {
            program.pass_env = vec!["FAKE_ENGINE".into()];
        }
    });
    bench.host.push(("FAKE_ENGINE".into(), steps.join("\n")));
    bench.host.retain(|(name, _)| name != "HOME");
    bench.engine().preflight().await
}

fn ready(version: &str) -> Preflight {
    Preflight::Ready { version: Some(version.to_owned()) }
}

#[tokio::test]
async fn signed_in() {
    let claude = ["on --version print 2.1.210 (Claude Code)", r#"on auth print {"loggedIn": true}"#];
    assert_eq!(preflight("claude", &claude).await, ready("2.1.210"));
    let codex = ["on --version print codex-cli 0.150.0", "on login complain Logged in using ChatGPT"];
    assert_eq!(preflight("codex", &codex).await, ready("0.150.0"));
    let opencode = ["on --version print 1.15.10", "on models print anthropic/claude-sonnet-4-6"];
    assert_eq!(preflight("opencode", &opencode).await, ready("1.15.10"));
}

async fn refuses(program: Program, step: &str, word: &str) {
    let found = preflight(program.as_str(), &[step]).await;
    let is_signed_out = matches!(&found, Preflight::NotSignedIn { remedy } if remedy.contains(word));
    assert!(is_signed_out, "{program}: {found:?}");
}

#[tokio::test]
async fn not_signed_in() {
    for &program in Program::ALL {
        let (step, word) = match program {
            Program::Claude => ("on auth exit 1", "claude auth login"),
            Program::Codex => ("on login exit 1", "codex login"),
            Program::Opencode => ("on models print nothing", "opencode auth login"),
            Program::Gemini => ("", "GEMINI_API_KEY"),
        };
        refuses(program, step, word).await;
    }
    refuses(Program::Claude, r#"on auth print {"loggedIn": false}"#, "ANTHROPIC_API_KEY").await;
}

#[tokio::test]
async fn gemini_is_signed_in_by_key_or_by_browser() {
    let mut bench = Bench::new("gemini", &[]);
    let home = bench.dir.path().to_owned();
    bench.host.retain(|(name, _)| name != "HOME");
    bench.host.push(("HOME".into(), home.display().to_string()));
    assert!(!bench.engine().preflight().await.is_ready());
    std::fs::create_dir(home.join(".gemini")).unwrap();
    std::fs::write(home.join(".gemini/oauth_creds.json"), "{}").unwrap();
    assert!(bench.engine().preflight().await.is_ready());
}

#[tokio::test]
async fn not_installed_and_broken() {
    let bench = Bench::new("claude", &[]);
    let nowhere = EnginesConfig::default();
    let host: HostEnvironment = [("PATH", bench.dir.path())].into_iter().collect();
    for engine in engines_in(&nowhere, host, &Sandbox::off()).iter().filter(|engine| engine.name() != "devin")
    {
        let found = engine.preflight().await;
        assert!(matches!(found, Preflight::NotInstalled { .. }), "{}: {found:?}", engine.name());
    }
    let found = preflight("codex", &["on --version complain it is all wrong", "on --version exit 9"]).await;
    assert!(matches!(&found, Preflight::Broken { detail, .. } if detail.contains("all wrong")), "{found:?}");
}

#[tokio::test]
async fn the_shell_is_always_there() {
    let all = engines(&EnginesConfig::default(), &Sandbox::off());
    let names: Vec<&str> = all.iter().map(|engine| engine.name()).collect();
    let programs = Program::ALL.iter().map(|program| program.as_str());
    assert_eq!(names, ["shell"].into_iter().chain(programs).chain(["devin"]).collect::<Vec<_>>());
    assert!(all[0].preflight().await.is_ready());
}

#[derive(Debug)]
struct Sleeper;

#[async_trait]
impl Engine for Sleeper {
    fn name(&self) -> &'static str {
        "sleeper"
    }

    async fn preflight(&self) -> Preflight {
        std::future::pending().await
    }

    async fn run(
        &self,
        _: EngineRequest,
        _: mpsc::Sender<EngineEvent>,
        _: Inbox,
        _: CancellationToken,
    ) -> EngineReport {
        std::future::pending().await
    }
}

#[tokio::test]
async fn detection_offers_what_answers() {
    let fake = |check: &str| CommandConfig {
        argv: vec![fake_engine().display().to_string()],
        resume_argv: None,
        check_argv: Some(["fake-engine", "--fake", check].map(str::to_owned).into()),
        pass_env: Vec::new(),
        events: EventFormat::Text,
        hosts: Vec::new(),
    };
    let config = EnginesConfig {
        disabled: Program::ALL.iter().map(ToString::to_string).chain(["devin".to_owned()]).collect(),
        commands: [
            ("mine".to_owned(), fake("exit 0")),
            ("signed-out".to_owned(), fake("exit 1")),
            ("bad name".to_owned(), fake("exit 0")),
        ]
        .into(),
        ..EnginesConfig::default()
    };
    let found = detect(&engines(&config, &Sandbox::off()), PATIENCE).await;
    let offered = capabilities(&found);
    assert_eq!(offered.iter().map(Capability::as_str).collect::<Vec<_>>(), ["engine:mine", "engine:shell"]);

    let slow: Vec<Arc<dyn Engine>> = vec![Arc::new(Sleeper)];
    let found = detect(&slow, Duration::from_millis(10)).await;
    assert!(matches!(&found[0].preflight, Preflight::Broken { .. }), "{found:?}");
}
