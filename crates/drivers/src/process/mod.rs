//! `process`: factories as processes on the coordinator's own host.
//!
//! They outlive the coordinator: a group of their own, no pipes to it, no signals of its terminal. A coordinator that comes
//! back finds them by their folder. Nothing is ever signalled by its number alone.

mod folder;
mod seen;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::DriverKind;
use giga_ports::{DriverError, PoolDriver, StartOrder, StopOrder};
use rustix::process::Signal;
use tokio::process::Command;
use tokio::time::Instant;

use self::folder::{MemberFolder, cannot_use};
use self::seen::Seen;

/// Of processes that are not ours to wait for, the kernel tells nobody.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After this signal nothing runs on, but the kernel may need a moment.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// The `giga` program.
    pub program: PathBuf,
    /// Members have a folder each below it.
    pub folder: PathBuf,
    /// What this host is called: a process elsewhere cannot be reached from here.
    pub host: String,
    /// What the coordinator hands on of its own settings. A pool that says something else about one has its way.
    pub settings: Vec<Setting>,
    /// How long one that is told to stop may take for it.
    pub grace: Duration,
}

/// A flag of `giga factory run`, with its value where it takes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub flag: &'static str,
    pub value: Option<OsString>,
}

#[derive(Debug)]
pub struct ProcessDriver {
    options: ProcessOptions,
}

impl ProcessDriver {
    pub fn new(mut options: ProcessOptions) -> Self {
        // As members see it on their command lines, by which they are found again.
        if let Ok(folder) = absolute(&options.folder) {
            options.folder = folder;
        }
        Self { options }
    }

    fn folder(&self, of: &StopOrder) -> MemberFolder {
        MemberFolder::new(&self.options.folder, &of.pool, &of.factory)
    }

    fn handle(&self, seen: Seen) -> String {
        format!("{}:{}:{}", self.options.host, seen.id, seen.began)
    }

    /// Whose host it is on, and as which process.
    fn read(handle: &str) -> Option<(&str, Seen)> {
        let (rest, began) = handle.rsplit_once(':')?;
        let (host, id) = rest.rsplit_once(':')?;
        Some((host, Seen { id: id.parse().ok()?, began: began.parse().ok()? }))
    }

    fn is_elsewhere(&self, handle: Option<&str>) -> bool {
        handle.and_then(Self::read).is_some_and(|(host, _)| host != self.options.host)
    }

    fn command(&self, order: &StartOrder, folder: &MemberFolder) -> Command {
        let mut command = Command::new(&self.options.program);
        command.args(["factory", "run"]);
        let arguments = order.arguments();
        for setting in &self.options.settings {
            let is_overruled = arguments.iter().any(|word| {
                word.strip_prefix(setting.flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            });
            if !is_overruled {
                command.arg(setting.flag).args(&setting.value);
            }
        }
        command.arg("--base").arg(folder.base()).arg("--token-file").arg(folder.credential());
        command.args(arguments);
        // What the coordinator's own settings say there, the store's password for one, is no business of a factory's.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIGA_"))
        {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    fn spawn(&self, order: &StartOrder, folder: &MemberFolder) -> Result<Seen, DriverError> {
        let cannot = cannot_use(folder.path());
        MemberFolder::write(&folder.credential(), &format!("{}\n", order.credential)).map_err(&cannot)?;
        let log = folder.fresh_log().map_err(&cannot)?;
        let mut command = self.command(order, folder);
        command.stderr(log.try_clone().map_err(&cannot)?).stdout(log);
        let mut child = command.spawn().map_err(|error| not_started(&self.options.program, &error))?;
        // It is there until it has been waited for, which nobody has.
        let id = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let seen = Seen::now(id);
        tokio::spawn(async move {
            // Nobody else can take note that it has ended.
            let _ = child.wait().await;
        });
        let ended =
            || DriverError::lasting(format!("the factory ended at once; see {}", folder.path().display()));
        let seen = seen.ok_or_else(ended)?;
        folder.note(seen).map_err(&cannot)?;
        Ok(seen)
    }
}

fn not_started(program: &Path, error: &io::Error) -> DriverError {
    let name = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => DriverError::lasting(format!("the program `{name}` is not there")),
        io::ErrorKind::PermissionDenied => {
            DriverError::lasting(format!("the program `{name}` may not be run: {error}"))
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            DriverError::transient(format!("this host cannot run another process now: {error}"))
        }
        _ => DriverError::transient(format!("the program `{name}` could not be started: {error}")),
    }
}

/// Who runs in a member's folder.
fn running(folder: &MemberFolder, handle: Option<&str>) -> Option<Seen> {
    let base = folder.base();
    let by_handle = handle.and_then(ProcessDriver::read).map(|(_, seen)| seen);
    let known = [by_handle, folder.noted()].into_iter().flatten().find(|seen| seen.works_in(&base));
    // Whoever started it may have been ended before it could note that.
    known.or_else(|| seen::working_in(&base))
}

/// Whether it is gone within that time.
async fn is_gone_within(time: Duration, all: &[Seen]) -> bool {
    let deadline = Instant::now() + time;
    while all.iter().any(|seen| seen.is_running()) {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    true
}

/// Waits for the lock without holding up the runtime.
async fn locked(folder: &MemberFolder) -> Result<std::fs::File, DriverError> {
    let waiting = folder.clone();
    let lock = tokio::task::spawn_blocking(move || waiting.lock()).await;
    lock.map_err(io::Error::from).flatten().map_err(cannot_use(folder.path()))
}

#[async_trait]
impl PoolDriver for ProcessDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Process
    }

    async fn start(&self, order: &StartOrder) -> Result<String, DriverError> {
        let folder = MemberFolder::new(&self.options.folder, &order.pool, &order.factory);
        folder.make().map_err(cannot_use(folder.path()))?;
        let _lock = locked(&folder).await?;
        let seen = match running(&folder, None) {
            Some(seen) => {
                folder.note(seen).map_err(cannot_use(folder.path()))?;
                seen
            }
            // It was started and has ended: that it is no more, `is_alive` says. It is not started twice.
            None if let Some(noted) = folder.noted() => noted,
            None => self.spawn(order, &folder)?,
        };
        Ok(self.handle(seen))
    }

    async fn stop(&self, order: &StopOrder) -> Result<(), DriverError> {
        let folder = self.folder(order);
        let handle = order.handle.as_deref();
        if self.is_elsewhere(handle) || !folder.exists() {
            return Ok(());
        }
        let lock = locked(&folder).await?;
        if let Some(seen) = running(&folder, handle) {
            seen.signal(Signal::TERM);
            if !is_gone_within(self.options.grace, &[seen]).await {
                tracing::warn!(factory = %order.factory, "a factory did not stop in time; killing it and all that it runs");
                let all = seen.with_all_below();
                for one in &all {
                    one.signal(Signal::KILL);
                }
                if !is_gone_within(KILLED_WITHIN, &all).await {
                    return Err(DriverError::transient(format!("process {} cannot be killed", seen.id)));
                }
            }
        }
        folder.clear();
        drop(lock);
        Ok(())
    }

    async fn is_alive(&self, order: &StopOrder) -> Result<Option<bool>, DriverError> {
        if self.is_elsewhere(order.handle.as_deref()) {
            return Ok(None);
        }
        Ok(Some(running(&self.folder(order), order.handle.as_deref()).is_some()))
    }
}
