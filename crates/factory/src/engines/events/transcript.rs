//! What an engine prints, as people read it: what it said, which tool it used on what, what came of it, what it cost.
//!
//! Only for eyes: nothing is decided by it, and what it leaves out is kept elsewhere. An event that it does not know is left
//! out; a line that is no event is shown as it is.

use serde_json::Value;

use super::super::config::EventFormat;
use super::super::programs::Program;
use super::{count, object, text};

/// Of a result, and of an argument.
const RESULT_LINES: usize = 8;
const LINE_CHARS: usize = 300;
const ARGUMENT_CHARS: usize = 120;

/// One run, line by line.
#[derive(Debug)]
pub struct Transcript {
    program: Program,
    /// Words that come in pieces.
    begun: String,
    /// The message whose usage was shown last.
    message: Option<String>,
}

impl Transcript {
    /// `None` where what is printed is text already.
    pub(in super::super) fn of(format: EventFormat) -> Option<Self> {
        match format {
            EventFormat::Text => None,
            EventFormat::Program(program) => Some(Self { program, begun: String::new(), message: None }),
        }
    }

    /// What to show for a line. None: it is no event.
    pub fn line(&mut self, line: &str) -> Option<Vec<String>> {
        let event = object(line)?;
        let mut shown = Vec::new();
        match self.program {
            Program::Claude => self.claude(&event, &mut shown),
            Program::Codex => codex(&event, &mut shown),
            Program::Gemini => self.gemini(&event, &mut shown),
            Program::Opencode => opencode(&event, &mut shown),
        }
        Some(shown)
    }

    /// What was begun and has no end.
    pub fn rest(&mut self) -> Vec<String> {
        let mut shown = Vec::new();
        self.end_words(&mut shown);
        shown
    }

    fn end_words(&mut self, shown: &mut Vec<String>) {
        let words = std::mem::take(&mut self.begun);
        said(&words, shown);
    }

    fn gemini(&mut self, event: &Value, shown: &mut Vec<String>) {
        match text(event, "/type") {
            Some("message") if text(event, "/role") == Some("assistant") => {
                self.begun.push_str(text(event, "/content").unwrap_or_default());
                return;
            }
            Some("message") => return,
            _ => self.end_words(shown),
        }
        match text(event, "/type") {
            Some("init") => began(text(event, "/session_id"), text(event, "/model"), shown),
            Some("tool_use") => {
                tool(text(event, "/tool_name").unwrap_or("tool"), &event["parameters"], shown);
            }
            Some("tool_result") => {
                if text(event, "/status") != Some("success") {
                    shown.push(format!("  failed: {}", one_line(&event["error"])));
                }
                result(text(event, "/output").unwrap_or_default(), shown);
            }
            // Warnings are notes.
            Some("error") if text(event, "/severity") == Some("error") => {
                shown.push(format!("! {}", text(event, "/message").unwrap_or("an error")));
            }
            Some("result") => {
                let stats = &event["stats"];
                let input = count(stats, "/input_tokens");
                usage(
                    input,
                    count(stats, "/cached"),
                    count(stats, "/total_tokens").saturating_sub(input),
                    shown,
                );
                if let Some(message) = text(event, "/error/message") {
                    shown.push(format!("! {message}"));
                }
            }
            _ => {}
        }
    }

    fn claude(&mut self, event: &Value, shown: &mut Vec<String>) {
        let blocks = event.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
        match text(event, "/type") {
            Some("system") if text(event, "/subtype") == Some("init") => {
                began(text(event, "/session_id"), text(event, "/model"), shown);
            }
            Some("assistant") => {
                for block in blocks {
                    match text(block, "/type") {
                        Some("text") => said(text(block, "/text").unwrap_or_default(), shown),
                        Some("thinking") => thought(text(block, "/thinking").unwrap_or_default(), shown),
                        Some("tool_use") => {
                            tool(text(block, "/name").unwrap_or("tool"), &block["input"], shown);
                        }
                        _ => {}
                    }
                }
                let id = text(event, "/message/id").map(str::to_owned);
                if id.is_some() && id != self.message {
                    self.message = id;
                    let of = event.pointer("/message/usage").unwrap_or(&Value::Null);
                    let cached = count(of, "/cache_read_input_tokens");
                    let input =
                        count(of, "/input_tokens") + count(of, "/cache_creation_input_tokens") + cached;
                    usage(input, cached, count(of, "/output_tokens"), shown);
                }
            }
            Some("user") => {
                for block in blocks.filter(|block| text(block, "/type") == Some("tool_result")) {
                    if block.get("is_error").and_then(Value::as_bool).unwrap_or(false) {
                        shown.push("  failed:".to_owned());
                    }
                    result(&words_of(&block["content"]), shown);
                }
            }
            Some("result") => {
                let cost = event.get("total_cost_usd").and_then(Value::as_f64);
                let cost = cost.map(|usd| format!(", ${usd:.4}")).unwrap_or_default();
                let subtype = text(event, "/subtype").unwrap_or("ended");
                shown.push(format!("· {subtype} after {} turns{cost}", count(event, "/num_turns")));
            }
            _ => {}
        }
    }
}

