//! The one table from what went wrong to exit code, text and remedy. No command picks a
//! code of its own.

use std::io;
use std::path::PathBuf;

use giga_api::client::ClientError;
use giga_api::wire::Problem;
use thiserror::Error;

use crate::output::printable;

pub(crate) const OK: u8 = 0;
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_FOUND: u8 = 3;
pub(crate) const AUTH: u8 = 4;
pub(crate) const CONFLICT: u8 = 5;
pub(crate) const REJECTED: u8 = 6;
pub(crate) const BUDGET: u8 = 7;
pub(crate) const WAITS: u8 = 8;
/// Nobody answered, and the default was taken.
pub(crate) const DEFAULTED: u8 = 9;
pub(crate) const TIMEOUT: u8 = 124;
pub(crate) const INTERRUPTED: u8 = 130;

#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The coordinator refused it and says why; `file` is what was handed in.
    #[error("{file} was refused")]
    Manifest { file: String, problem: Box<Problem> },
    /// The same for a profile.
    #[error("{file} was refused")]
    Profile { file: String, problem: Box<Problem> },
    /// The coordinator wants to know who asks, and there is no token.
    #[error("no token found in {places}")]
    NoToken { places: String },
    /// The only token at hand is of another coordinator.
    #[error("there is no token for {url}: {} is only sent to the coordinator on this machine that wrote it", token.display())]
    NotItsToken { token: PathBuf, url: String },
    #[error("you were signed in to {url} until {at}")]
    SignInEnded { url: String, at: String },
    /// The pool's credential is worth nothing, or nothing for this factory.
    #[error("{0}")]
    PoolRefused(String),
    #[error("no coordinator is running in {}", data.display())]
    NotRunning { data: PathBuf },
    /// A setting or its file is wrong.
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NoSuchJob(String),
    #[error("there is no topic `{0}`")]
    NoSuchTopic(String),
    #[error("there is no account `{0}`")]
    NoSuchAccount(String),
    #[error("nobody has or asks for the capability `{0}`")]
    NoSuchCapability(String),
    #[error("{message}")]
    Failed { message: String, hint: Option<String> },
    #[error("writing failed: {0}")]
    Output(#[from] io::Error),
    /// Everything was printed already; only the code is left.
    #[error("")]
    Ended(u8),
    #[error("interrupted")]
    Interrupted,
}

impl CliError {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: None }
    }

    pub(crate) fn failed_but(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Client(ClientError::Problem(problem)) => match problem.status {
                401 | 403 => AUTH,
                404 => NOT_FOUND,
                409 | 412 => CONFLICT,
                _ => FAILED,
            },
            Self::Client(
                ClientError::BadUrl { .. }
                | ClientError::PlainHttp { .. }
                | ClientError::CaCert
                | ClientError::Unsendable(_),
            )
            | Self::Config(_)
            | Self::Usage(_) => USAGE,
            Self::NoToken { .. }
            | Self::NotItsToken { .. }
            | Self::SignInEnded { .. }
            | Self::PoolRefused(_) => AUTH,
            Self::NoSuchJob(_)
            | Self::NoSuchTopic(_)
            | Self::NoSuchAccount(_)
            | Self::NoSuchCapability(_) => NOT_FOUND,
            // Whoever read our output has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => OK,
            Self::Client(_)
            | Self::Manifest { .. }
            | Self::Profile { .. }
            | Self::NotRunning { .. }
            | Self::Failed { .. }
            | Self::Output(_) => FAILED,
            Self::Ended(code) => *code,
            Self::Interrupted => INTERRUPTED,
        }
    }

    /// What is shown on stderr, without colour; nothing where everything was printed already.
    pub(crate) fn lines(&self) -> Vec<Line> {
        match self {
            Self::Ended(_) | Self::Interrupted => Vec::new(),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Vec::new(),
            Self::Manifest { file, problem } => {
                let hint = "nothing was submitted; `giga job init -` shows every key with its meaning";
                file_lines(file, problem, hint)
            }
            Self::Profile { file, problem } => {
                file_lines(file, problem, "nothing was saved; `giga profile add --help` shows an example")
            }
            Self::Client(ClientError::Problem(problem)) if problem.errors.len() > 1 => {
                let fields = problem.errors.iter().map(|error| Line::Detail(error.message.clone()));
                std::iter::once(Line::Error(problem.detail.clone())).chain(fields).collect()
            }
            _ => {
                let mut lines = vec![Line::Error(self.to_string())];
                lines.extend(self.hint().map(Line::Hint));
                lines
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Client(ClientError::Unreachable { .. }) => {
                "is the coordinator running? start it with `giga up`, or set its address with --url"
                    .to_owned()
            }
            Self::Client(ClientError::BadAnswer { .. }) => {
                "is that a coordinator, and the same version as this `giga`?".to_owned()
            }
            Self::Client(ClientError::BadUrl { .. }) => "use an address such as http://127.0.0.1:7717".to_owned(),
            Self::Client(ClientError::PlainHttp { .. }) => {
                "use an https:// address (`giga serve --tls-cert` or `--tls-acme`); where the network is trusted, \
                 --allow-plain-http or GIGA_ALLOW_PLAIN_HTTP=true"
                    .to_owned()
            }
            Self::Client(ClientError::CaCert) => "--ca-cert takes a PEM file".to_owned(),
            Self::Client(ClientError::Problem(problem)) => return problem_hint(problem),
            Self::NoToken { .. } => {
                "on the coordinator's machine it is found automatically; elsewhere, set GIGA_TOKEN or --token-file"
                    .to_owned()
            }
            Self::NotItsToken { .. } => {
                "set a token of that coordinator with GIGA_TOKEN or --token-file".to_owned()
            }
            Self::SignInEnded { .. } => "sign in again with `giga login`".to_owned(),
            Self::NotRunning { .. } => {
                "start it with `giga up`, or set the address and token of another with --url and --token-file".to_owned()
            }
            Self::NoSuchJob(_) => "list jobs with `giga job list`".to_owned(),
            Self::NoSuchCapability(_) => "list capabilities with `giga capability list`".to_owned(),
            Self::NoSuchAccount(_) => "list accounts with `giga account list`".to_owned(),
            Self::NoSuchTopic(_) => "list topics with `giga topic list`".to_owned(),
            Self::Failed { hint, .. } => return hint.clone(),
            _ => return None,
        })
    }
}

