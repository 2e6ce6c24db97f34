//! What can go wrong between a factory and git, told apart by what the agent does about it.
//!
//! Never carries a password: text from git passes through `redact` first, and is bounded.

use std::path::PathBuf;

use giga_domain::{Epoch, FailReason, JobId};
use thiserror::Error;

const DETAIL_CHARS: usize = 2_000;

#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// Input that no retry makes right: a repository, ref or URL that is malformed or not allowed.
    #[error("{what} `{given}` is refused: {rule}")]
    Refused { what: &'static str, given: String, rule: String },
    #[error(
        "no repository named `{0}` is known here; known are the folders under `repos` and what was cloned before"
    )]
    UnknownRepo(String),
    #[error("the origin {url} cannot be reached: {detail}")]
    Unreachable { url: String, detail: String },
    /// The origin refused: a protected branch, a hook of its own, a checked-out branch.
    #[error("the origin refused the push to {branch}: {detail}")]
    PushRefused { branch: String, detail: String },
    /// Another epoch of this job wrote after us, so this holder is fenced whether it knows it or not.
    #[error("job {job} was taken over: epoch {ours} is older than {theirs}, which the origin already has")]
    Superseded { job: JobId, ours: Epoch, theirs: Epoch },
    /// A secret of the job is in it, or nobody can tell.
    #[error("the result is not pushed: {0}")]
    KeptBack(String),
    #[error("the work folder of job {job}, epoch {epoch}, is in use")]
    InUse { job: JobId, epoch: Epoch },
    #[error("git failed at {action}: {detail}")]
    Git { action: String, detail: String },
    #[error("git took longer than {seconds} s at {action} and was stopped")]
    TimedOut { action: String, seconds: u64 },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("git 2.38 or newer is needed: {0}")]
    NoGit(String),
}

impl WorkspaceError {
    pub(crate) fn refused(what: &'static str, given: &str, rule: impl Into<String>) -> Self {
        let given = given.chars().take(120).flat_map(char::escape_default).collect::<String>();
        Self::Refused { what, given: redact(&given), rule: rule.into() }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// As the coordinator is to hear it.
    pub const fn fail_reason(&self) -> FailReason {
        match self {
            Self::Refused { .. } | Self::UnknownRepo(_) => FailReason::CapabilityMismatch,
            Self::KeptBack(_) => FailReason::Secret,
            _ => FailReason::Infrastructure,
        }
    }

    /// Whether another attempt, here or elsewhere, could end differently.
    pub const fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::Refused { .. } | Self::Superseded { .. } | Self::PushRefused { .. } | Self::KeptBack(_)
        )
    }
}

/// Bounded, printable, and without the passwords that a URL may carry.
pub(crate) fn tidy(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    let clean = redact(clean.trim());
    match clean.char_indices().nth_back(DETAIL_CHARS) {
        // The end of git's talk says why it stopped.
        Some((start, _)) => format!("… {}", &clean[start..]),
        None => clean,
    }
}

/// `scheme://user:password@host` becomes `scheme://user:***@host`.
fn redact(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        safe.push_str(head);
        let authority = tail.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(tail.len());
        match tail[..authority].rsplit_once('@') {
            Some((user, host)) => {
                let name = user.split_once(':').map_or(user, |(name, _)| name);
                safe.push_str(name);
                if name != user {
                    safe.push_str(":***");
                }
                safe.push('@');
                safe.push_str(host);
            }
            None => safe.push_str(&tail[..authority]),
        }
        rest = &tail[authority..];
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_come_back_in_errors() {
        assert_eq!(
            tidy("fatal: https://ana:s3cret@host/x.git and ssh://git@host/y"),
            "fatal: https://ana:***@host/x.git and ssh://git@host/y"
        );
        assert_eq!(tidy("https://a:p@h"), "https://a:***@h");
        assert_eq!(tidy("no url at all"), "no url at all");
    }

    #[test]
    fn details_are_bounded_and_printable() {
        let text = tidy(&format!("{}\u{1b}[31mfatal: the reason", "é".repeat(9_000)));
        assert!(text.chars().count() < 2_100 && text.ends_with("the reason") && !text.contains('\u{1b}'));
    }
}
