//! The manifest: Markdown with YAML front matter, or the same fields as JSON.
//!
//! Never guesses and never accepts in part: an unknown key, a wrong type or a value out of range refuses the
//! whole manifest, with every problem that could be found. It looks nothing up: repositories, profiles and
//! dependencies are only checked for their form.

mod document;
mod error;
mod fields;
mod grammar;
mod quantity;
mod reader;
mod snapshot;
mod tree;

use std::fmt;

pub use error::{ManifestError, Problem};
pub use quantity::{dollars_to_micros, parse_duration};

use crate::job::{BudgetCaps, Concurrency, DepsMode, JobKind, JobSpec, RetryPolicy, ReviewGate, ShipMode};
use crate::{Capability, CapabilitySet, JobId, Priority, ProductId, Timestamp, limits};

/// Everything a manifest says, defaults filled in. Its JSON is the snapshot kept with the job, and is read back
/// by [`from_json`] to an equal value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub name: String,
    /// `None` leaves it to the submitter's product.
    pub product: Option<ProductId>,
    pub repo: Option<String>,
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
    pub budget: BudgetCaps,
    pub retry: RetryPolicy,
    pub verify: Vec<String>,
    pub review: ReviewGate,
    pub ship: ShipMode,
    pub concurrency: Option<Concurrency>,
    pub idempotency_key: Option<String>,
    pub run_at: Option<Timestamp>,
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

/// The manifest and its body, the latter byte for byte.
pub fn parse_markdown(text: &[u8]) -> Result<(Manifest, String), ManifestError> {
    let document = document::split(text)?;
    let (root, repeated_key) = tree::Node::from_yaml(document.front)?;
    let manifest = fields::read(&root, repeated_key)?;
    Ok((manifest, document.body.to_owned()))
}

/// The same fields as a JSON object, by the same rules.
pub fn from_json(manifest: &serde_json::Value) -> Result<Manifest, ManifestError> {
    let root = tree::Node::from_json(manifest)?;
    if !manifest.is_object() {
        let message = format!(
            "the manifest must be a JSON object such as {{\"name\": \"fix-greeting\"}}; it is {}",
            root.described()
        );
        return Err(ManifestError::whole(None, message));
    }
    // Measured as it would be sent; the body has its own place beside it.
    let bytes = manifest.to_string().len();
    if bytes > limits::MANIFEST_BYTES {
        let message =
            format!("the manifest has {bytes} bytes; it may have at most {} (1 MiB)", limits::MANIFEST_BYTES);
        return Err(ManifestError::whole(None, message));
    }
    fields::read(&root, None)
}

impl Manifest {
    /// The hot part. `deps` are resolved by the caller.
    pub fn to_spec(&self, deps: Vec<JobId>, parent: Option<JobId>) -> JobSpec {
        let mut capabilities = self.capabilities.clone();
        if let Some(engine) = &self.engine {
            let needed =
                Capability::engine(engine).expect("an engine is a word, and every word is a capability");
            capabilities.insert(needed);
        }
        JobSpec {
            name: self.name.clone(),
            kind: self.kind,
            topic: None,
            priority: self.priority,
            repo: self.repo.clone(),
            engine: self.engine.clone(),
            capabilities,
            deps,
            deps_mode: self.deps_mode,
            parent,
            budget: self.budget,
            retry: self.retry,
            review: self.review.clone(),
            ship: self.ship,
            concurrency: self.concurrency.clone(),
            run_at: self.run_at,
            idempotency_key: self.idempotency_key.clone(),
        }
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
