//! Forges: where people review what a job made, and merge it.
//!
//! A kind of forge is one file that implements [`Forge`] and one line in [`FORGES`]. A branch belongs to one job, so whatever
//! request exists for it is the one: every call begins with a look, and none opens a second. Nothing is ever merged here.

mod github;
mod gitlab;
mod place;

use std::fmt;

use async_trait::async_trait;
use giga_domain::Timestamp;
use giga_domain::job::OpenRequest;
use giga_ports::effects::{
    Checks, ForgeTrouble, HookError, HookMessage, HookSubject, Proposal, RequestState, Said,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::http::Http;
use crate::rest::Trouble;
use crate::tracker::{RepoAccess, SettingNames, TrackerSettings, TrackerToken};

pub(crate) use place::Place;

/// Every kind of forge that can be set up.
pub static FORGES: &[ForgeKind] = &[github::KIND, gitlab::KIND];

/// Of what somebody wrote on a request.
const WORDS_CHARS: usize = 4_000;

#[async_trait]
pub(crate) trait Forge: Send + Sync {
    /// What it calls the repository at this path; `None` where it can have none there.
    fn repository(&self, path: &str) -> Option<String>;

    /// Opens the request of the branch, or lets it show what is proposed now.
    async fn open(&self, repo: &str, proposal: &Proposal, now: Timestamp) -> Result<OpenRequest, Trouble>;

    async fn look(
        &self,
        repo: &str,
        branch: &str,
        commit: &str,
        now: Timestamp,
    ) -> Result<Option<RequestState>, Trouble>;

    /// Unless it is merged or closed. Says what it found.
    async fn close(&self, repo: &str, branch: &str, now: Timestamp) -> Result<String, Trouble>;

    fn is_signed(&self, message: &HookMessage<'_>, secret: &str) -> bool;

    /// What a message that is signed is about. The text says what makes no sense in it.
    fn subject(&self, message: &HookMessage<'_>) -> Result<Option<HookSubject>, String>;
}

pub(crate) type OpenForge = fn(&ForgeConfig, Http) -> Result<Box<dyn Forge>, String>;

/// What is known of a kind of forge before one is set up.
pub struct ForgeKind {
    /// What jobs, settings and routes call it, such as `github`.
    pub name: &'static str,
    /// What people call it.
    pub display_name: &'static str,
    pub default_api: &'static str,
    pub settings: TrackerSettings,
    /// The file with what its messages are signed with.
    pub secret_file: SettingNames,
    /// Address, token and repositories are set for a tracker of the same name already.
    pub shares_tracker: bool,
    pub(crate) open: OpenForge,
}

impl PartialEq for ForgeKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ForgeKind {}

impl fmt::Debug for ForgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForgeKind").field(&self.name).finish()
    }
}

/// A forge as the operator sets it up.
#[derive(Clone)]
pub struct ForgeConfig {
    pub kind: &'static ForgeKind,
    /// Where its API is.
    pub api: String,
    pub token: TrackerToken,
    /// What its messages are signed with; without one none is taken.
    pub secret: Option<TrackerToken>,
    /// Which product may use which repository with the token; empty where none is configured.
    pub repos: Vec<RepoAccess>,
}

impl fmt::Debug for ForgeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForgeConfig")
            .field("kind", &self.kind.name)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

/// One that is set up.
pub(crate) struct OpenedForge {
    pub(crate) config: ForgeConfig,
    /// Where its repositories are.
    pub(crate) host: String,
    pub(crate) forge: Box<dyn Forge>,
}

impl OpenedForge {
    pub(crate) fn new(config: &ForgeConfig, http: Http) -> Result<Self, String> {
        let host = crate::host_of(&config.api).ok_or_else(|| format!("`{}` has no host", config.api))?;
        let host = host.strip_prefix("api.").unwrap_or(&host).to_ascii_lowercase();
        Ok(Self { config: config.clone(), host, forge: (config.kind.open)(config, http)? })
    }

    pub(crate) fn read_hook(&self, message: &HookMessage<'_>) -> Result<Option<HookSubject>, HookError> {
        let Some(secret) = &self.config.secret else {
            let ForgeKind { secret_file: (_, flag, variable), display_name, .. } = self.config.kind;
            return Err(HookError::NoSecret(format!(
                "messages of {display_name} cannot be checked: set {flag} or {variable} on the coordinator"
            )));
        };
        if !self.forge.is_signed(message, &secret.0) {
            return Err(HookError::Unsigned);
        }
        self.forge.subject(message).map_err(HookError::Malformed)
    }
}

pub(crate) fn trouble(trouble: Trouble) -> ForgeTrouble {
    match trouble {
        Trouble::Gone(detail) | Trouble::Refused(detail) => ForgeTrouble::Refused(detail),
        Trouble::Later { detail, after } => ForgeTrouble::Later { detail, after },
    }
}

fn mac(secret: &str, bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key may have any length");
    mac.update(bytes);
    mac
}

/// What others wrote, bounded, without what hides in it.
fn words(text: &str) -> String {
    let plain = text.replace("\r\n", "\n");
    let plain: String = plain.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    plain.trim().chars().take(WORDS_CHARS).collect()
}

/// The newest of each kind, oldest first.
fn newest(mut said: Vec<Said>) -> Vec<Said> {
    let most = giga_domain::job::PullRequest::SEEN;
    said.drain(..said.len().saturating_sub(most));
    said
}

/// The path of a repository as part of a URL's path.
fn escaped(path: &str) -> String {
    path.replace('/', "%2F")
}

/// Of checks that are all done.
fn checks(sha: &str, failed: &[String]) -> Checks {
    let passed = failed.is_empty();
    let word = if passed { "passed" } else { "failed" };
    let short: String = sha.chars().take(12).collect();
    Checks { id: format!("checks:{short}:{word}"), passed, detail: words(&failed.join("\n")) }
}
