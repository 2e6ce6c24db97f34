//! `giga doctor`: what this machine has, what is missing, and what to do about it.
//!
//! Only looks: nothing is enrolled, signed in, written or spent. Where a place for artifacts is set, something small is
//! written there and deleted again, because nothing else tells whether a bucket can be used.

use std::path::Path;
use std::time::Duration;

use comfy_table::{Cell, Color};
use giga_factory::engines::{self, Detected, Preflight, Program};
use giga_factory::sandbox::{Sandbox, SandboxMode};
use giga_factory::workspace::{GitPolicy, Survey, survey};
use serde_json::json;

use super::Done;
use super::context::Context;
use crate::config::{Key, Settings, mask_url};
use crate::exit::{self, CliError};
use crate::output::{Columns, printable};

/// How long an engine may take to say whether it is ready.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a server may take to take a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// Less than this is not enough for a few repositories.
const LITTLE_SPACE: u64 = 2 * 1024 * 1024 * 1024;
/// The first git that knows everything that the workspace asks of it.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// One thing that was looked at.
struct Finding {
    kind: &'static str,
    name: String,
    state: State,
    detail: String,
    remedy: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// Good to have; jobs can run without it.
    Missing,
    /// No job can run here until it is put right.
    Broken,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }

    fn cell(self) -> Cell {
        let colour = match self {
            Self::Ready => Color::Green,
            Self::Missing => Color::Yellow,
            Self::Broken => Color::Red,
        };
        Cell::new(self.as_str()).fg(colour)
    }
}

pub(crate) async fn doctor(context: &Context) -> Done {
    let (sandbox, isolation) = sandbox(context).await;
    let mut findings = vec![git().await, isolation];
    findings.extend(engine_findings(context, &sandbox).await);
    findings.push(coordinator(context).await);
    findings.push(data_folder(context));
    findings.extend(repos(context).await);
    findings.extend(artifacts(context).await);
    let usable = findings.iter().all(|finding| finding.state != State::Broken);
    let list: Vec<_> = findings
        .iter()
        .map(|f| json!({"kind": f.kind, "name": f.name, "state": f.state.as_str(), "detail": f.detail, "remedy": f.remedy}))
        .collect();
    context.output.list(
        &json!({"usable": usable, "findings": list}),
        ("/findings", "/name"),
        "nothing was checked",
        || table(&findings),
    )?;
    if usable { Ok(()) } else { Err(CliError::Ended(exit::FAILED)) }
}

fn table(findings: &[Finding]) -> String {
    let mut table = Columns::new(&["WHAT", "NAME", "STATE", "DETAIL~", "FIX~"]);
    for finding in findings {
        table.row([
            Cell::new(finding.kind),
            Cell::new(printable(&finding.name)),
            finding.state.cell(),
            Cell::new(printable(&finding.detail)),
            Cell::new(printable(finding.remedy.as_deref().unwrap_or("-"))),
        ]);
    }
    table.render()
}

/// Nothing where artifacts go to the data folder, which is looked at anyway.
async fn artifacts(context: &Context) -> Option<Finding> {
    let place = context.settings.get(Key::Artifacts)?.value;
    let (state, detail, remedy) = match giga_blobs::open(&place, &Settings::cloud_variables()) {
        Err(error) => (State::Broken, error.to_string(), Some(error.remedy.to_owned())),
        Ok(places) => match places.check().await {
            Ok(()) => (State::Ready, "writable".to_owned(), None),
            Err(error) => {
                let remedy = "check that it exists and that these credentials may write to it";
                (State::Broken, error.to_string(), Some(remedy.to_owned()))
            }
        },
    };
    Some(Finding { kind: "artifacts", name: mask_url(&place), state, detail, remedy })
}

