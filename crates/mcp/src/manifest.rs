//! The fields of a manifest, for models that write one: every constraint that can be known beforehand.
//!
//! Nothing is judged by it: what is sent goes to the coordinator as it came, which refuses what is wrong.

use std::borrow::Cow;

use giga_api::wire::{DepsMode, JobKind, MergeBy, MergeFeedback, MergeStrategy, Permissions, Priority};
use giga_domain::{FailReason, limits};
use rmcp::schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A manifest as JSON, kept as it came.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct ManifestFields(pub(crate) Map<String, Value>);

impl JsonSchema for ManifestFields {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema().try_into().expect("an object is a schema")
    }
}

/// A duration such as `90s` or `1h30m`.
const DURATION: &str = "^([0-9]+(ms|s|m|h|d))+$";
const WORD: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

fn text(most: usize, about: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": most, "description": about})
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str, about: &str) -> Value {
    let words: Vec<&str> = all.iter().map(|value| word(*value)).collect();
    json!({"type": "string", "enum": words, "description": about})
}

fn list(most: usize, of: Value, about: &str) -> Value {
    json!({"type": "array", "maxItems": most, "items": of, "description": about})
}

fn object(properties: Value, about: &str) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties, "description": about})
}

fn duration(about: &str) -> Value {
    json!({"type": "string", "pattern": DURATION, "description": about})
}