fn codex(event: &Value, shown: &mut Vec<String>) {
    let item = &event["item"];
    let kind = text(item, "/type").or_else(|| text(item, "/item_type")).unwrap_or_default();
    match (text(event, "/type").unwrap_or_default(), kind) {
        ("thread.started", _) => began(text(event, "/thread_id"), None, shown),
        ("item.started", "command_execution") => {
            shown.push(format!("$ {}", cut(&one_line(&item["command"]), LINE_CHARS)));
        }
        ("item.completed", "command_execution") => {
            result(text(item, "/aggregated_output").unwrap_or_default(), shown);
            match item.get("exit_code").and_then(Value::as_i64) {
                Some(0) | None => {}
                Some(code) => shown.push(format!("  exited with code {code}")),
            }
        }
        ("item.completed", "agent_message" | "assistant_message") => {
            said(text(item, "/text").unwrap_or_default(), shown);
        }
        ("item.completed", "reasoning") => thought(text(item, "/text").unwrap_or_default(), shown),
        ("item.completed", "file_change") => {
            for change in item.get("changes").and_then(Value::as_array).into_iter().flatten() {
                let (kind, path) = (text(change, "/kind"), text(change, "/path"));
                shown.push(format!("# {} {}", kind.unwrap_or("change"), path.unwrap_or_default()));
            }
        }
        ("item.completed", "mcp_tool_call") => {
            let name = format!(
                "{}.{}",
                text(item, "/server").unwrap_or_default(),
                text(item, "/tool").unwrap_or_default()
            );
            tool(&name, &item["arguments"], shown);
            result(&words_of(&item["result"]["content"]), shown);
        }
        ("item.completed", "web_search") => {
            shown.push(format!("# search {}", text(item, "/query").unwrap_or_default()));
        }
        ("turn.completed", _) => {
            let of = &event["usage"];
            usage(
                count(of, "/input_tokens"),
                count(of, "/cached_input_tokens"),
                count(of, "/output_tokens"),
                shown,
            );
        }
        ("turn.failed", _) => shown.push(format!("! {}", text(event, "/error/message").unwrap_or("failed"))),
        ("error", _) => shown.push(format!("! {}", text(event, "/message").unwrap_or("an error"))),
        _ => {}
    }
}

fn opencode(event: &Value, shown: &mut Vec<String>) {
    let part = &event["part"];
    match text(event, "/type") {
        Some("text") => said(text(part, "/text").unwrap_or_default(), shown),
        Some("reasoning") => thought(text(part, "/text").unwrap_or_default(), shown),
        Some("tool_use" | "tool") => {
            tool(text(part, "/tool").unwrap_or("tool"), &part["state"]["input"], shown);
            if let Some(error) = text(part, "/state/error") {
                shown.push(format!("  failed: {}", cut(error, LINE_CHARS)));
            }
            result(text(part, "/state/output").unwrap_or_default(), shown);
        }
        Some("step_finish") => {
            let cached = count(part, "/tokens/cache/read");
            let input = count(part, "/tokens/input") + count(part, "/tokens/cache/write") + cached;
            usage(input, cached, count(part, "/tokens/output") + count(part, "/tokens/reasoning"), shown);
        }
        Some("error") => {
            let message = text(event, "/error/data/message").or_else(|| text(event, "/error/message"));
            shown.push(format!("! {}", message.or_else(|| text(event, "/error/name")).unwrap_or("an error")));
        }
        _ => {}
    }
}

fn began(session: Option<&str>, model: Option<&str>, shown: &mut Vec<String>) {
    let model = model.map(|model| format!(", model {model}")).unwrap_or_default();
    shown.push(format!("· session {}{model}", session.unwrap_or("without a name")));
}

fn said(words: &str, shown: &mut Vec<String>) {
    shown.extend(words.trim().lines().map(str::to_owned));
}

fn thought(words: &str, shown: &mut Vec<String>) {
    if let Some(first) = words.lines().map(str::trim).find(|line| !line.is_empty()) {
        shown.push(format!("~ {}", cut(first, LINE_CHARS)));
    }
}

