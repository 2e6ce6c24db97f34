//! `giga sandbox try`: what a job would see here, for people to look at.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use giga_factory::sandbox::{NetworkMode, Sandbox};

use super::Done;
use super::context::Context;
use crate::args::{SandboxCommand, TryArgs};
use crate::config::Key;
use crate::exit::CliError;
use crate::output::say;

/// As a shell says it of a command that a signal ended.
const BY_SIGNAL: i32 = 128;

pub(crate) async fn run(command: SandboxCommand, context: &Context) -> Done {
    let SandboxCommand::Try(args) = command;
    try_out(args, context).await
}

async fn try_out(args: TryArgs, context: &Context) -> Done {
    let config = crate::factory::sandbox_config(&context.settings)?;
    let sandbox = Sandbox::start(config).await.map_err(|error| CliError::failed(error.to_string()))?;
    let failed = |error: std::io::Error| CliError::failed(format!("cannot start the sandbox: {error}"));
    let folder = tempfile::Builder::new().prefix("giga-try-").tempdir().map_err(failed)?;
    let (tree, home) = (folder.path().join("tree"), folder.path().join("home"));
    std::fs::create_dir(&tree).map_err(failed)?;
    for line in seen(context, &sandbox, &tree, &home)? {
        say(&line);
    }
    let (program, words) = match args.command.split_first() {
        Some((program, words)) => (program.clone(), words.to_vec()),
        None => (OsString::from("sh"), vec!["-i".into()]),
    };
    let trial = sandbox.try_out(Path::new(&program), &words, tree, home).map_err(failed)?;
    let status = tokio::task::spawn_blocking(move || trial.run()).await;
    let status = status.map_err(|error| failed(error.into()))?.map_err(failed)?;
    let code = status.code().or_else(|| status.signal().map(|signal| BY_SIGNAL + signal)).unwrap_or(1);
    match u8::try_from(code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(CliError::Ended(code)),
        Err(_) => Err(CliError::Ended(crate::exit::FAILED)),
    }
}

fn network(context: &Context) -> Result<String, CliError> {
    Ok(match context.settings.network_mode()?.value {
        NetworkMode::Open => "open: all that this machine reaches".to_owned(),
        NetworkMode::None => "none, but for the coordinator and the hosts of the job's engine".to_owned(),
        NetworkMode::List => {
            let hosts = context.settings.network_hosts()?.value;
            let list = hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("the coordinator, the hosts of the job's engine, and {list}")
        }
    })
}

fn seen(context: &Context, sandbox: &Sandbox, tree: &Path, home: &Path) -> Result<Vec<String>, CliError> {
    let granted = |key: Key| {
        let paths = context.settings.sandbox_paths(key).value;
        let list = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        Some(list).filter(|list| !list.is_empty())
    };
    let mut lines = vec![format!("  sandbox  {}", sandbox.describe())];
    lines.push(format!("  tree     {} (empty; jobs have their repository there)", tree.display()));
    if sandbox.missing().is_none() {
        lines.push(format!("  home     {} (empty; engines find a copy of their account)", home.display()));
        lines.push("  reads    programs and libraries of the system".to_owned());
    }
    lines.push(format!("  network  {}", network(context)?));
    lines.extend(granted(Key::SandboxRead).map(|list| format!("  reads    {list}")));
    lines.extend(granted(Key::SandboxWrite).map(|list| format!("  changes  {list}")));
    Ok(lines)
}
