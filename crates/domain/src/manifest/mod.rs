//! The manifest: Markdown with YAML front matter, or the same fields as JSON.
//!
//! Never guesses and never accepts in part: an unknown key, a wrong type or a value out of range refuses the
//! whole manifest, with every problem that could be found. It looks nothing up: repositories, profiles and
//! dependencies are only checked for their form.

mod document;
mod draft;
mod error;
mod fields;
mod grammar;
mod profile;
mod quantity;
mod reader;
mod secrets;
mod snapshot;
mod tree;

use std::fmt;

pub use draft::{Draft, ProfileRef};
pub use error::{ManifestError, Problem};
pub use fields::{KEYS, TRACKER_KEY};
pub use grammar::{is_author, is_branch};
pub use profile::{PROFILE_NAME_RULE, is_profile_name};
pub use quantity::parse_duration;

use crate::job::{
    BudgetCaps, Concurrency, ConflictPolicy, DepsMode, FailurePolicy, JobKind, JobSpec, MergeSettings,
    RetryPolicy, ReviewGate, ShipMode,
};
use crate::{
    AskPolicy, Capability, CapabilitySet, FailReason, JobId, Permissions, Priority, ProductId, SecretUse,
    Timestamp,
};

/// Everything a manifest says, defaults filled in. Its JSON is the snapshot kept with the job, and is read back
/// by [`from_json`] to an equal value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub name: String,
    /// `None` leaves it to the submitter's product.
    pub product: Option<ProductId>,
    pub repo: Option<String>,
    /// Those beside `repo`, where the manifest names several.
    pub more_repos: Vec<String>,
    /// `None` means any engine.
    pub engine: Option<String>,
    /// What the shell engine runs.
    pub script: Option<String>,
    pub persona: Option<Persona>,
    /// As written; [`Manifest::to_spec`] adds the engine's.
    pub capabilities: CapabilitySet,
    pub priority: Priority,
    pub kind: JobKind,
    pub deps: Vec<Dep>,
    pub deps_mode: DepsMode,
    /// Of a composite.
    pub on_failure: FailurePolicy,
    pub on_conflict: ConflictPolicy,
    pub base: Option<String>,
    pub target: Option<String>,
    pub merge: MergeSettings,
    pub budget: BudgetCaps,
    pub retry: RetryPolicy,
    /// What is retried besides what always is.
    pub retry_on: Vec<FailReason>,
    pub verify: Vec<String>,
    pub review: ReviewGate,
    pub ship: ShipMode,
    /// What its engine may do without asking.
    pub permissions: Option<Permissions>,
    pub ask: AskPolicy,
    pub concurrency: Option<Concurrency>,
    pub idempotency_key: Option<String>,
    /// Of its product, by name.
    pub secrets: Vec<SecretUse>,
    pub run_at: Option<Timestamp>,
    /// Where a profile filled it in: its own content. Never part of the snapshot; only for the fingerprint.
    pub written: Option<String>,
}

/// A profile and its version, written `coder@3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Persona {
    pub name: String,
    pub version: u32,
}

/// What a job waits for. Text that is a job id is one; anything else names a job of the same submit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dep {
    Id(JobId),
    Name(String),
}

/// The manifest and its body, the latter byte for byte. For one that no profile fills in; see [`Draft`].
pub fn parse_markdown(text: &[u8]) -> Result<(Manifest, String), ManifestError> {
    Draft::from_markdown(text)?.finish(None)
}

/// The same fields as a JSON object, by the same rules: the snapshot that is kept with a job. What comes from outside
/// goes through [`Draft`], which also refuses keys that are not the sender's to use.
pub fn from_json(manifest: &serde_json::Value) -> Result<Manifest, ManifestError> {
    Draft::from_json(manifest, String::new())?.into_snapshot()
}

impl Manifest {
    /// The hot part. `deps` are resolved by the caller.
    pub fn to_spec(&self, deps: Vec<JobId>, parent: Option<JobId>) -> JobSpec {
        let mut capabilities = self.capabilities.clone();
        if self.kind == JobKind::Agent {
            // Any engine is still one that reads prompts: a script has to name the shell.
            let engine = self.engine.as_deref().unwrap_or(Capability::ANY_ENGINE);
            let needed =
                Capability::engine(engine).expect("an engine is a word, and every word is a capability");
            capabilities.insert(needed);
        }
        if !self.more_repos.is_empty() {
            let needed = Capability::SEVERAL_REPOS.parse().expect("it is written as a capability is");
            capabilities.insert(needed);
        }
        if !self.secrets.is_empty() {
            let needed = Capability::SECRETS.parse().expect("it is written as a capability is");
            capabilities.insert(needed);
        }
        JobSpec {
            name: self.name.clone(),
            kind: self.kind,
            topic: None,
            priority: self.priority,
            repo: self.repo.clone(),
            more_repos: self.more_repos.clone(),
            engine: self.engine.clone(),
            capabilities,
            deps,
            deps_mode: self.deps_mode,
            parent,
            on_failure: self.on_failure,
            on_conflict: self.on_conflict,
            base: self.base.clone(),
            target: self.target.clone(),
            merge: self.merge.clone(),
            budget: self.budget,
            retry: self.retry,
            retry_on: self.retry_on.clone(),
            review: self.review.clone(),
            ship: self.ship,
            permissions: self.permissions,
            ask: self.ask,
            concurrency: self.concurrency.clone(),
            run_at: self.run_at,
            idempotency_key: self.idempotency_key.clone(),
        }
    }

    /// Every repository that it works on, in the order in which they are merged.
    pub fn repos(&self) -> impl Iterator<Item = &str> {
        self.repo.iter().chain(&self.more_repos).map(String::as_str)
    }

    /// SHA-256 in hex over the snapshot and the body. The same idempotency key with another fingerprint is a
    /// conflict; how the manifest was spelled does not matter, what it says does.
    pub fn fingerprint(&self, body: &str) -> String {
        snapshot::fingerprint(self, body)
    }
}

impl fmt::Display for Persona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

impl fmt::Display for Dep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The nearest of `known` to `given`, when it is near enough to be a slip of the pen.
pub fn suggest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Far longer than any word of ours: no slip of the pen, and the comparison would be slow.
    if given.len() > 200 {
        return None;
    }
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&given, &word.to_lowercase()), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min()
        .map(|(_, word)| word)
}
