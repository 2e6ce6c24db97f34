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

/// Before the program's own arguments, and in its environment.
pub(super) fn offer(
    program: Program,
    server: &ToolServer,
    scratch: &Path,
    env: &mut BTreeMap<OsString, OsString>,
) -> io::Result<Vec<OsString>> {
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
            Ok(vec![joined("--mcp-config=", &file), format!("--allowedTools={tools}").into()])
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
            Ok(settings.into_iter().flat_map(option).collect())
        }
        Program::Gemini => {
            let file = scratch.join("gemini.json");
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
            write_private(&file, &json!({"mcpServers": {server.name: entry}}).to_string())?;
            env.insert("GEMINI_CLI_SYSTEM_SETTINGS_PATH".into(), file.into());
            Ok(Vec::new())
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
            Ok(Vec::new())
        }
    }
}

fn joined(before: &str, value: &OsString) -> OsString {
    let mut whole = OsString::from(before);
    whole.push(value);
    whole
}

/// What is there already stays, but for what both say.
fn merge(into: &mut Value, from: Value) {
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
