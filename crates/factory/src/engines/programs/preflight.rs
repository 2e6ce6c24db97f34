//! Whether a program is there, runs, and has an account.
//!
//! Asks the program where it has a question for that, because a file that looks like a sign-in may have expired.
//! Never spends a token.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::{Recipe, view};
use crate::engines::acp;
use crate::engines::engine::Preflight;
use crate::engines::process::{HostEnvironment, Launch, Probe, probe};
use crate::sandbox::Sandbox;

/// For one question; node programs take seconds to start on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// How a program's account is checked.
pub(in crate::engines) enum SignIn {
    Unneeded,
    Ask {
        args: Vec<OsString>,
        is_signed_in: fn(&Probe) -> bool,
        remedy: String,
    },
    Look {
        is_signed_in: fn(&HostEnvironment) -> Result<(), String>,
        remedy: String,
    },
    /// What the program's answer does not know of comes first.
    LookThenAsk {
        is_signed_in_by_settings: fn(&HostEnvironment) -> Option<Result<(), String>>,
        args: Vec<OsString>,
        is_signed_in: fn(&Probe) -> bool,
        remedy: String,
    },
}

/// In the sandbox that a run would get: what is there for the operator may not be there for a job.
pub(super) async fn preflight(recipe: &dyn Recipe, host: &HostEnvironment, sandbox: &Sandbox) -> Preflight {
    let Some(program) = host.find_program(recipe.program()) else {
        return Preflight::NotInstalled { remedy: recipe.how_to_install() };
    };
    if let Some(config) = recipe.acp() {
        let args = config.argv.iter().skip(1).map(OsString::from).collect();
        return match question(&program, args, recipe, host) {
            Ok((launch, _folder)) => acp::preflight(config, launch, sandbox, &recipe.how_to_install()).await,
            Err(detail) => broken(recipe, &detail),
        };
    }
    let ask = async |args: Vec<OsString>| ask(&program, args, recipe, host, sandbox).await;
    let version = match recipe.version_args() {
        None => None,
        Some(args) => match ask(args).await {
            Ok(answer) if answer.succeeded => version(&answer.stdout),
            Ok(answer) => {
                return broken(
                    recipe,
                    &format!("it ends with {:?}: {}", answer.code, last_line(&answer.stderr)),
                );
            }
            Err(detail) => return broken(recipe, &detail),
        },
    };
    match recipe.sign_in() {
        SignIn::Unneeded => Preflight::Ready { version },
        SignIn::Look { is_signed_in, remedy } => looked(is_signed_in(host), version, &remedy),
        SignIn::LookThenAsk { is_signed_in_by_settings, args, is_signed_in, remedy } => {
            match is_signed_in_by_settings(host) {
                Some(found) => looked(found, version, &remedy),
                None => asked(ask(args).await, is_signed_in, version, remedy, recipe),
            }
        }
        SignIn::Ask { args, is_signed_in, remedy } => {
            asked(ask(args).await, is_signed_in, version, remedy, recipe)
        }
    }
}

fn looked(found: Result<(), String>, version: Option<String>, remedy: &str) -> Preflight {
    match found {
        Ok(()) => Preflight::Ready { version },
        Err(why) => Preflight::NotSignedIn { remedy: format!("{why}; {remedy}") },
    }
}

fn asked(
    answer: Result<Probe, String>,
    is_signed_in: fn(&Probe) -> bool,
    version: Option<String>,
    remedy: String,
    recipe: &dyn Recipe,
) -> Preflight {
    match answer {
        Ok(answer) if is_signed_in(&answer) => Preflight::Ready { version },
        Ok(_) => Preflight::NotSignedIn { remedy },
        Err(detail) => broken(recipe, &detail),
    }
}

async fn ask(
    program: &Path,
    args: Vec<OsString>,
    recipe: &dyn Recipe,
    host: &HostEnvironment,
    sandbox: &Sandbox,
) -> Result<Probe, String> {
    let asked = args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    let (launch, _folder) = question(program, args, recipe, host)?;
    match probe(launch, sandbox, PATIENCE).await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(format!("`{asked}` was not answered within {PATIENCE:?}")),
        Err(failure) => Err(failure.detail),
    }
}

/// In an empty folder, so that no project's settings or hooks have a say.
pub(super) fn question(
    program: &Path,
    args: Vec<OsString>,
    recipe: &dyn Recipe,
    host: &HostEnvironment,
) -> Result<(Launch, TempDir), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = folder.path().join("tree");
    std::fs::create_dir(&dir).map_err(|error| error.to_string())?;
    let mut env = host.for_engine(recipe.variables(), &[]);
    env.extend(recipe.fixed_variables().into_iter().map(|(name, value)| (name.into(), value.into())));
    let view = view(recipe, host, folder.path());
    Ok((Launch { program: program.to_owned(), args, env, dir, stdin: None, view, journal: None }, folder))
}

fn broken(recipe: &dyn Recipe, detail: &str) -> Preflight {
    let program = recipe.program().display();
    Preflight::Broken {
        detail: detail.to_owned(),
        remedy: format!("run `{program}` by hand and see what it says; {}", recipe.how_to_install()),
    }
}

/// The first word with a number in it, such as `1.2.3` of `tool 1.2.3 (release)`.
fn version(answer: &str) -> Option<String> {
    let mut words = answer.lines().next()?.split_whitespace();
    words.find(|word| word.contains('.') && word.contains(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

fn last_line(text: &str) -> &str {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("2.1.40 (Claude Code)\n").as_deref(), Some("2.1.40"));
        assert_eq!(version("codex-cli 0.150.0").as_deref(), Some("0.150.0"));
        assert_eq!(version("no number"), None);
        assert_eq!(version(""), None);
    }
}
