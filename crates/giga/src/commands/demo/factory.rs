//! A factory of the demo: `giga factory run` as a process of its own, so that it can die like a machine.
//!
//! It hears nothing of the user's settings, and it ends when its stdin does: not even a killed demo leaves one behind.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::stage::PLAYING;
use crate::exit::CliError;

const START: Duration = Duration::from_secs(30);
const LEAVE: Duration = Duration::from_secs(15);

pub(super) struct FactoryProcess {
    pub(super) name: String,
    process: Child,
    log: std::path::PathBuf,
}

impl FactoryProcess {
    pub(super) fn spawn(folder: &Path, url: &str, token: &str, name: &str) -> Result<Self, CliError> {
        let log = folder.join(format!("{name}.log"));
        let base = folder.join(name);
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["factory", "run", "--until-stdin-ends", "--seats", "2", "--checkpoint-every", "500ms"])
            .args(["--url", url, "--id", name, "--log", "info"])
            .arg("--base")
            .arg(base)
            .arg("--repos")
            .arg(folder.join("repos"))
            .arg("--data")
            .arg(folder.join("coordinator"))
            .arg("--sandbox-read")
            .arg(folder.join(PLAYING))
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // Ctrl-C is for the demo, which then tells its factories.
            .process_group(0)
            .kill_on_drop(true);
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"GIGA_") {
                command.env_remove(variable);
            }
        }
        command.env("GIGA_TOKEN", token);
        Ok(Self { name: name.to_owned(), process: command.spawn()?, log })
    }

    pub(super) async fn until_ready(&mut self) -> Result<(), CliError> {
        let mut line = String::new();
        if let Some(stdout) = self.process.stdout.as_mut() {
            let mut stdout = BufReader::new(stdout);
            let _ = tokio::time::timeout(START, stdout.read_line(&mut line)).await;
        }
        if line.starts_with("ready") {
            return Ok(());
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        Err(CliError::failed(format!("{} did not start: {}", self.name, log.trim())))
    }

    pub(super) async fn kill(mut self) -> Result<(), CliError> {
        Ok(self.process.kill().await?)
    }

    /// Asks it to leave, and sees to it that it does.
    pub(super) async fn leave(&mut self) {
        drop(self.process.stdin.take());
        if tokio::time::timeout(LEAVE, self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
    }
}
