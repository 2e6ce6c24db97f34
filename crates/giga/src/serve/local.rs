//! The factories of `giga up`: processes of their own, so that one can crash alone, that end with this one.
//!
//! Each holds the reading end of a pipe whose writing end is here: however this process ends, the pipe does, and the
//! factory saves its work and leaves. They stand in process groups of their own, so that Ctrl-C reaches them through
//! here, in the right order: factories first, then the coordinator that they hand their jobs back to.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Key, Settings};
use crate::exit::CliError;
use crate::factory::HANDED_ON;
use crate::output::warn;

/// Longer than a factory takes by its own rule; whoever is still there then is not going to leave.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between the word to leave at once and the end of everything.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Before one that crashed is started again.
const RESTART: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_secs(1))
    .with_max_delay(Duration::from_secs(30))
    .without_max_times();
/// One that ran for so long before it crashed is started again without much ado.
const RAN_WELL: Duration = Duration::from_mins(1);

/// What is started, known before the coordinator has an address.
pub(super) struct Plan {
    program: std::path::PathBuf,
    names: Vec<String>,
    handed_on: Vec<OsString>,
    /// What there is to say about the repositories that they will offer.
    repos: Vec<String>,
}

impl Plan {
    /// Whatever is wrong with the settings is found here, before anything runs.
    pub(super) async fn new(settings: &Settings) -> Result<Self, CliError> {
        let count = settings.factories()?.value;
        let repos = match count {
            0 => Vec::new(),
            _ => crate::factory::repo_lines(&crate::factory::agent_config(settings)?.git).await,
        };
        let program = std::env::current_exe()
            .map_err(|error| CliError::failed(format!("cannot find the giga program: {error}")))?;
        let mut handed_on = Vec::new();
        for key in HANDED_ON {
            match settings.get(key) {
                Some(setting) if key.is_switch() => {
                    handed_on.extend((setting.value == "true").then(|| OsString::from(key.flag())));
                }
                Some(setting) => handed_on.extend([OsString::from(key.flag()), setting.value.into()]),
                None => {}
            }
        }
        let log = [(Key::Log, settings.log("warn")), (Key::LogFormat, settings.log_format())];
        for (key, setting) in log {
            handed_on.extend([OsString::from(key.flag()), setting.value.into()]);
        }
        let names = (1..=count).map(|number| format!("local-{number}")).collect();
        Ok(Self { program, names, handed_on, repos })
    }

    pub(super) fn repos(&self) -> &[String] {
        &self.repos
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    fn command(&self, name: &str, data: &Path, url: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["factory", "run", "--until-stdin-ends", "--take-over", "--id", name, "--url", url]);
        command.arg("--base").arg(data.join("factory").join(name));
        command.arg("--data").arg(data).arg("--token-file").arg(data.join("admin.token"));
        if url.starts_with("http://")
            && !giga_api::client::is_loopback(url)
            && !self.handed_on.contains(&plain_http())
        {
            // An address of this machine, whatever else it is.
            command.arg(plain_http());
        }
        command.args(&self.handed_on).stdin(Stdio::piped()).stdout(Stdio::null());
        command.process_group(0).kill_on_drop(true);
        command
    }
}

fn plain_http() -> OsString {
    OsString::from(Key::AllowPlainHttp.flag())
}

#[derive(Clone)]
pub(super) struct LocalFactories {
    stop: CancellationToken,
    at_once: CancellationToken,
    tasks: TaskTracker,
}

impl LocalFactories {
    pub(super) fn none() -> Self {
        Self { stop: CancellationToken::new(), at_once: CancellationToken::new(), tasks: TaskTracker::new() }
    }

    pub(super) fn start(&self, plan: &Plan, data: &Path, url: &str) {
        for name in &plan.names {
            let (name, command) = (name.clone(), plan.command(name, data, url));
            self.tasks.spawn(keep_running(name, command, self.stop.clone(), self.at_once.clone()));
        }
    }

    /// Ends when all of them have left, or were made to.
    pub(super) async fn leave(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(super) async fn leave_at_once(self) {
        self.at_once.cancel();
        self.leave().await;
    }
}

async fn keep_running(
    name: String,
    mut command: Command,
    stop: CancellationToken,
    at_once: CancellationToken,
) {
    let mut delays = RESTART.build();
    loop {
        let started = Instant::now();
        match command.spawn() {
            Err(error) => warn(&format!("cannot start {name}: {error}")),
            Ok(mut child) => {
                // Taken out, because waiting for a child closes the pipe.
                let pipe = child.stdin.take();
                let status = tokio::select! {
                    status = child.wait() => status,
                    () = stop.cancelled() => {
                        drop(pipe);
                        return see_off(child, &at_once).await;
                    }
                };
                match status {
                    // Somebody asked it to, and not us.
                    Ok(status) if status.success() => {
                        warn(&format!("{name} exited and is not restarted"));
                        return;
                    }
                    Ok(status) => warn(&format!("{name} exited ({status}); restarting it")),
                    Err(error) => warn(&format!("{name} was lost ({error}); restarting it")),
                }
            }
        }
        if started.elapsed() >= RAN_WELL {
            delays = RESTART.build();
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(delays.next().unwrap_or_default()) => {}
        }
    }
}

/// Waits for one that was asked to leave.
async fn see_off(mut child: Child, at_once: &CancellationToken) {
    tokio::select! {
        _ = child.wait() => return,
        () = tokio::time::sleep(PATIENCE) => {}
        () = at_once.cancelled() => {
            terminate(&child);
            let _ = tokio::time::timeout(AT_ONCE, child.wait()).await;
        }
    }
    let _ = child.kill().await;
}

/// A factory that is leaving already takes this for "at once", and ends its engines.
fn terminate(child: &Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
