//! The protocols. Each says which turn a request asks for and writes a turn in its own words; what they share is here.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod responses;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::script::{Act, Turn};

/// What the dialects make of a request.
pub(crate) struct Request {
    /// How many turns the model has had in this conversation.
    pub(crate) turn: usize,
    pub(crate) model: String,
    pub(crate) streams: bool,
    /// Those that the engine offers. Without any it is a side question: a title, a summary, a check.
    pub(crate) tools: Vec<String>,
    /// Where the engine works, if the request says.
    pub(crate) folder: Option<String>,
}

/// A call of a tool that the engine has.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) input: Value,
}

/// The words of an error as the provider would put them.
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// Tools by what they are for: the names that engines give them, and what they take.
type Taking = fn(&str, &str) -> Value;

const READ: &[(&str, Taking)] = &[
    ("Read", |path, _| json!({ "file_path": path })),
    ("read", |path, _| json!({ "filePath": path })),
    ("read_file", |path, _| json!({ "file_path": path })),
];
const WRITE: &[(&str, Taking)] = &[
    ("Write", |path, content| json!({ "file_path": path, "content": content })),
    ("write", |path, content| json!({ "filePath": path, "content": content })),
    ("write_file", |path, content| json!({ "file_path": path, "content": content })),
    // Codex's own: a script that calls the tools, as text.
    ("exec", |path, content| {
        let lines = content.lines().collect::<Vec<_>>().join("\n+");
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+{lines}\n*** End Patch");
        format!("text(await tools.apply_patch({}))", json!(patch)).into()
    }),
];
const RUN: &[(&str, Taking)] = &[
    ("Bash", |command, _| json!({ "command": command, "description": "Runs a command" })),
    ("bash", |command, _| json!({ "command": command, "description": "Runs a command" })),
    ("run_shell_command", |command, _| json!({ "command": command })),
    ("exec_command", |command, _| json!({ "cmd": command })),
    ("shell_command", |command, _| json!({ "command": command })),
    // Codex's own: a script that calls the tools, as text.
    ("exec", |command, _| format!("text(await tools.exec_command({}))", json!({ "cmd": command })).into()),
    ("shell", |command, _| json!({ "command": ["bash", "-lc", command] })),
];

impl Request {
    pub(crate) fn is_side_question(&self) -> bool {
        self.tools.is_empty()
    }

    pub(crate) fn calls(&self, turn: &Turn) -> Vec<Call> {
        let call = |(place, act)| {
            let (tool, input) = self.tool_for(act);
            Call { id: format!("call_{}_{place}", self.turn), tool, input }
        };
        turn.acts.iter().enumerate().map(call).collect()
    }

    fn tool_for(&self, act: &Act) -> (String, Value) {
        let found = match act {
            Act::Read { path } => self.offered(READ, &self.absolute(path), ""),
            Act::Write { path, content } => self.offered(WRITE, &self.absolute(path), content),
            Act::Run(command) => self.offered(RUN, command, ""),
            Act::Call { tool, input } => Some(self.served(tool, input)),
        };
        // An engine without tools for files has a shell.
        let by_shell = || match act {
            Act::Read { path } => format!("cat '{path}'"),
            Act::Write { path, content } => format!("cat > '{path}' <<'END-OF-FILE'\n{content}END-OF-FILE"),
            Act::Run(command) => command.clone(),
            Act::Call { .. } => String::new(),
        };
        found
            .or_else(|| self.offered(RUN, &by_shell(), ""))
            .unwrap_or_else(|| ("no_such_tool".to_owned(), json!({})))
    }

    fn offered(&self, known: &[(&str, Taking)], first: &str, second: &str) -> Option<(String, Value)> {
        let (tool, taking) = known.iter().find(|(tool, _)| self.tools.iter().any(|has| has == tool))?;
        Some(((*tool).to_owned(), taking(first, second)))
    }

    /// A tool of a server: `mcp__giga__save`, `giga_save` and the like. Codex has them in its scripts.
    fn served(&self, tool: &str, input: &Value) -> (String, Value) {
        let ends = format!("_{tool}");
        let is_it = |has: &&String| {
            has.strip_suffix(tool).is_some_and(|before| before.is_empty() || before.ends_with(['_', '/']))
        };
        match self.tools.iter().find(is_it) {
            Some(has) => (has.clone(), input.clone()),
            None if self.tools.iter().any(|has| has == "exec") => {
                let script = format!(
                    "const name = Object.keys(tools).find(name => name.endsWith({ends:?}));\ntext(JSON.stringify(await tools[name]({input})));"
                );
                ("exec".to_owned(), script.into())
            }
            None => ("no_such_tool".to_owned(), json!({})),
        }
    }

    fn absolute(&self, path: &str) -> String {
        match &self.folder {
            Some(folder) if !path.starts_with('/') => format!("{folder}/{path}"),
            _ => path.to_owned(),
        }
    }
}

/// The folder that an engine's first words name, such as `Working directory: /jobs/app`.
pub(crate) fn folder_in(text: &str) -> Option<String> {
    const MARKS: [&str; 4] =
        ["Primary working directory: ", "Working directory: ", "working directory is ", "<cwd>"];
    let after = MARKS.iter().find_map(|mark| text.split_once(mark).map(|(_, after)| after))?;
    let end = after.find(['\n', '<', '"', '\\']).unwrap_or(after.len());
    let folder = after[..end].trim().trim_end_matches('.');
    folder.starts_with('/').then(|| folder.to_owned())
}

/// A server-sent event with a name.
pub(crate) fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// One without.
pub(crate) fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

pub(crate) fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list_of<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_in_the_words_of_each_engine() {
        for text in [
            "<env>\n  Working directory: /jobs/app\n  Is git: yes",
            " - Primary working directory: /jobs/app\n",
            "<environment_context>\n  <cwd>/jobs/app</cwd>",
        ] {
            assert_eq!(folder_in(text).as_deref(), Some("/jobs/app"), "{text}");
        }
        assert_eq!(folder_in("nothing of the kind"), None);
    }
}
