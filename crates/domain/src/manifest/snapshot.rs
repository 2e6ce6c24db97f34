//! The manifest as JSON: kept with the job, shown by the API, and read back to an equal value.
//!
//! Never differs from what `from_json` accepts: same keys, same shapes, defaults written out.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::quantity::format_duration;
use super::{Dep, Manifest, from_json};
use crate::job::{
    Concurrency, ConflictPolicy, DepsMode, FailurePolicy, JobKind, MergeSettings, ReviewGate, ShipMode,
};
use crate::{CapabilitySet, FailReason, Permissions, Priority, ProductId, SecretUse, Timestamp, Usd};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    product: Option<&'a ProductId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repos: Vec<&'a str>,
    engine: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    persona: Option<String>,
    capabilities: &'a CapabilitySet,
    priority: Priority,
    kind: JobKind,
    deps: &'a [Dep],
    deps_mode: DepsMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<FailurePolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_conflict: Option<ConflictPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "MergeSettings::is_unsaid")]
    merge: &'a MergeSettings,
    budget: Budget,
    retry: Retry,
    verify: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    secrets: &'a [SecretUse],
    review: &'a ReviewGate,
    ship: ShipMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<Permissions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<AskTimes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<&'a Concurrency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AskTimes {
    #[serde(skip_serializing_if = "Option::is_none")]
    park_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
}

#[derive(Serialize)]
struct Retry {
    max: u32,
    backoff: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on: Vec<FailReason>,
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let snapshot = Snapshot {
            name: &self.name,
            product: self.product.as_ref(),
            repo: self.repo.as_deref().filter(|_| self.more_repos.is_empty()),
            repos: if self.more_repos.is_empty() { Vec::new() } else { self.repos().collect() },
            engine: self.engine.as_deref().unwrap_or("any"),
            script: self.script.as_deref(),
            persona: self.persona.as_ref().map(ToString::to_string),
            capabilities: &self.capabilities,
            priority: self.priority,
            kind: self.kind,
            deps: &self.deps,
            deps_mode: self.deps_mode,
            on_failure: (self.kind == JobKind::Composite).then_some(self.on_failure),
            on_conflict: (self.on_conflict != ConflictPolicy::default()).then_some(self.on_conflict),
            base: self.base.as_deref(),
            target: self.target.as_deref(),
            merge: &self.merge,
            budget: Budget {
                usd: self.budget.usd,
                tokens: self.budget.tokens,
                wall: self.budget.wall_ms.map(format_duration),
            },
            retry: Retry {
                max: self.retry.max,
                backoff: format_duration(self.retry.backoff_ms),
                on: self.retry_on.clone(),
            },
            verify: &self.verify,
            secrets: &self.secrets,
            review: &self.review,
            ship: self.ship,
            permissions: self.permissions,
            ask: (!self.ask.is_unsaid()).then(|| AskTimes {
                park_after: self.ask.park_after_ms.map(format_duration),
                deadline: self.ask.deadline_ms.map(format_duration),
            }),
            concurrency: self.concurrency.as_ref(),
            idempotency_key: self.idempotency_key.as_deref(),
            run_at: self.run_at,
        };
        snapshot.serialize(serializer)
    }
}

/// Through `from_json`, so that nothing becomes a manifest without passing its rules.
impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_json(&serde_json::Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Dep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

pub(super) fn fingerprint(manifest: &Manifest, body: &str) -> String {
    let content = match &manifest.written {
        None => serde_json::to_vec(manifest),
        // What the profile fills in may change between two sendings of the same text; the text is what counts.
        Some(written) => serde_json::to_vec(&(written, &manifest.product, &manifest.idempotency_key)),
    };
    let content = content.expect("a manifest has only string keys and finite numbers");
    let mut hasher = Sha256::new();
    // The length keeps the border between the two from moving.
    hasher.update((content.len() as u64).to_be_bytes());
    hasher.update(&content);
    hasher.update(body.as_bytes());
    const_hex::encode(hasher.finalize())
}
