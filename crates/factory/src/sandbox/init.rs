//! Process 1 inside the sandbox: sets the bounds that the kernel keeps for a process, starts the program, buries whoever
//! lost its parent, and ends when the program does, by which the kernel ends everything else inside.
//!
//! Runs with nothing of the agent's. Whoever takes it over has gained nothing that it had not before.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, wait};

use super::limits::Limits;
use super::network::forward;

/// As a shell says it.
const NOT_FOUND: u8 = 127;
const BY_SIGNAL: i32 = 128;

const NONE: &str = "-";

/// The words before the program: data, processes, open files, file size, and the way out of an empty network.
pub(super) fn arguments(limits: &Limits, proxy: Option<&str>) -> Vec<OsString> {
    let all = [limits.memory_bytes, limits.processes, limits.open_files, limits.file_bytes];
    let bounds =
        all.into_iter().map(|limit| limit.map_or_else(|| NONE.into(), |number| number.to_string().into()));
    bounds.chain([proxy.unwrap_or(NONE).into()]).collect()
}

/// `words` are what [`arguments`] made, the program, and its own.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    match try_run(words.into_iter()) {
        Ok(code) => code,
        Err(error) => {
            // Standard error is the job's log.
            let _ =
                std::io::Write::write_all(&mut std::io::stderr(), format!("sandbox: {error}\n").as_bytes());
            ExitCode::from(NOT_FOUND)
        }
    }
}

fn try_run(mut words: impl Iterator<Item = OsString>) -> std::io::Result<ExitCode> {
    for resource in [Resource::Data, Resource::Nproc, Resource::Nofile, Resource::Fsize] {
        let word = words.next().unwrap_or_default();
        if word != OsStr::new(NONE) {
            let wanted = word.to_str().and_then(|word| word.parse().ok());
            bound(resource, wanted.ok_or_else(|| invalid("a bound is not a number"))?)?;
        }
    }
    // What a job had in memory is not left on a disk.
    bound(Resource::Core, 0)?;
    let proxy = words.next().filter(|word| word != OsStr::new(NONE));
    let way_out = proxy.map(|socket| forward::start(socket.into())).transpose()?;
    let program = words.next().ok_or_else(|| invalid("no program is named"))?;
    let mut command = Command::new(&program);
    command.args(words);
    if let Some(address) = way_out {
        let url = format!("http://{address}");
        command.envs(forward::VARIABLES.map(|name| (name, &url))).env("NODE_USE_ENV_PROXY", "1");
        for name in forward::EXCEPTIONS {
            command.env_remove(name);
        }
    }
    let child = command.spawn().map_err(|error| {
        std::io::Error::new(error.kind(), format!("{}: {error}", program.to_string_lossy()))
    })?;
    let main = Pid::from_raw(child.id().cast_signed());
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if Some(id) == main => {
                let code = status.exit_status().or_else(|| Some(BY_SIGNAL + status.terminating_signal()?));
                return Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)));
            }
            // Somebody who lost its parent, or a signal that came in between.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Never above what is allowed already.
fn bound(resource: Resource, wanted: u64) -> std::io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum;
    let limit = Some(most.map_or(wanted, |most| most.min(wanted)));
    Ok(setrlimit(resource, Rlimit { current: limit, maximum: limit })?)
}

fn invalid(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidInput, what)
}