async fn git() -> Finding {
    let mut command = tokio::process::Command::new("git");
    command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let text = match output {
        Ok(Ok(output)) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    };
    let version = text.strip_prefix("git version ").unwrap_or_default();
    let (state, detail, remedy) = match major_minor(version) {
        Some(found) if found >= OLDEST_GIT => (State::Ready, version.to_owned(), None),
        Some(_) => {
            let wanted = format!("install git {}.{} or newer", OLDEST_GIT.0, OLDEST_GIT.1);
            (State::Broken, format!("{version} is too old"), Some(wanted))
        }
        None => (State::Broken, "not found".to_owned(), Some("install git".to_owned())),
    };
    Finding { kind: "tool", name: "git".to_owned(), state, detail, remedy }
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// How isolated a job is on this machine, in a line.
async fn sandbox(context: &Context) -> (Sandbox, Finding) {
    let name = context.settings.sandbox_mode().map_or_else(|_| "-".to_owned(), |mode| mode.value.to_string());
    let finding = |state, detail, remedy: Option<&str>| {
        let remedy = remedy.map(str::to_owned);
        Finding { kind: "sandbox", name: name.clone(), state, detail, remedy }
    };
    let config = match crate::factory::sandbox_config(&context.settings) {
        Ok(config) => config,
        Err(error) => {
            return (Sandbox::off(), finding(State::Broken, error.to_string(), Some("fix the setting")));
        }
    };
    let is_off = config.mode == SandboxMode::Off;
    let install = "install bubblewrap (apt-get install bubblewrap); `giga sandbox try` shows what a job sees";
    match Sandbox::start(config).await {
        Err(error) => (Sandbox::off(), finding(State::Broken, error.to_string(), Some(install))),
        Ok(sandbox) => {
            let found = match sandbox.missing() {
                None => finding(State::Ready, sandbox.describe(), None),
                Some(_) if is_off => {
                    finding(State::Missing, sandbox.describe(), Some("set `sandbox` to auto or require"))
                }
                Some(_) => finding(State::Missing, sandbox.describe(), Some(install)),
            };
            (sandbox, found)
        }
    }
}

async fn engine_findings(context: &Context, sandbox: &Sandbox) -> Vec<Finding> {
    let config = context.settings.engines().value;
    let mut all = engines::engines(&config, sandbox);
    let commands = context.settings.commands().is_ok_and(|commands| commands.value);
    all.retain(|engine| commands || engine.name() != "shell");
    let found = engines::detect(&all, PATIENCE).await;
    let reached = futures::future::join_all(all.iter().zip(&found).map(|(engine, found)| async move {
        match engine.server() {
            Some((host, port)) if found.preflight.is_ready() => Some(reach(&host, port).await),
            _ => None,
        }
    }));
    let reached = reached.await;
    found.into_iter().zip(reached).map(|(found, reached)| engine(found, reached.as_deref())).collect()
}

/// Whether its server takes a connection, in words. Nothing is asked of it: that could cost something.
async fn reach(host: &str, port: u16) -> String {
    if ["HTTPS_PROXY", "https_proxy"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|url| !url.is_empty()))
    {
        return format!("{host} is reached through a proxy");
    }
    match tokio::time::timeout(CONNECT, tokio::net::TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => format!("{host} reachable"),
        Ok(Err(error)) => format!("{host} not reachable: {error}"),
        Err(_) => format!("{host} not reachable within {CONNECT:?}"),
    }
}

/// `2.1.326, proven`: whether the engine was run with that version.
fn version_words(name: &str, version: Option<String>) -> String {
    let Some(version) = version else { return "needs no account".to_owned() };
    match name.parse::<Program>() {
        Ok(program) if program.proven().contains(&version.as_str()) => format!("{version}, proven"),
        Ok(program) => format!("{version}, not proven (proven: {})", program.proven().join(", ")),
        Err(_) => version,
    }
}

/// The shell is what scripts and verify commands run in: it must be there, unless commands are switched off.
fn engine(found: Detected, reached: Option<&str>) -> Finding {
    let without = if found.name == "shell" { State::Broken } else { State::Missing };
    let (state, detail, remedy) = match found.preflight {
        Preflight::Ready { version } => {
            let signed_in = if version.is_some() { "; signed in" } else { "" };
            let reached = reached.map(|words| format!("; {words}")).unwrap_or_default();
            (State::Ready, format!("{}{signed_in}{reached}", version_words(&found.name, version)), None)
        }
        Preflight::NotInstalled { remedy } => (without, "not installed".to_owned(), Some(remedy)),
        Preflight::NotSignedIn { remedy } => (without, "not signed in".to_owned(), Some(remedy)),
        Preflight::Broken { detail, remedy } => (without, detail, Some(remedy)),
    };
    Finding { kind: "engine", name: found.name, state, detail, remedy }
}