/// `# Write file_path=src/a.rs content=…`
fn tool(name: &str, arguments: &Value, shown: &mut Vec<String>) {
    let mut line = format!("# {name}");
    match arguments {
        Value::Object(fields) => {
            for (key, value) in fields {
                line.extend([" ", key, "=", &cut(&one_line(value), ARGUMENT_CHARS)]);
            }
        }
        Value::Null => {}
        other => line.extend([" ", &cut(&one_line(other), ARGUMENT_CHARS)]),
    }
    shown.push(line);
}

/// Indented, its beginning.
fn result(words: &str, shown: &mut Vec<String>) {
    let lines: Vec<&str> = words.trim_end().lines().collect();
    shown.extend(lines.iter().take(RESULT_LINES).map(|line| format!("  {}", cut(line, LINE_CHARS))));
    if lines.len() > RESULT_LINES {
        shown.push(format!("  … {} more lines", lines.len() - RESULT_LINES));
    }
}

fn usage(input: u64, cached: u64, output: u64, shown: &mut Vec<String>) {
    if input + output > 0 {
        shown.push(format!("· {input} tokens in ({cached} cached), {output} out"));
    }
}

/// Text as it is; of anything else its JSON.
fn one_line(value: &Value) -> String {
    let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Of a text, or of a list of blocks.
fn words_of(content: &Value) -> String {
    match content {
        Value::String(words) => words.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| text(block, "/text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn cut(words: &str, most: usize) -> String {
    match words.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(program: Program, lines: &[&str]) -> Vec<String> {
        let mut transcript = Transcript::of(EventFormat::Program(program)).unwrap();
        let mut all: Vec<String> = lines
            .iter()
            .flat_map(|line| transcript.line(line).unwrap_or_else(|| vec![(*line).to_owned()]))
            .collect();
        all.extend(transcript.rest());
        all
    }

    #[test]
    fn codex_reads_like_a_terminal() {
        let lines = [
            r#"{"type":"thread.started","thread_id":"t-1"}"#,
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"I look.\nThen I write."}}"#,
            r#"{"type":"item.started","item":{"type":"command_execution","command":"bash -lc ls"}}"#,
            r#"{"type":"item.completed","item":{"type":"command_execution","command":"bash -lc ls","aggregated_output":"a\nb\n","exit_code":2}}"#,
            r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a.rs","kind":"add"}]}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":3000,"cached_input_tokens":1000,"output_tokens":100}}"#,
            "no event",
        ];
        let expected = [
            "· session t-1",
            "I look.",
            "Then I write.",
            "$ bash -lc ls",
            "  a",
            "  b",
            "  exited with code 2",
            "# add a.rs",
            "· 3000 tokens in (1000 cached), 100 out",
            "no event",
        ];
        assert_eq!(shown(Program::Codex, &lines), expected);
    }

    #[test]
    fn words_that_come_in_pieces_are_put_together() {
        let lines = [
            r#"{"type":"message","role":"assistant","content":"The gree","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"ting","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"write_file","parameters":{"file_path":"a","content":"x\ny"}}"#,
            r#"{"type":"tool_result","status":"error","error":{"message":"no"}}"#,
            r#"{"type":"message","role":"assistant","content":"Done.","delta":true}"#,
        ];
        let expected = [
            "The greeting",
            "# write_file file_path=a content=x y",
            r#"  failed: {"message":"no"}"#,
            "Done.",
        ];
        assert_eq!(shown(Program::Gemini, &lines), expected);
    }

    #[test]
    fn claude_and_opencode_say_tool_result_and_usage() {
        let lines = [
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","name":"Read","input":{"file_path":"a"}}],"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}"#,
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":5}}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"1\n2\n3\n4\n5\n6\n7\n8\n9"}]}]}}"#,
        ];
        let all = shown(Program::Claude, &lines);
        assert_eq!(all[..4], ["~ hm", "# Read file_path=a", "· 12 tokens in (7 cached), 1 out", "ok"]);
        assert_eq!(all.last().map(String::as_str), Some("  … 1 more lines"));
        let lines = [
            r#"{"type":"tool_use","part":{"tool":"bash","state":{"input":{"command":"ls"},"output":"a"}}}"#,
            r#"{"type":"step_finish","part":{"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}"#,
        ];
        let expected = ["# bash command=ls", "  a", "· 10 tokens in (4 cached), 5 out"];
        assert_eq!(shown(Program::Opencode, &lines), expected);
    }
}
