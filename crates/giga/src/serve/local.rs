//! The factories of `giga up`: processes of their own, so that one can crash alone, that end with this one.
//!
//! Each holds the reading end of a pipe whose writing end is here: however this process ends, the pipe does, and the
//! factory saves its work and leaves. They stand in process groups of their own, so that Ctrl-C reaches them through
//! here, in the right order: factories first, then the coordinator that they hand their jobs back to.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use giga_coordinator::{Coordinator, Error};
use giga_domain::factory::FactoryScope;
use giga_domain::token::TokenSecret;
use giga_domain::{Actor, FactoryId};
use giga_drivers::Setting;
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

/// Where a factory keeps its token, in its own folder.
const TOKEN: &str = "factory.token";

/// What is started, known before the coordinator has an address.
pub(super) struct Plan {
    program: PathBuf,
    names: Vec<String>,
    handed_on: Vec<OsString>,
    /// What there is to say about the repositories that they will offer.
    repos: Vec<String>,
}

/// What factories that this process starts are told of its own settings.
pub(super) fn handed_on(settings: &Settings) -> Vec<Setting> {
    let mut handed_on = Vec::new();
    for key in HANDED_ON {
        let flag = key.flag();
        let value = match settings.get(key) {
            Some(setting) if key.is_switch() => {
                if setting.value != key.flag_means() {
                    continue;
                }
                None
            }
            Some(_) if matches!(key, Key::SandboxRead | Key::SandboxWrite) => {
                // Whole paths: they mean something else in another folder.
                let paths = settings.sandbox_paths(key).value;
                let list: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                Some(list.join(",").into())
            }
            Some(setting) => Some(setting.value.into()),
            None => continue,
        };
        handed_on.push(Setting { flag, value });
    }
    let log = [(Key::Log, settings.log("warn")), (Key::LogFormat, settings.log_format())];
    let log = log.map(|(key, setting)| Setting { flag: key.flag(), value: Some(setting.value.into()) });
    handed_on.extend(log);
    handed_on
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
        let handed_on = handed_on(settings);
        let handed_on = handed_on.into_iter().flat_map(|setting| {
            std::iter::once(OsString::from(setting.flag)).chain(setting.value).collect::<Vec<_>>()
        });
        let handed_on = handed_on.collect();
        let names = (1..=count).map(|number| format!("local-{number}")).collect();
        Ok(Self { program, names, handed_on, repos })
    }

    pub(super) fn repos(&self) -> &[String] {
        &self.repos
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Gives each factory a token of its own, unless it has one that works: what it runs must never be near an admin's.
    pub(super) async fn enroll(&self, coordinator: &Coordinator, data: &Path) -> Result<(), CliError> {
        for name in &self.names {
            let path = base(data, name).join(TOKEN);
            if is_live(coordinator, &path).await? {
                continue;
            }
            let id: FactoryId = name.parse().map_err(|error| CliError::failed(format!("{name}: {error}")))?;
            let actor = Actor::system("up");
            let known =
                coordinator.reads().factory(&id).await.map_err(|error| refused(name, &error.into()))?;
            let token = match known {
                Some(_) => coordinator.rotate_factory_token(id, actor).await,
                None => coordinator.enroll(id, FactoryScope::default(), actor).await.map(|(_, token)| token),
            };
            let token = token.map_err(|error| refused(name, &error))?;
            write_private(&path, token.reveal())
                .map_err(|error| CliError::failed(format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(())
    }

    fn command(&self, name: &str, data: &Path, url: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["factory", "run", "--until-stdin-ends", "--take-over", "--id", name, "--url", url]);
        command.arg("--base").arg(base(data, name));
        command.arg("--data").arg(data);
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

fn base(data: &Path, name: &str) -> PathBuf {
    data.join("factory").join(name)
}

fn refused(name: &str, error: &Error) -> CliError {
    CliError::failed(format!("cannot enroll {name}: {error}"))
}

async fn is_live(coordinator: &Coordinator, path: &Path) -> Result<bool, CliError> {
    let kept = std::fs::read_to_string(path).ok().and_then(|text| TokenSecret::parse(text.trim()).ok());
    let Some(secret) = kept else { return Ok(false) };
    let known = coordinator.authenticate(&secret).await;
    let known =
        known.map_err(|error| CliError::failed(format!("cannot check a factory's token: {error}")))?;
    Ok(known.is_some())
}

/// Whole or not at all, and never readable by others.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
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