async fn coordinator(context: &Context) -> Finding {
    let url = context.settings.url();
    let asked = async {
        let metrics = context.client()?.metrics().await?;
        Ok::<_, CliError>(match metrics.factories.live {
            0 => "running, no factory is online".to_owned(),
            1 => "running, 1 factory is online".to_owned(),
            live => format!("running, {live} factories are online"),
        })
    };
    let (state, detail, remedy) = match asked.await {
        Ok(detail) => (State::Ready, detail, None),
        // A machine may be looked at before anything runs, so that this is no reason to fail.
        Err(error) => {
            let remedy = match &error {
                CliError::Client(giga_api::client::ClientError::Unreachable { .. }) => {
                    "start one with `giga up`, or set its address with --url"
                }
                _ => "`giga config show` lists the address and token in use, and where they come from",
            };
            (State::Missing, error.to_string(), Some(remedy.to_owned()))
        }
    };
    Finding { kind: "coordinator", name: url.value, state, detail, remedy }
}

fn data_folder(context: &Context) -> Finding {
    let path = context.settings.data().value;
    // The folder is made at the first start: until then, the disk is the one of what is above it.
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let (state, detail, remedy) = match free_bytes(there) {
        Err(error) => {
            let remedy = "choose another with --data DIR".to_owned();
            (State::Broken, format!("cannot be used: {error}"), Some(remedy))
        }
        Ok(free) if free < LITTLE_SPACE => {
            let remedy = "free some space; `giga gc` removes what finished jobs left".to_owned();
            (State::Missing, format!("only {} free", size(free)), Some(remedy))
        }
        Ok(free) => {
            let made = if path.exists() { "" } else { "not created yet; " };
            (State::Ready, format!("{made}{} free", size(free)), None)
        }
    };
    Finding { kind: "data", name: path.display().to_string(), state, detail, remedy }
}

fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match bytes / MIB {
        mib @ 0..1024 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib / 1024),
    }
}

async fn repos(context: &Context) -> Vec<Finding> {
    let mut findings = vec![repos_folder(context)];
    if let Some(set) = context.settings.repos().filter(|set| set.value.is_dir()) {
        let allowed = context.settings.update_checkouts();
        let policy = GitPolicy {
            repos: Some(set.value),
            update_checkouts: allowed.is_ok_and(|allowed| allowed.value),
            ..GitPolicy::default()
        };
        // Without git there is nothing to look with, and that is said already.
        findings.extend(survey(&policy).await.map(of_repositories).unwrap_or_default());
    }
    findings
}

/// Where results of each will go, and which cannot be offered.
fn of_repositories(survey: Survey) -> Vec<Finding> {
    let finding = |name, state, detail, remedy| Finding { kind: "repo", name, state, detail, remedy };
    let found = survey.found.into_iter().map(|repo| {
        let detail = format!("results go to {}", repo.merges_into);
        finding(repo.name, State::Ready, detail, None)
    });
    let skipped = survey.skipped.into_iter().map(|skipped| {
        let remedy = skipped.remedy.map(str::to_owned);
        finding(skipped.name, State::Missing, format!("skipped: {}", skipped.why), remedy)
    });
    found.chain(skipped).collect()
}

fn repos_folder(context: &Context) -> Finding {
    let (name, state, detail, remedy) = match context.settings.repos() {
        None => {
            let remedy = "offer the repositories of a folder with --repos DIR, or `repos` in giga.toml";
            ("-".to_owned(), State::Missing, "no folder is set".to_owned(), Some(remedy.to_owned()))
        }
        Some(set) => {
            let name = set.value.display().to_string();
            if set.value.is_dir() {
                (name, State::Ready, format!("from {}", set.origin), None)
            } else {
                (name, State::Broken, "not a folder".to_owned(), Some(format!("fix {}", set.origin)))
            }
        }
    };
    Finding { kind: "repos", name, state, detail, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(major_minor("2.39.5"), Some((2, 39)));
        assert_eq!(major_minor("2.50.1 (Apple Git-155)"), Some((2, 50)));
        assert!(major_minor("2.9.0") < Some(OLDEST_GIT));
        assert_eq!(major_minor(""), None);
    }

    #[test]
    fn only_the_shell_is_needed() {
        let found = |name: &str| {
            let preflight = Preflight::NotInstalled { remedy: "install it".to_owned() };
            engine(Detected { name: name.to_owned(), preflight }, None).state == State::Broken
        };
        assert!(found("shell"));
        assert!(!found("claude"));
    }
}