fn problem_hint(problem: &Problem) -> Option<String> {
    let hint = match problem.status {
        401 => "`giga config show` lists the token in use and where it comes from",
        403 => "an admin can create a token with that right: giga token create --role …",
        412 => "somebody changed it in the meantime; look at it and try again",
        503 if problem.detail.contains("identity provider") => "try again when it is back",
        503 => "the coordinator is running, but its store is not answering; it recovers when the store does",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// `FILE:LINE: field: message` for each problem, the form that editors understand.
fn file_lines(file: &str, problem: &Problem, hint: &str) -> Vec<Line> {
    if problem.errors.is_empty() {
        return vec![Line::Error(format!("{file}: {}", problem.detail))];
    }
    let each = problem.errors.iter().map(|error| {
        let place = error.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        // Most messages name their field themselves.
        if error.field.is_empty() || error.message.contains(&error.field) {
            Line::Error(format!("{place}: {}", error.message))
        } else {
            Line::Error(format!("{place}: {}: {}", error.field, error.message))
        }
    });
    let mut lines: Vec<Line> = each.collect();
    lines.push(Line::Hint(hint.to_owned()));
    lines
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Error(String),
    Detail(String),
    Hint(String),
}

impl Line {
    pub(crate) fn styled(&self) -> String {
        match self {
            Self::Error(text) => format!("\x1b[1;31merror:\x1b[0m {}", printable(text)),
            Self::Detail(text) => format!("  {}", printable(text)),
            Self::Hint(text) => format!("\x1b[36mhint:\x1b[0m {}", printable(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16) -> CliError {
        let problem = Problem { status, ..Problem::default() };
        CliError::Client(ClientError::Problem(Box::new(problem)))
    }

    #[test]
    fn every_kind_of_error_has_its_code() {
        let table = [
            (problem(401), AUTH),
            (problem(403), AUTH),
            (problem(404), NOT_FOUND),
            (problem(409), CONFLICT),
            (problem(412), CONFLICT),
            (problem(422), FAILED),
            (problem(503), FAILED),
            (CliError::Usage("x".to_owned()), USAGE),
            (CliError::Config("x".to_owned()), USAGE),
            (CliError::NoToken { places: String::new() }, AUTH),
            (CliError::NoSuchJob(String::new()), NOT_FOUND),
            (CliError::failed("x"), FAILED),
            (CliError::Interrupted, INTERRUPTED),
            (CliError::Output(io::ErrorKind::BrokenPipe.into()), OK),
            (CliError::Output(io::ErrorKind::StorageFull.into()), FAILED),
            (CliError::Ended(TIMEOUT), TIMEOUT),
        ];
        for (error, code) in table {
            assert_eq!(error.exit_code(), code, "{error:?}");
        }
    }
}
