//! Engines that are programs on this machine: what they share around the runner.
//!
//! A recipe says how one program is called and recognised; it never starts anything itself, and what comes from a job
//! reaches a program as a file or on standard input, never as an argument: everybody on the machine can read those.
//!
//! [`Program`] is the list of those with an account of their own. One more is a variant of it and a module that
//! implements [`Cli`]: settings, detection, event formats and tests go by the list.

mod claude;
mod codex;
mod command;
mod configured;
mod covered;
mod engine;
mod gemini;
mod instructions;
mod left_behind;
mod opencode;
mod preflight;
mod program;
mod recipe;
mod shell;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;

pub(super) use command::Template;
pub(super) use configured::Configured;
pub(super) use engine::ProgramEngine;
use engine::{no_scratch, view};
use preflight::SignIn;
pub(super) use program::Cli;
pub use program::Program;
pub(super) use recipe::{Call, Reads, Recipe};
pub(super) use shell::Shell;

/// How engines with an account reach it from behind a proxy.
pub(super) const NETWORK_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/// Whether a variable of this name is one that must not be shown.
pub(super) fn holds_a_secret(name: &str) -> bool {
    const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    SECRET_NAMES.iter().any(|word| name.to_uppercase().contains(word))
}

pub(super) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())
}

/// What an engine would name a session; above all, nothing that looks like an option or a path.
fn is_session_id(id: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    id.len() <= 200 && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(legal)
}

/// Built up from text and paths alike.
fn arguments<const N: usize>(fixed: [&str; N]) -> Vec<OsString> {
    fixed.into_iter().map(OsString::from).collect()
}
