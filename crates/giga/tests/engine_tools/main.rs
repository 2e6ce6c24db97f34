//! The real coding engines use the tools of their job: a scripted model on loopback tells each to save a file, start a child and
//! ask for a checkpoint. Not part of the ordinary suite, because it needs the programs (1.5 GB):
//!
//! ```sh
//! cargo xtask engines && cargo test -p giga --test engine-tools
//! ```
#![expect(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use giga_scripted_model::{Act, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where `cargo xtask engines` puts them.
fn programs() -> PathBuf {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let programs = cache.join("giga/engines/node_modules/.bin");
    assert!(programs.is_dir(), "run `cargo xtask engines` first");
    programs
}

fn script(engine: &str) -> Script {
    let call = |tool: &str, input: Value| Turn {
        say: format!("I use {tool}."),
        acts: vec![Act::Call { tool: tool.to_owned(), input }],
        ..Turn::default()
    };
    let child = json!({"manifest": {"name": "child", "engine": engine, "runAt": "2099-01-01T00:00:00Z"}, "prompt": "Later.", "idempotencyKey": "c-1"});
    let write = Act::Write { path: "b.txt".to_owned(), content: "b\n".to_owned() };
    Script {
        turns: vec![
            call("save_artifact", json!({"name": "report.md", "text": "# Report"})),
            call("spawn_children", json!({"children": [child]})),
            Turn { say: "I write.".to_owned(), acts: vec![write], ..Turn::default() },
            call("checkpoint", json!({"note": "b is written"})),
            Turn { say: "Done.".to_owned(), ..Turn::default() },
        ],
        ..Script::default()
    }
}

/// A coordinator and a factory with one engine, whose account is the scripted model.
struct World {
    home: TempDir,
    process: Child,
}

impl World {
    fn start(model: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: String| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("repos/hello/a.txt", "a\n".to_owned());
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(home.path().join("repos/hello"));
            command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
            assert!(command.status().unwrap().success());
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "first"]);
        let provider = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{model}/v1\"\nwire_api = \"responses\"\nenv_key = \"CODEX_API_KEY\"\n"
        );
        write(".codex/config.toml", provider);
        write(".codex/auth.json", json!({"OPENAI_API_KEY": "dummy"}).to_string());
        let by_key = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
        write(".gemini/settings.json", by_key.to_string());
        let options = json!({"baseURL": format!("{model}/v1"), "apiKey": "dummy"});
        let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "s", "options": options, "models": {"m": {"name": "m"}}});
        let settings = json!({"model": "scripted/m", "provider": {"scripted": provider}});
        write(".config/opencode/opencode.json", settings.to_string());
        let mut command = giga(home.path());
        command.args(["up", "--listen", "127.0.0.1:0", "--factories", "1", "--repos"]);
        command.arg(home.path().join("repos"));
        command.env("ANTHROPIC_BASE_URL", model).env("GOOGLE_GEMINI_BASE_URL", model);
        for key in ["ANTHROPIC_API_KEY", "CODEX_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
            command.env(key, "dummy");
        }
        let log = std::fs::File::create(home.path().join("server.log")).unwrap();
        let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready "), "{line:?}");
        Self { home, process }
    }

    fn giga(&self, args: &[&str]) -> String {
        let output = giga(self.home.path()).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // In good order: its factory ends what it started.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

fn giga(home: &Path) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(programs());
    let mut command = Command::new(env!("CARGO_BIN_EXE_giga"));
    command.env_clear().env("HOME", home).env("PATH", path).current_dir(home).stdin(Stdio::null());
    command
}

async fn uses_its_tools(engine: &str) {
    let model = ScriptedModel::start(script(engine)).await.unwrap();
    let world = World::start(&model.url());
    let manifest = format!(
        "---\nname: real\nrepo: hello\nengine: {engine}\nretry: {{max: 0}}\nbudget: {{wall: 3m}}\n---\nDo it.\n"
    );
    std::fs::write(world.home.path().join("job.md"), manifest).unwrap();
    world.giga(&["job", "submit", "job.md"]);
    let waited = tokio::task::block_in_place(|| {
        world.giga(&["job", "wait", "real", "--until", "testing", "--timeout", "180s"])
    });
    let log = world.giga(&["job", "logs", "real"]);
    assert!(waited.contains("ready to ship"), "{waited}\n{log}");
    assert!(world.giga(&["artifact", "list", "real"]).contains("report.md"), "{log}");
    let jobs: Value = serde_json::from_str(&world.giga(&["job", "list", "-o", "json"])).unwrap();
    let named = |name: &str| {
        let all = jobs["jobs"].as_array().or_else(|| jobs.as_array()).unwrap();
        all.iter()
            .find(|job| job["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no {name}: {jobs}\n{log}"))
    };
    assert_eq!(named("child")["parentId"], named("real")["id"]);
    // What the model was told of its last tool.
    let asked = model.asked().last().unwrap().body.to_string();
    assert!(
        asked.contains("\\\"saved\\\\\\\":")
            || asked.contains("\\\"saved\\\":")
            || asked.contains("\"saved\":"),
        "{asked}"
    );
    assert!(!log.contains("gigaj_") && !asked.contains("gigaj_"), "the job's token is nowhere to be seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn claude() {
    uses_its_tools("claude").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex() {
    uses_its_tools("codex").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini() {
    uses_its_tools("gemini").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opencode() {
    uses_its_tools("opencode").await;
}
