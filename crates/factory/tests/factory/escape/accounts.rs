//! An engine gets its own account and settings, and no other's.

use giga_factory::engines::{
    EngineEvent, EngineRequest, EnginesConfig, HostEnvironment, Inbox, Program, ProgramConfig, engines_in,
};
use giga_factory::sandbox::{Sandbox, SandboxMode};
use tokio_util::sync::CancellationToken;

use crate::agent::world::sandbox;

const FILES: [&str; 6] = [
    ".claude/.credentials.json",
    ".claude/history.jsonl",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".ssh/id_ed25519",
];

/// What it finds in its home, and which keys it was given.
const LOOK: &str = "#!/bin/sh\n(cd && find . -type f) | sed 's/^/file: /'\nenv | sed -n 's/^\\([A-Z_]*KEY\\)=.*/key: \\1/p'\n\
                    echo changed > ~/.claude/.credentials.json || true\n";

async fn seen(program: Program) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (home, tree) = (folder.path().join("home"), folder.path().join("tree"));
    std::fs::create_dir(&tree).unwrap();
    for file in FILES {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "of the operator").unwrap();
    }
    let script = folder.path().join("engine");
    std::fs::write(&script, LOOK).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]
        .map(|key| (key.into(), format!("sk-{key}-1").into()));
    let own =
        [("HOME".into(), home.clone().into_os_string()), ("PATH".into(), std::env::var_os("PATH").unwrap())];
    let host: HostEnvironment =
        own.into_iter().chain(keys).collect::<Vec<(std::ffi::OsString, _)>>().into_iter().collect();
    let mut wanted = sandbox();
    wanted.mode = SandboxMode::Require;
    let sandbox = Sandbox::start_in(wanted, &host).await.unwrap();
    let settings = ProgramConfig { program: Some(script), ..ProgramConfig::default() };
    let config = EnginesConfig { programs: [(program, settings)].into(), ..EnginesConfig::default() };
    let engines = engines_in(&config, host, &sandbox);
    let engine = engines.iter().find(|engine| engine.name() == program.as_str()).unwrap();
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let listen = async {
        let mut lines = Vec::new();
        while let Some(event) = events.recv().await {
            if let EngineEvent::Output { line, .. } = event {
                lines.push(line);
            }
        }
        lines
    };
    let run = engine.run(
        EngineRequest::new(&tree, "Look around."),
        sender,
        Inbox::closed(),
        CancellationToken::new(),
    );
    let (_, lines) = tokio::join!(run, listen);
    let account = std::fs::read_to_string(home.join(".claude/.credentials.json")).unwrap();
    assert_eq!(account, "of the operator", "what it changes is a copy");
    let mut seen: Vec<String> =
        lines.into_iter().filter(|line| line.starts_with("file: ") || line.starts_with("key: ")).collect();
    seen.sort();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_gets_its_own_account() {
    assert_eq!(seen(Program::Claude).await, ["file: ./.claude/.credentials.json", "key: ANTHROPIC_API_KEY"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_gets_its_own_account() {
    assert_eq!(seen(Program::Codex).await, ["file: ./.codex/auth.json", "key: OPENAI_API_KEY"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_gets_its_own_account() {
    assert_eq!(seen(Program::Gemini).await, ["file: ./.gemini/oauth_creds.json", "key: GEMINI_API_KEY"]);
}

/// It serves many vendors, and has their keys.
#[tokio::test(flavor = "multi_thread")]
async fn opencode_gets_its_own_account() {
    let seen = seen(Program::Opencode).await;
    let files: Vec<&String> = seen.iter().filter(|line| line.starts_with("file: ")).collect();
    assert_eq!(files, ["file: ./.local/share/opencode/auth.json"]);
}
