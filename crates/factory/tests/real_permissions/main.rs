//! What the real programs do under each of a job's `permissions`, against the scripted model on loopback: whether a file is
//! written, and whether a command is run. Not among the ordinary tests: `cargo xtask engines` installs the programs, then
//! `cargo test -p giga-factory --test real-permissions [NAME…]` runs them and prints what was seen.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use giga_domain::Permissions;
use giga_factory::engines::{
    EngineRequest, EnginesConfig, HostEnvironment, Inbox, Program, ProgramConfig, RUN_MARKER, Watchdog,
    engines_in,
};
use giga_factory::sandbox::{InitProgram, Sandbox, SandboxConfig, SandboxMode};
use giga_scripted_model::{Script, ScriptedModel};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const KEY: &str = "dummy-key-for-permissions";

/// Codex knows the first and not the second.
const MODELS: [(Program, &str); 5] = [
    (Program::Claude, "claude-sonnet-4-5"),
    (Program::Codex, "gpt-6-sol"),
    (Program::Codex, "gpt-5-unlisted"),
    (Program::Opencode, "scripted/matrix-1"),
    (Program::Gemini, "gemini-2.5-pro"),
];

/// Whether a file is written, and whether a command is run.
fn expected(program: Program, model: &str, permissions: Permissions) -> (bool, bool) {
    let commands = permissions >= Permissions::Commands;
    // Without its shell it has nothing to edit with for a model that it does not know.
    let edits_by_shell = program == Program::Codex && model == "gpt-5-unlisted";
    (if edits_by_shell { commands } else { permissions >= Permissions::Edit }, commands)
}

const COMMAND: &str = "echo ran > ran.txt";

fn programs() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    cache.expect("there is a home").join("giga/engines/node_modules/.bin")
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
    std::fs::write(path, text).expect("files can be written");
}

/// The operator's variables, and files of the home.
fn signed_in(program: Program, url: &str, home: &Path) -> Vec<(&'static str, String)> {
    let key = KEY.to_owned();
    match program {
        Program::Claude => vec![("ANTHROPIC_API_KEY", key), ("ANTHROPIC_BASE_URL", url.to_owned())],
        Program::Codex => {
            let provider = format!(
                "model_provider = \"scripted\"\n[model_providers.scripted]\nname = \"Scripted\"\nbase_url = \"{url}/v1\"\n\
                 wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nrequest_max_retries = 1\nstream_max_retries = 1\n"
            );
            put(&home.join(".codex/config.toml"), &provider);
            vec![("OPENAI_API_KEY", key)]
        }
        Program::Gemini => {
            let settings =
                r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"maxAttempts":2}}"#;
            put(&home.join(".gemini/settings.json"), settings);
            vec![("GEMINI_API_KEY", key), ("GOOGLE_GEMINI_BASE_URL", url.to_owned())]
        }
        Program::Opencode => {
            let settings = json!({
                "autoupdate": false, "share": "disabled",
                "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                    "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
                    "models": {"matrix-1": {"name": "matrix-1"}}}},
            });
            put(&home.join(".config/opencode/opencode.json"), &settings.to_string());
            // What the operator lets it do is not what the job lets it do.
            vec![("OPENCODE_PERMISSION", r#"{"edit":"allow","bash":"allow"}"#.to_owned())]
        }
    }
}

async fn seen(program: Program, model: &str, permissions: Permissions) -> (bool, bool) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // A refusal ends the run of some programs, so each is tried by itself.
    let mut did = Vec::new();
    for (act, file) in [
        (json!({"write": {"path": "hello.txt", "content": "hello\n"}}), "hello.txt"),
        (json!({"run": COMMAND}), "ran.txt"),
    ] {
        let script = json!({"turns": [{"say": "I do it.", "do": [act]}, {"say": "Done.", "do": []}]});
        let script: Script = serde_json::from_value(script).expect("a script");
        let scripted = ScriptedModel::start(script).await.expect("a model on loopback");
        let place = folder.path().join(file);
        let (home, tree) = (place.join("operator"), place.join("work/tree"));
        std::fs::create_dir_all(&home).expect("a home");
        put(&tree.join("README.md"), "A repository.\n");
        let mut path = vec![programs()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(path).expect("a path").to_string_lossy().into_owned();
        let mut environment = vec![("HOME", home.display().to_string()), ("PATH", path)];
        environment.extend(signed_in(program, &scripted.url(), &home));
        let host: HostEnvironment =
            environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let init = InitProgram { program: env!("CARGO_BIN_EXE_giga-sandbox-init").into(), args: Vec::new() };
        let sandbox = SandboxConfig { mode: SandboxMode::Require, ..SandboxConfig::new(init) };
        let sandbox = Sandbox::start_in(sandbox, &host).await.expect("a sandbox");
        let config = EnginesConfig {
            programs: [(
                program,
                ProgramConfig { model: Some(model.to_owned()), ..ProgramConfig::default() },
            )]
            .into(),
            scratch: Some(place.join("runs")),
            ..EnginesConfig::default()
        };
        let all = engines_in(&config, host, &sandbox);
        let engine = all.into_iter().find(|engine| engine.name() == program.as_str()).expect("it is known");
        let mut request = EngineRequest::new(&tree, "Do it.");
        request.permissions = Some(permissions);
        request.home = Some(place.join("work/home"));
        request.env = vec![(RUN_MARKER.to_owned(), format!("real-permissions-{}", std::process::id()))];
        let minute = Duration::from_mins(1);
        request.watchdog = Watchdog { idle: minute, wall: minute * 2, kill_grace: Duration::from_secs(2) };
        let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
        let listen = async {
            while let Some(event) = receiver.recv().await {
                if std::env::var_os("SHOW").is_some() {
                    eprintln!("{event:?}");
                }
            }
        };
        let run = engine.run(request, sender, Inbox::closed(), CancellationToken::new());
        let (report, ()) = tokio::join!(run, listen);
        assert!(!scripted.asked().is_empty(), "{program} asked nothing: {report:?}");
        did.push(tree.join(file).exists());
    }
    (did[0], did[1])
}

#[tokio::main]
async fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut code = ExitCode::SUCCESS;
    for (program, model) in MODELS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == program.as_str()) {
            continue;
        }
        for permissions in [Permissions::Ask, Permissions::Edit, Permissions::Commands, Permissions::All] {
            let (should, did) =
                (expected(program, model, permissions), seen(program, model, permissions).await);
            let verdict = if should == did { "as it should" } else { "NOT AS IT SHOULD" };
            eprintln!("{program} {model} {permissions}: edits {}, runs commands {}: {verdict}", did.0, did.1);
            if should != did {
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