fn schema() -> Value {
    let reviewers = list(
        limits::REVIEWERS,
        text(limits::NAME_CHARS, "a label of a token"),
        "who may approve; anyone if left out",
    );
    let verify = "commands that must pass, in this order";
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "description": "The front matter of a manifest. Everything but `name` has a default.",
        "properties": {
            "name": text(limits::NAME_CHARS, "what the job is called; printable characters"),
            "product": {"type": "string", "pattern": WORD, "description": "the product that it belongs to; leave it out where the token has only one"},
            "repo": text(limits::REPO_URL_CHARS, "a repository name that factories know, such as `hello` or `org/app`, or a git URL"),
            "repos": list(limits::JOB_REPOS, text(limits::REPO_URL_CHARS, "as `repo`"), "several repositories in one job, instead of `repo`"),
            "engine": {"type": ["string", "array"], "maxItems": limits::JOB_ENGINES, "description": "`shell`, `claude`, `codex`, `gemini`, `opencode`, …, or a list of them in order of preference, each a name or {name, model}; `any` if left out"},
            "model": text(limits::NAME_CHARS, "of the one engine that is named, instead of the operator's choice; in a list of engines it stands with each"),
            "script": {"type": "string", "minLength": 1, "description": "what engine `shell` runs; needed there, and only there"},
            "persona": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(@[1-9][0-9]*)?$", "description": "a profile, such as `coder@3`"},
            "capabilities": list(limits::CAPABILITIES, text(limits::NAME_CHARS, "such as `os:linux` or `has:git`"), "what a factory must have"),
            "priority": words(Priority::ALL, Priority::as_str, "`normal` if left out"),
            "kind": words(JobKind::ALL, JobKind::as_str, "`agent` runs an engine; `composite` only groups its children"),
            "deps": list(limits::DEPS, text(limits::NAME_CHARS, "a job id, or the name of a job in the same call"), "jobs that must have shipped before"),
            "depsMode": words(DepsMode::ALL, DepsMode::as_str, "`all` of them, or `any` for the first"),
            "onFailure": {"type": "string", "enum": ["fail_fast", "continue"], "description": "composites only: what a failed child does to the others"},
            "onConflict": {"type": "string", "enum": ["redo", "fail"], "description": "what becomes of a result that no longer merges"},
            "base": text(200, "the branch that the work starts from"),
            "target": text(200, "the branch that the result goes into"),
            "merge": object(json!({
                "strategy": words(MergeStrategy::ALL, MergeStrategy::as_str, "`merge` if left out"),
                "by": words(MergeBy::ALL, MergeBy::as_str, "`push`, or `pull_request`, which leaves the merge to people"),
                "feedback": words(MergeFeedback::ALL, MergeFeedback::as_str, "`changes` makes what people ask for on a pull request the next run"),
                "message": {"type": "string", "minLength": 1},
                "author": {"type": "string", "description": "Name <address>"}
            }), "how the result is merged"),
            "permissions": words(Permissions::ALL, Permissions::as_str, "what the engine may do without asking, the least first"),
            "ask": object(json!({
                "parkAfter": duration("how long the job keeps its seat while a question is open"),
                "deadline": duration("how long people have to answer")
            }), "how long the job waits for answers to its questions"),
            "budget": object(json!({
                "usd": {"type": "number", "exclusiveMinimum": 0, "description": "dollars"},
                "tokens": {"type": "integer", "minimum": 1, "maximum": 1_000_000_000_000_u64},
                "wall": duration("such as `20m`; 1 s to 30 days")
            }), "what one run may use up"),
            "retry": object(json!({
                "max": {"type": "integer", "minimum": 0, "maximum": 100, "description": "retries after the first attempt; 3 if left out"},
                "backoff": duration("the first wait, such as `30s`; it doubles each time"),
                "on": list(FailReason::RETRIED_ON_REQUEST.len(), words(&FailReason::RETRIED_ON_REQUEST, FailReason::as_str, "a reason of failures"), "reasons to retry beside the usual ones")
            }), "what is retried"),
            "verify": list(limits::VERIFY_COMMANDS, text(limits::REASON_CHARS, "a shell command"), verify),
            "secrets": {"type": "array", "maxItems": limits::JOB_SECRETS, "description": "secrets of the product that the job is given: a name, or {name, env} or {name, file}",
                "items": {"description": "a name in capitals, or an object with it"}},
            "review": object(json!({
                "quorum": {"type": "integer", "minimum": 0, "maximum": limits::REVIEWERS},
                "reviewers": reviewers
            }), "approvals that the result needs before it goes on"),
            "ship": {"type": "string", "enum": ["manual", "auto"], "description": "`manual` if left out: somebody has to say that the result goes into its branch"},
            "concurrency": object(json!({
                "key": text(limits::CONCURRENCY_KEY_CHARS, "such as `repo:hello`"),
                "limit": {"type": "integer", "minimum": 1, "maximum": 10_000}
            }), "how many jobs of the product with this key run at once"),
            "idempotencyKey": text(limits::IDEMPOTENCY_KEY_CHARS, "the same key and content give the same job, however often they are sent"),
            "runAt": {"type": "string", "format": "date-time", "description": "not before this time, with a zone"}
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use giga_domain::manifest::{self, KEYS};

    use super::*;

    #[test]
    fn every_key_of_a_manifest_is_described() {
        let schema = schema();
        let described: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, KEYS.iter().copied().collect(), "describe new keys in `schema` above");
    }

    /// A schema that a manifest cannot satisfy would be worse than none.
    #[test]
    fn what_the_schema_offers_is_taken() {
        for (key, property) in schema()["properties"].as_object().unwrap() {
            for word in property["enum"].as_array().into_iter().flatten() {
                let mut fields = json!({"name": "a", "kind": "composite"});
                if !matches!(key.as_str(), "onFailure" | "kind") {
                    fields = json!({"name": "a"});
                }
                fields[key] = word.clone();
                manifest::from_json(&fields).unwrap_or_else(|error| panic!("{key}: {word}: {error}"));
            }
        }
        let nested = [
            json!({"retry": {"on": FailReason::RETRIED_ON_REQUEST.map(FailReason::as_str)}}),
            json!({"merge": {"feedback": "changes", "by": "pull_request"}}),
            json!({"merge": {"feedback": "events"}}),
        ];
        for mut fields in nested {
            fields["name"] = json!("a");
            if let Err(error) = manifest::from_json(&fields) {
                panic!("{fields}: {error}");
            }
        }
    }
}
