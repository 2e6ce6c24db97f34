//! A server of tools (Model Context Protocol) that an engine starts beside itself, and how each program is told of it.
//!
//! The server runs where the engine runs, with the engine's rights. Its values are passed on by the names of their
//! variables, never in arguments; the tools are allowed by name, so that no program asks about them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::programs::{Program, write_private};

/// How long a tool may take: a checkpoint can have to push a large repository.
const TOOL_SECONDS: u64 = 330;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// What its tools are called by: `mcp__giga__save_artifact`.
    pub name: &'static str,
    pub program: PathBuf,
    pub args: Vec<&'static str>,
    pub tools: Vec<String>,
}

/// The environment of a job that the server needs, and what leads it through a proxy.
const VARIABLES: [&str; 14] = [
    "GIGA_URL",
    "GIGA_TOKEN",
    "GIGA_JOB_ID",
    "GIGA_LEASE_EPOCH",
    giga_api::inside::SOCKET_VARIABLE,
    "GIGA_ALLOW_PLAIN_HTTP",
    "GIGA_CA_CERT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "GIGA_RUN_ID",
];

/// How a program is told: arguments before its own, and settings in its private home.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) args: Vec<OsString>,
    pub(super) home_settings: Option<HomeSettings>,
}

/// What is added to a file of settings in a private home.
#[derive(Debug, Clone)]
pub(crate) struct HomeSettings {
    pub(crate) file: &'static str,
    pub(crate) settings: Value,
}

/// `env` is what the program will run with.
pub(super) fn offer(
    program: Program,
    server: &ToolServer,
    scratch: &Path,
    env: &mut BTreeMap<OsString, OsString>,
) -> io::Result<Offer> {
    let args = |args: Vec<OsString>| Ok(Offer { args, home_settings: None });
    match program {
        Program::Claude => {
            let file = scratch.join("mcp.json");
            let entry = json!({
                "type": "stdio",
                "command": server.program,
                "args": server.args,
                // It starts servers with its own environment.
                "env": {},
                // The model sees them at once, and need not look for them.
                "alwaysLoad": true,
            });
            write_private(&file, &json!({"mcpServers": {server.name: entry}}).to_string())?;
            let tools = server.tools.iter().map(|tool| format!("mcp__{}__{tool}", server.name));
            let tools = tools.collect::<Vec<_>>().join(",");
            env.entry("MCP_TOOL_TIMEOUT".into()).or_insert_with(|| (TOOL_SECONDS * 1_000).to_string().into());
            // Written with `=`: it takes as many words as follow.
            let file = file.into_os_string();
            args(vec![joined("--mcp-config=", &file), format!("--allowedTools={tools}").into()])
        }
        Program::Codex => {
            let settings = [
                ("command", json!(server.program)),
                ("args", json!(server.args)),
                ("env_vars", json!(VARIABLES)),
                ("default_tools_approval_mode", json!("approve")),
                ("tool_timeout_sec", json!(TOOL_SECONDS)),
            ];
            let option = |(key, value): (&str, Value)| {
                // A string or list of JSON is one of TOML.
                [OsString::from("-c"), format!("mcp_servers.{}.{key}={value}", server.name).into()]
            };
            args(settings.into_iter().flat_map(option).collect())
        }
        Program::Gemini => {
            let variables: Map<String, Value> =
                VARIABLES.iter().map(|name| ((*name).to_owned(), json!(format!("${name}")))).collect();
            let entry = json!({
                "command": server.program,
                "args": server.args,
                "env": variables,
                "trust": true,
                "includeTools": server.tools,
                "timeout": TOOL_SECONDS * 1_000,
            });
            // It takes no settings from a place of ours: those of the system must lie where only root writes.
            let settings = json!({"mcpServers": {server.name: entry}});
            Ok(Offer {
                args: Vec::new(),
                home_settings: Some(HomeSettings { file: ".gemini/settings.json", settings }),
            })
        }
        Program::Opencode => {
            const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
            let command: Vec<Value> = std::iter::once(json!(server.program))
                .chain(server.args.iter().map(|arg| json!(arg)))
                .collect();
            let entry = json!({
                "type": "local",
                "command": command,
                "enabled": true,
                "timeout": TOOL_SECONDS * 1_000,
            });
            let allowed: Map<String, Value> =
                server.tools.iter().map(|tool| (format!("{}_{tool}", server.name), json!("allow"))).collect();
            let mut content: Value = env
                .get(std::ffi::OsStr::new(CONTENT))
                .and_then(|text| serde_json::from_str(text.to_str()?).ok())
                .unwrap_or_else(|| json!({}));
            merge(&mut content, json!({"mcp": {server.name: entry}, "permission": allowed}));
            env.insert(CONTENT.into(), content.to_string().into());
            args(Vec::new())
        }
    }
}

fn joined(before: &str, value: &OsString) -> OsString {
    let mut whole = OsString::from(before);
    whole.push(value);
    whole
}

/// What is there already stays, but for what both say.
pub(crate) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        // A single word stands for all tools that nothing else is said about.
        (into @ Value::String(_), Value::Object(from)) => {
            let mut whole = Map::from_iter([("*".to_owned(), into.clone())]);
            whole.extend(from);
            *into = Value::Object(whole);
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ToolServer {
        ToolServer {
            name: "giga",
            program: "/opt/giga".into(),
            args: vec!["mcp", "--job"],
            tools: vec!["checkpoint".to_owned(), "save_artifact".to_owned()],
        }
    }

    /// The token is in the environment of the job, and there it stays.
    #[test]
    fn no_value_of_a_variable_is_written_down() {
        for &program in Program::ALL {
            let scratch = tempfile::tempdir().unwrap();
            let mut env = BTreeMap::from([("GIGA_TOKEN".into(), "gigaj_secret".into())]);
            let offer = offer(program, &server(), scratch.path(), &mut env).unwrap();
            let mut told = format!("{:?}", (&offer.args, &offer.home_settings));
            for file in std::fs::read_dir(scratch.path()).unwrap().flatten() {
                told += &std::fs::read_to_string(file.path()).unwrap();
            }
            env.remove(std::ffi::OsStr::new("GIGA_TOKEN"));
            told = format!("{told}{env:?}");
            assert!(told.contains("/opt/giga"), "{program} is not told: {told}");
            assert!(told.contains("save_artifact") || program == Program::Codex, "allowed by name: {told}");
            assert!(!told.contains("gigaj_secret"), "{told}");
        }
    }

    #[test]
    fn settings_that_are_there_stay() {
        let content = json!({"permission": "ask", "mcp": {"own": {"type": "remote"}}, "model": "m"});
        let mut env = BTreeMap::from([("OPENCODE_CONFIG_CONTENT".into(), content.to_string().into())]);
        let scratch = tempfile::tempdir().unwrap();
        offer(Program::Opencode, &server(), scratch.path(), &mut env).unwrap();
        let content = env[std::ffi::OsStr::new("OPENCODE_CONFIG_CONTENT")].to_str().unwrap();
        let content: Value = serde_json::from_str(content).unwrap();
        assert_eq!(content["model"], "m");
        assert_eq!(content["mcp"]["own"]["type"], "remote");
        assert_eq!(content["mcp"]["giga"]["command"], json!(["/opt/giga", "mcp", "--job"]));
        let permission = json!({"*": "ask", "giga_checkpoint": "allow", "giga_save_artifact": "allow"});
        assert_eq!(content["permission"], permission);
    }
}
