//! `command`: a program of the operator's starts and stops factories, wherever they are.
//!
//! It is run with one more word, `start`, `stop` or `alive`; the order is in its environment, and whole as JSON on its standard
//! input. The contract is in docs/pool-drivers.md. Nothing of an order ever passes through a shell.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{DriverKind, FactoryId, PoolName, PoolSettings};
use giga_ports::pool_driver::CREDENTIAL_VARIABLE;
use giga_ports::{DriverError, PoolDriver, StartOrder, StopOrder};
use serde_json::json;
use tokio::process::Command;

use crate::run::{Finished, run};

/// `EX_TEMPFAIL` of sysexits.h.
const TRY_LATER: i32 = 75;
const HANDLE_BYTES: usize = 1_000;
const REASON_CHARS: usize = 500;

#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// A program that takes longer is killed, with all that it started.
    pub limit: Duration,
}

impl Default for CommandOptions {
    fn default() -> Self {
        Self { limit: Duration::from_mins(5) }
    }
}

#[derive(Debug)]
pub struct CommandDriver {
    options: CommandOptions,
}

impl CommandDriver {
    pub fn new(options: CommandOptions) -> Self {
        Self { options }
    }

    async fn call(&self, call: Call<'_>) -> Result<String, DriverError> {
        let [program, words @ ..] = call.settings.command.as_slice() else {
            return Err(DriverError::lasting("the pool has no program; set one with --command"));
        };
        let mut command = Command::new(program);
        command.args(words).arg(call.word);
        // What the coordinator's own settings say there, the store's password for one, is no business of the program's.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIGA_"))
        {
            command.env_remove(name);
        }
        command.env("GIGA_POOL", call.pool.as_str()).env("GIGA_FACTORY", call.factory.as_str());
        let mut order = json!({ "call": call.word, "pool": call.pool, "factory": call.factory });
        if let Some(handle) = call.handle {
            command.env("GIGA_HANDLE", handle);
            order["handle"] = json!(handle);
        }
        if let Some(start) = call.start {
            let arguments = start.arguments();
            command.env("GIGA_URL", &start.url).env(CREDENTIAL_VARIABLE, &start.credential);
            command.env("GIGA_FACTORY_ARGS", quoted(&arguments));
            order["url"] = json!(start.url);
            order["token"] = json!(start.credential);
            order["arguments"] = json!(arguments);
        }
        let finished = run(command, order.to_string().into_bytes(), self.options.limit).await;
        let credential = call.start.map(|start| start.credential.as_str());
        judge(program, call.word, finished, credential)
    }
}

struct Call<'a> {
    word: &'static str,
    pool: &'a PoolName,
    factory: &'a FactoryId,
    settings: &'a PoolSettings,
    handle: Option<&'a str>,
    start: Option<&'a StartOrder>,
}

impl<'a> Call<'a> {
    fn about(word: &'static str, order: &'a StopOrder) -> Self {
        let StopOrder { pool, settings, factory, handle } = order;
        Self { word, pool, factory, settings, handle: handle.as_deref(), start: None }
    }
}

/// The first line of its output, or what went wrong in its own words.
fn judge(
    program: &str,
    word: &str,
    finished: io::Result<Finished>,
    credential: Option<&str>,
) -> Result<String, DriverError> {
    let finished = finished.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => DriverError::lasting(format!("the program `{program}` is not there")),
        io::ErrorKind::PermissionDenied => {
            DriverError::lasting(format!("the program `{program}` may not be run: {error}"))
        }
        io::ErrorKind::TimedOut => {
            DriverError::transient(format!("`{program} {word}` came to no end and was killed: {error}"))
        }
        _ => DriverError::transient(format!("`{program} {word}` could not be run: {error}")),
    })?;
    let clean = |text: &str| {
        let text = credential.map_or_else(|| text.to_owned(), |secret| text.replace(secret, "***"));
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
    };
    if finished.status.success() {
        let line = finished.stdout.lines().next().unwrap_or_default().trim();
        if line.len() > HANDLE_BYTES {
            let reason = format!("`{program} {word}` printed a first line of more than {HANDLE_BYTES} bytes");
            return Err(DriverError::lasting(reason));
        }
        return Ok(clean(line));
    }
    let said = finished.stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let how = match finished.status.code() {
        Some(code) => format!("`{program} {word}` failed with code {code}"),
        None => format!("`{program} {word}` was killed"),
    };
    let said = said.map(|said| clean(said).chars().take(REASON_CHARS).collect::<String>());
    let reason = said.map_or_else(|| how.clone(), |said| format!("{how}: {said}"));
    Err(DriverError { reason, transient: finished.status.code() == Some(TRY_LATER) })
}

/// Words as a shell reads them back, each as it was.
fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[async_trait]
impl PoolDriver for CommandDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Command
    }

    async fn start(&self, order: &StartOrder) -> Result<String, DriverError> {
        let StartOrder { pool, settings, factory, .. } = order;
        let call = Call { word: "start", pool, factory, settings, handle: None, start: Some(order) };
        let handle = self.call(call).await?;
        if handle.is_empty() {
            let program = settings.command.first().map(String::as_str).unwrap_or_default();
            let reason =
                format!("`{program} start` printed nothing; its first line is what the factory is known by");
            return Err(DriverError::lasting(reason));
        }
        Ok(handle)
    }

    async fn stop(&self, order: &StopOrder) -> Result<(), DriverError> {
        self.call(Call::about("stop", order)).await.map(|_| ())
    }

    async fn is_alive(&self, order: &StopOrder) -> Result<Option<bool>, DriverError> {
        match self.call(Call::about("alive", order)).await?.as_str() {
            "yes" => Ok(Some(true)),
            "no" => Ok(Some(false)),
            "" | "unknown" => Ok(None),
            other => {
                let program = order.settings.command.first().map(String::as_str).unwrap_or_default();
                let reason = format!("`{program} alive` printed `{other}`; it may print yes, no or unknown");
                Err(DriverError::lasting(reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_a_shell_as_they_were() {
        let words = ["--pool", "gpu", "", "a b", "it's", "$(reboot)", "`x`", "\"q\"", "ü", "a\nb"];
        let words = words.map(str::to_owned);
        let script = format!("for word in {}; do printf '%s\\0' \"$word\"; done", quoted(&words));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let mut back: Vec<String> =
            String::from_utf8(output.stdout).unwrap().split('\0').map(str::to_owned).collect();
        assert_eq!(back.pop().as_deref(), Some(""), "the end of the last one");
        assert_eq!(back, words);
    }
}
